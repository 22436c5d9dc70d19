// What a window leaves of the keys, in every planted kernel.
#pragma once

#include <cstdint>

#include "properties/faults/make.h"

namespace attest {

/// Keys [begin, end); none where end is not above begin.
struct KeyRange {
  std::int64_t begin, end;
  [[nodiscard]] bool sees(std::int64_t j) const { return begin <= j && j < end; }
};

[[nodiscard]] bool has_window(const attest_problem& p);

/// The keys that the window leaves to row i of head h, within 0 and N; all of them without a window. What the causal
/// form and the mask hide is not left out.
[[nodiscard]] KeyRange window_of(const attest_problem& p, Slip slip, std::int64_t h, std::int64_t i);

/// Whether the slip drops the causal form because of the window.
[[nodiscard]] bool window_drops_causal(const attest_problem& p, Slip slip);

}  // namespace attest
