// How many cases must be judged before a verdict of held is said.
#pragma once

#include <algorithm>
#include <cstdint>

namespace attest {

/// Of `asked` cases: one in ten, and 30 at most. With 30 a mistake that shows in one case of ten is missed once in 24
/// runs.
[[nodiscard]] constexpr std::int64_t least_judged(std::int64_t asked) {
  return std::min<std::int64_t>(30, asked / 10);
}
/// Of so many cases and more, least_judged asks for as many as it ever does; a run of fewer is a quick look.
inline constexpr std::int64_t quick_look_ends = 300;

}  // namespace attest
