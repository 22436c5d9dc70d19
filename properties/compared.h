// The two sides of a law that was violated, with what is exact there.
#pragma once

#include <vector>

#include "attest/journal.h"
#include "attest/kernel_under_test.h"

namespace attest {

/// The elements that `verdict` says were too far apart, each with the certified enclosure of its exact value where the
/// call was one of attention and small enough to be computed again in a moment: which side is wrong is then seen. Empty
/// where the verdict names none.
[[nodiscard]] std::vector<ComparedRecord> compared_elements(const Verdict& verdict, const Manifest& manifest);

/// Multiplications of a case that is computed again for people to read.
inline constexpr std::int64_t most_computed_again = 20'000;
/// Those of an attention case.
[[nodiscard]] std::int64_t multiplications_of(const Case& c);

}  // namespace attest
