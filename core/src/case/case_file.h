// What the file of a case says in its metadata about the case itself.
#pragma once

#include <span>
#include <string_view>

#include "attest/case.h"

namespace attest {

/// Metadata keys that belong to the case, in the order they are read: "attest" "op" "scale" "mask_convention" "causal",
/// and "heads" for multihead. Case::metadata never holds them.
[[nodiscard]] std::span<const std::string_view> case_keys(Operation operation);

}  // namespace attest
