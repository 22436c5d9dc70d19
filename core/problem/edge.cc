#include "core/problem/edge.h"

#include <algorithm>
#include <array>
#include <string>

namespace attest {
Edge edge_of(const Case& c) {
  const auto found = c.metadata.find(edge_key);
  return found == c.metadata.end() ? Edge::none : named<Edge>(found->second).value_or(Edge::none);
}

void set_edge(Case& c, Edge edge) {
  if (edge == Edge::none) {
    c.metadata.erase(edge_key);
  } else {
    c.metadata[edge_key] = std::string(name_of(edge));
  }
}

}  // namespace attest
