// What a wrong kernel may have taken a sink for.
#pragma once

#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A reading of the sinks of a case.
struct MisreadSinks {
  std::string words;  ///< that follow "it computes as if"
  Case problem;       ///< with other sinks, or with none
};

/// None where the case has none. One that is the case itself may be among them.
[[nodiscard]] std::vector<MisreadSinks> misread_sinks(const Case& c);

}  // namespace attest
