// Which kernels come with the project, by their ids.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace attest {

/// Kernels that come with the project are known.
[[nodiscard]] inline bool is_own(std::string_view id) {
  constexpr std::array<std::string_view, 5> families{"builtin:", "core:", "document:", "fault:", "control:"};
  return std::ranges::any_of(families, [&](std::string_view family) { return id.starts_with(family); });
}

/// Adapters that come with the project keep nothing between two calls, and their processes take seconds to start.
[[nodiscard]] inline bool is_own_adapter(std::string_view id) {
  return id.starts_with("pytorch:") || id.starts_with("ort:");
}

}  // namespace attest
