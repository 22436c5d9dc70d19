// The keys of a manifest's JSON.
#pragma once

#include <string_view>
#include <vector>

namespace attest {

[[nodiscard]] std::vector<std::string_view> manifest_keys();
/// Of "limits", and of "arithmetic".
[[nodiscard]] std::vector<std::string_view> limit_keys();
[[nodiscard]] std::vector<std::string_view> arithmetic_keys();

}  // namespace attest
