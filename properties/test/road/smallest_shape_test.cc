// What is said of the tiles of a shrunk finding.
#include "properties/road/smallest_shape.h"

#include <gtest/gtest.h>

namespace attest {
namespace {

std::string said(std::int64_t queries, std::int64_t keys, const Tiles& tiles = {}) {
  return smallest_shape_text({.queries = queries, .keys = keys}, tiles);
}

TEST(SmallestShape, NamesTheTileThatALengthBegins) {
  EXPECT_EQ(said(1, 65), "smallest failing shape found: M 1, N 65 (from the second key tile of 64 on)");
  EXPECT_EQ(said(64, 65),
            "smallest failing shape found: M 64, N 65 (from the second key tile of 64 on, a whole query tile of 64)");
  EXPECT_EQ(said(129, 3), "smallest failing shape found: M 129, N 3 (from the second query tile of 128 on)");
  EXPECT_EQ(said(1, 257), "smallest failing shape found: M 1, N 257 (from the second key tile of 256 on)");
  EXPECT_EQ(said(1, 193), "smallest failing shape found: M 1, N 193 (from the 4th key tile of 64 on)");
  EXPECT_EQ(said(2, 192), "smallest failing shape found: M 2, N 192 (3 whole key tiles of 64)");
}

TEST(SmallestShape, IsSilentWhereALengthSaysNothing) {
  for (const std::int64_t keys : {0, 1, 2, 15, 18, 63, 66, 127}) EXPECT_EQ(said(1, keys), "") << keys;
}

TEST(SmallestShape, TakesTheTilesThatAManifestDeclares) {
  EXPECT_EQ(said(1, 97, {{}, {48}, {}}), "smallest failing shape found: M 1, N 97 (from the third key tile of 48 on)");
  EXPECT_EQ(said(1, 65, {{}, {48}, {}}), "") << "65 is nothing in tiles of 48";
  EXPECT_EQ(said(1, 65, {{16}, {}, {}}), said(1, 65)) << "of queries alone";
}

}  // namespace
}  // namespace attest
