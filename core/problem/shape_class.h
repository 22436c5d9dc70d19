// Shape classes: what kind of shape a problem has, in a few facets of a few classes each. Runs count their cases by
// them, so that what was judged, and what never was, can be said; whoever draws cases draws for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/problem/selection.h"
#include "core/support/words.h"

namespace attest {

/// A way to look at a shape. Every shape is in one class of each.
enum class ShapeFacet : std::uint8_t {
  lengths,    ///< ranges of M and of N, together
  tiles_16,   ///< what tiles of 16 queries and of 16 keys make of M and N
  tiles_64,   ///< of 64
  tiles_128,  ///< of 128
  head_dim,   ///< ranges of dk
  value_dim,  ///< dv beside dk
  heads,      ///< ranges of the heads of q
  group,      ///< ranges of heads of q to a head of keys and values
  batch       ///< ranges of batch entries
};
/// As journals and summaries have them.
template <>
struct Words<ShapeFacet> {
  static constexpr std::array<std::string_view, 9> names{"M x N",    "tiles of 16", "tiles of 64", "tiles of 128", "dk",
                                                         "dv to dk", "heads",       "group",       "batch"};
};
inline constexpr std::size_t shape_facet_count = Words<ShapeFacet>::names.size();

/// Every extent from `least` to `most` inclusive.
struct ExtentRange {
  std::int64_t least, most;
};
inline constexpr std::int64_t any_extent = std::numeric_limits<std::int64_t>::max();
/// Each begins where the one before ends, so that no extent is left out.
inline constexpr std::array<ExtentRange, 9> length_ranges{
    {{0, 0}, {1, 1}, {2, 16}, {17, 64}, {65, 128}, {129, 512}, {513, 4096}, {4097, 65536}, {65537, any_extent}}};
/// The widths that fast kernels have a path of their own for stand alone.
inline constexpr std::array<ExtentRange, 9> head_dim_ranges{
    {{1, 8}, {9, 32}, {33, 63}, {64, 64}, {65, 127}, {128, 128}, {129, 255}, {256, 256}, {257, any_extent}}};
inline constexpr std::array<ExtentRange, 6> head_ranges{{{1, 1}, {2, 2}, {3, 4}, {5, 8}, {9, 32}, {33, any_extent}}};
inline constexpr std::array<ExtentRange, 5> group_ranges{{{1, 1}, {2, 2}, {3, 3}, {4, 8}, {9, any_extent}}};
inline constexpr std::array<ExtentRange, 4> batch_ranges{{{1, 1}, {2, 3}, {4, 8}, {9, any_extent}}};

/// What tiles of one size make of a length.
enum class Tiling : std::uint8_t {
  within,  ///< at most one tile
  whole,   ///< two tiles or more, and nothing else
  partial  ///< one tile or more, and a part of one behind it
};
template <>
struct Words<Tiling> {
  static constexpr std::array<std::string_view, 3> names{"within one", "whole ones", "a partial last"};
};
/// `tile` is positive, `length` is not negative.
[[nodiscard]] constexpr Tiling tiling_of(std::int64_t length, std::int64_t tile) {
  if (length <= tile) return Tiling::within;
  return length % tile == 0 ? Tiling::whole : Tiling::partial;
}

/// The class of a shape in every facet, by ShapeFacet.
using ShapeClasses = std::array<std::uint8_t, shape_facet_count>;
/// `e` is of a valid problem: extents are positive, but for queries and keys, which may be 0.
[[nodiscard]] ShapeClasses shape_classes(const Extents& e);

/// Classes of a facet are 0, 1, … below this.
[[nodiscard]] std::size_t classes_in(ShapeFacet facet);
/// "M 17..64, N 65..128", "queries: whole ones, keys: a partial last", "dk 64", "dv = dk", "5..8 heads", "one to one",
/// "more than 8 to one", "2..3 batch entries". Empty for a number that is no class of the facet.
[[nodiscard]] std::string class_words(ShapeFacet facet, std::size_t index);

}  // namespace attest
