// Counts of cases by the classes of their shapes (shape_class.h): what a kernel was judged on, and what of the shapes
// that it was asked it was not.
#pragma once

#include <array>
#include <boost/container/flat_map.hpp>
#include <cstdint>
#include <optional>

#include "core/measure/verdict.h"
#include "core/problem/shape_class.h"

namespace attest {

class JsonWriter;
class Members;

/// Cases of one class.
struct ShapeCount {
  std::int64_t judged = 0;    ///< held or violated
  std::int64_t unjudged = 0;  ///< asked of the kernel, and refused by it, excused or not decided

  void merge(const ShapeCount& other) { judged += other.judged, unjudged += other.unjudged; }
  [[nodiscard]] bool operator==(const ShapeCount&) const = default;
};

/// A case counts once in each facet, so that every facet has as many cases. Merging is associative and commutative.
struct ShapeCounts {
  using Facet = boost::container::flat_map<std::uint8_t, ShapeCount>;

  std::array<Facet, shape_facet_count> facets;  ///< by class; one without a case is not there
  std::optional<Reach> largest;                 ///< of judged cases, each extent by itself

  void add(const Extents& shape, bool judged);
  void merge(const ShapeCounts& other);
  [[nodiscard]] const Facet& of(ShapeFacet facet) const { return facets[static_cast<std::size_t>(facet)]; }
  /// No case was counted, or the journal is of before they were.
  [[nodiscard]] bool empty() const { return facets[0].empty(); }
  [[nodiscard]] bool operator==(const ShapeCounts&) const = default;
};

/// Writes {"largest": [M, N, dk, dv, heads, kv_heads, batch], "M x N": [[class, judged], [class, judged, unjudged], …],
/// …} with a member for each facet.
void write_shapes(JsonWriter& json, const ShapeCounts& shapes);
/// Reads it. Throws BadLine for anything else, and where facets do not count as many cases as one another.
[[nodiscard]] ShapeCounts read_shapes(Members members);
/// Judged and unjudged cases of all classes of a facet.
[[nodiscard]] ShapeCount sum_of(const ShapeCounts::Facet& facet);

}  // namespace attest
