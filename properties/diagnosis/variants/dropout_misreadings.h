// What a wrong kernel may have taken dropout for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A reading of the dropout of a case. Its words call dropout_p p.
struct MisreadDropout {
  std::string words;      ///< that follow "it computes as if"; with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  std::string remedy{};   ///< what makes such a kernel right, as a sentence; empty: nothing that an adapter can do
  /// What is kept is multiplied by nearly the same: answers in a narrow format may not tell it from what is meant.
  bool is_near = false;
  /// With another keep, another rate, other values or sinks; or without dropout, and what the reading makes of scores
  /// is in the mask.
  Case problem;
};

/// None where the case has no keep: of a mask that the kernel draws nobody knows what it is taken for. One that is the
/// case itself may be among them, and two that are the same problem, where no other case would be read in two ways.
[[nodiscard]] std::vector<MisreadDropout> misread_dropout(const Case& c);

/// The case without dropout, and with a mask that hides what it drops. What hides keys by their position stays.
[[nodiscard]] Case with_dropped_keys_hidden(const Case& c);

}  // namespace attest
