#include "core/problem/shape_class.h"

#include <gtest/gtest.h>

#include <set>

namespace attest {
namespace {

Extents plain() {
  return {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .dk = 1, .dv = 1};
}

std::string words(const Extents& e, ShapeFacet facet) {
  return class_words(facet, shape_classes(e)[static_cast<std::size_t>(facet)]);
}

template <std::size_t count>
void expect_contiguous(const std::array<ExtentRange, count>& ranges, std::int64_t first) {
  EXPECT_EQ(ranges.front().least, first);
  EXPECT_EQ(ranges.back().most, any_extent);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    EXPECT_LE(ranges[i].least, ranges[i].most);
    EXPECT_EQ(ranges[i].most + 1, ranges[i + 1].least);
  }
}

TEST(ShapeClass, RangesLeaveNoExtentOut) {
  expect_contiguous(length_ranges, 0);
  expect_contiguous(head_dim_ranges, 1);
  expect_contiguous(head_ranges, 1);
  expect_contiguous(group_ranges, 1);
  expect_contiguous(batch_ranges, 1);
}

TEST(ShapeClass, BothEndsOfARangeAreInIt) {
  for (std::size_t i = 0; i < length_ranges.size(); ++i) {
    for (const std::int64_t end : {length_ranges[i].least, length_ranges[i].most}) {
      Extents e = plain();
      e.queries = end;
      EXPECT_EQ(shape_classes(e)[0], i * length_ranges.size() + 1);
      e = plain();
      e.keys = end;
      EXPECT_EQ(shape_classes(e)[0], length_ranges.size() + i);
    }
  }
}

TEST(ShapeClass, SaysWhatAProductionShapeIs) {
  const Extents e{.batch = 2, .heads = 32, .kv_heads = 8, .queries = 128, .keys = 200, .dk = 128, .dv = 64};
  EXPECT_EQ(words(e, ShapeFacet::lengths), "M 65..128, N 129..512");
  EXPECT_EQ(words(e, ShapeFacet::tiles_16), "queries: whole ones, keys: a partial last");
  EXPECT_EQ(words(e, ShapeFacet::tiles_64), "queries: whole ones, keys: a partial last");
  EXPECT_EQ(words(e, ShapeFacet::tiles_128), "queries: within one, keys: a partial last");
  EXPECT_EQ(words(e, ShapeFacet::head_dim), "dk 128");
  EXPECT_EQ(words(e, ShapeFacet::value_dim), "dv < dk");
  EXPECT_EQ(words(e, ShapeFacet::heads), "9..32 heads");
  EXPECT_EQ(words(e, ShapeFacet::group), "4..8 to one");
  EXPECT_EQ(words(e, ShapeFacet::batch), "2..3 batch entries");
}

TEST(ShapeClass, SaysWhatTheSmallestShapeIs) {
  Extents e = plain();
  EXPECT_EQ(words(e, ShapeFacet::lengths), "M 1, N 1");
  EXPECT_EQ(words(e, ShapeFacet::tiles_16), "queries: within one, keys: within one");
  EXPECT_EQ(words(e, ShapeFacet::head_dim), "dk 1..8");
  EXPECT_EQ(words(e, ShapeFacet::heads), "1 head");
  EXPECT_EQ(words(e, ShapeFacet::group), "one to one");
  EXPECT_EQ(words(e, ShapeFacet::batch), "1 batch entry");
  e.queries = e.keys = 0;
  EXPECT_EQ(words(e, ShapeFacet::lengths), "M 0, N 0");
  e.kv_heads = 0;  // of multihead
  EXPECT_EQ(words(e, ShapeFacet::group), "one to one");
}

TEST(ShapeClass, ATileAtItsEdge) {
  for (const std::int64_t tile : {16, 64, 128}) {
    EXPECT_EQ(tiling_of(0, tile), Tiling::within);
    EXPECT_EQ(tiling_of(tile - 1, tile), Tiling::within);
    EXPECT_EQ(tiling_of(tile, tile), Tiling::within);
    EXPECT_EQ(tiling_of(tile + 1, tile), Tiling::partial);
    EXPECT_EQ(tiling_of(2 * tile, tile), Tiling::whole);
    EXPECT_EQ(tiling_of(2 * tile + 1, tile), Tiling::partial);
  }
}

TEST(ShapeClass, EveryClassHasWordsOfItsOwn) {
  for (std::size_t i = 0; i < shape_facet_count; ++i) {
    const auto facet = static_cast<ShapeFacet>(i);
    std::set<std::string> all;
    for (std::size_t index = 0; index < classes_in(facet); ++index) all.insert(class_words(facet, index));
    EXPECT_EQ(all.size(), classes_in(facet)) << name_of(facet);
    EXPECT_FALSE(all.contains("")) << name_of(facet);
    EXPECT_EQ(class_words(facet, classes_in(facet)), "") << name_of(facet);
    EXPECT_LE(classes_in(facet), 256U) << "ShapeClasses holds bytes";
  }
}

}  // namespace
}  // namespace attest
