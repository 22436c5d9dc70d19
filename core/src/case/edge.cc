#include "attest/edge.h"

#include <algorithm>
#include <array>
#include <string>

namespace attest {
namespace {

constexpr std::array<std::string_view, 3> names{"none", "front", "behind"};

}  // namespace

std::string_view name_of(Edge edge) noexcept {
  const auto position = static_cast<std::size_t>(edge);
  return position < names.size() ? names[position] : "?";
}

std::optional<Edge> edge_named(std::string_view name) noexcept {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Edge>(found - names.begin());
}

Edge edge_of(const Case& c) {
  const auto found = c.metadata.find(edge_key);
  return found == c.metadata.end() ? Edge::none : edge_named(found->second).value_or(Edge::none);
}

void set_edge(Case& c, Edge edge) {
  if (edge == Edge::none) {
    c.metadata.erase(edge_key);
  } else {
    c.metadata[edge_key] = std::string(name_of(edge));
  }
}

}  // namespace attest
