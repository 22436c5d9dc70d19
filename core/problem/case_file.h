// What the file of a case says in its metadata about the case itself.
#pragma once

#include <string_view>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// Metadata keys that belong to the case, in the order they are read: "attest", "op" and the operation's scalars
/// (fields.h). Provenance never holds them.
[[nodiscard]] std::vector<std::string_view> case_keys(Operation operation);

}  // namespace attest
