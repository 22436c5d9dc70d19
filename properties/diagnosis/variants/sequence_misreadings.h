// What a wrong kernel may have taken lengths, padding on the left, packed sequences or a cache for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A reading of lengths or starts.
struct MisreadSequences {
  std::string words;  ///< that follow "it computes as if"
  /// Of the same tensors; nothing where no problem says so, of which the case tells nothing then.
  std::optional<Case> problem;
};

/// Of a case of attention; none where it has none of them. One that means the same as the case
/// itself may be among them.
[[nodiscard]] std::vector<MisreadSequences> misread_sequences(const Case& c);

}  // namespace attest
