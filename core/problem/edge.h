// Which end of every tensor of a call stands against a page that nobody may touch. Memory around a tensor that reads as
// NaN shows a read outside it only where what was read is used; such a page shows any. The provenance of a case says
// "front" or "behind", so that a replay lays its memory out as the run did.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/problem/case.h"
#include "core/support/words.h"

namespace attest {

enum class Edge : std::int32_t {
  none,   ///< between guard zones, no page nearer than it happens to be
  front,  ///< the first element begins where a page begins that follows a protected one
  behind  ///< the last element ends where a page ends that a protected one follows, or as near as the alignment that
          ///< the kernel asks for lets it
};

template <>
struct Words<Edge> {
  static constexpr std::array<std::string_view, 3> names{"none", "front", "behind"};
};
/// What the provenance says; none where it says nothing, or a word that is none.
[[nodiscard]] Edge edge_of(const Case& c);
void set_edge(Case& c, Edge edge);

}  // namespace attest
