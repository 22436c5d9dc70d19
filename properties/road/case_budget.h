// How large a case may become before it is skipped: so large that no kernel of the field needs more, and so small that
// a manifest cannot make a run fill the machine. A function of the case and the manifest alone, so that every machine
// skips the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/problem/case.h"
#include "core/problem/cost.h"
#include "core/problem/selection.h"

namespace attest {

/// Numbers in a case, the answer's included: 64 MiB of doubles, which the exact answer computes in.
inline constexpr std::int64_t most_numbers = std::int64_t{1} << 23;
/// Multiplications that its definition asks for.
inline constexpr std::int64_t most_products = std::int64_t{1} << 28;

/// Why a case has no verdict where memory ran out (std::bad_alloc) as it was drawn, run or judged. How much there is
/// depends on the machine, and a case within the budget needs little.
inline constexpr std::string_view out_of_memory = "was not judged: memory ran out; fewer --jobs need less";

/// Empty, or why extents that a manifest asks for are too many in the place of the drawn ones: beyond the budget, and
/// more than those. Of extents that cost no more than what was drawn nothing is said.
[[nodiscard]] std::string why_over_budget(Operation operation, const Extents& drawn, const Extents& asked);
/// It is such a reason.
[[nodiscard]] bool is_over_budget(std::string_view reason);

/// Empty, or why a case is not asked of a kernel on a scalar wider than every dtype, which takes a hundred times as
/// long.
[[nodiscard]] std::string why_too_dear_for_wide(const Case& c);

}  // namespace attest
