// The generators' words for a case: "scores:near-ties values:ones mask:none shape:small".
#pragma once

#include <algorithm>
#include <string_view>

namespace attest {

/// What follows `group` ("values:") in the first word that begins with it; empty where none does.
[[nodiscard]] inline std::string_view kind_in(std::string_view kinds, std::string_view group) {
  while (!kinds.empty()) {
    const std::size_t end = std::min(kinds.find(' '), kinds.size());
    if (kinds.substr(0, end).starts_with(group)) return kinds.substr(group.size(), end - group.size());
    kinds.remove_prefix(std::min(end + 1, kinds.size()));
  }
  return {};
}

}  // namespace attest
