// What a wrong kernel may have taken a window for: the conventions that other libraries mean by the same word.
#pragma once

#include <vector>

#include "properties/diagnosis/other_sights.h"

namespace attest {

/// Of a case of attention; none where it has no window, and where a mask cannot say what a window would hide (an
/// additive one in a format without infinity). One that hides the same keys as the case itself may be among them.
[[nodiscard]] std::vector<MisreadSight> misread_windows(const Case& c);

}  // namespace attest
