// What a wrong kernel may have taken a cap of scores for.
#pragma once

#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A reading of the softcap of a case. Its words call the softcap c, and t the product q·k times the scale.
struct MisreadSoftcap {
  std::string words;   ///< that follow "it computes as if"
  std::string remedy;  ///< what makes such a kernel right, as a sentence; empty: nothing that an adapter can do
  /// With another softcap, another scale or other sinks; or without a cap, and what the reading makes of each score is
  /// in the mask, of f64.
  Case problem;
};

/// None where the case has none. One that is the case itself may be among them, and two that are the same problem,
/// where no other case would be read in two ways.
[[nodiscard]] std::vector<MisreadSoftcap> misread_softcaps(const Case& c);

}  // namespace attest
