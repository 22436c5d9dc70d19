#include "core/problem/edge.h"

#include <algorithm>
#include <array>
#include <string>

namespace attest {
Edge edge_of(const Case& c) {
  return named<Edge>(c.provenance.edge.value_or("")).value_or(Edge::none);
}

void set_edge(Case& c, Edge edge) {
  if (edge == Edge::none) {
    c.provenance.edge.reset();
  } else {
    c.provenance.edge = name_of(edge);
  }
}

}  // namespace attest
