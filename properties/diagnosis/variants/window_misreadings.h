// What a wrong kernel may have taken a window for: the conventions that other libraries mean by the same word.
#pragma once

#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A reading of a window.
struct MisreadWindow {
  std::string words;  ///< that follow "it computes as if"
  Case problem;       ///< the window as part of a mask
};

/// Of a case of attention; none where it has no window, and where a mask cannot say what a window would hide (an
/// additive one in a format without infinity). One that hides the same keys as the case itself may be among them.
[[nodiscard]] std::vector<MisreadWindow> misread_windows(const Case& c);

}  // namespace attest
