// Shapes to add to a run are beyond what it judged, within the manifest and not too large.
#include "reports/results/shapes_beyond.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/problem/shape_class.h"
#include "reports/run/shape_options.h"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Reach judged{.queries = 1210, .keys = 67116, .dk = 257, .dv = 257, .heads = 48, .kv_heads = 48, .batch = 4};

std::vector<std::string> options_for(const Manifest& manifest, const Reach& reach = judged) {
  std::vector<std::string> options;
  for (const Extents& one : shapes_beyond(reach, manifest)) {
    options.push_back(shape_option(one));
    EXPECT_EQ(shape_of("--shape", options.back().substr(8)), one);
  }
  return options;
}

TEST(ShapesBeyond, AreOfMoreQueriesOfMoreKeysAndOfMoreAndWiderHeads) {
  EXPECT_THAT(options_for(Manifest{}),
              ElementsAre("--shape=1,1,1,2048,2048,64", "--shape=1,1,1,1,131072,64", "--shape=1,64,64,16,16,512"));
}

TEST(ShapesBeyond, AreOfBothLengthsWhereOneWasAlwaysShort) {
  const auto first = [](const Manifest& m, std::int64_t both) {
    const std::vector<Extents> shapes = shapes_beyond(judged, m, both);
    return shapes.empty() ? "" : shape_option(shapes.front());
  };
  EXPECT_EQ(first(Manifest{}, 512), "--shape=1,1,1,1024,1024,64");
  EXPECT_EQ(first(Manifest{}, 4096), "--shape=1,1,1,2048,2048,64") << "8192 of both cost too much";
  EXPECT_EQ(first(Manifest{}, any_extent), "--shape=1,1,1,2048,2048,64");
  Manifest m;
  m.max_queries = 300;
  EXPECT_EQ(first(m, 128), "--shape=1,1,1,256,256,64");
  EXPECT_EQ(first(m, 512), "--shape=1,1,1,1,131072,64");
}

TEST(ShapesBeyond, KeepToTheManifest) {
  Manifest m;
  m.max_queries = 1300, m.max_keys = 4096, m.head_dims = {64, 128}, m.max_heads = 40;
  EXPECT_THAT(options_for(m), ElementsAre("--shape=1,1,1,1300,1300,64"));
  m.same_lengths = true, m.queries_multiple = m.keys_multiple = 64;
  EXPECT_THAT(options_for(m), ElementsAre("--shape=1,1,1,1280,1280,64"));
  m.max_queries = 1210;
  EXPECT_THAT(options_for(m), IsEmpty());
  Manifest grouped;
  grouped.grouped_query = true, grouped.group_sizes = {4}, grouped.max_keys = 100, grouped.max_queries = 100;
  EXPECT_THAT(options_for(grouped), ElementsAre("--shape=1,64,16,16,16,512"));
}

TEST(ShapesBeyond, AreNoneThatCostTooMuch) {
  Reach all = judged;
  all.queries = 100'000;
  EXPECT_THAT(options_for(Manifest{}, all), ElementsAre("--shape=1,1,1,1,131072,64", "--shape=1,64,64,16,16,512"));
  all.queries = 5000;
  EXPECT_EQ(options_for(Manifest{}, all)[0], "--shape=1,1,1,8192,64,64");
}

}  // namespace
}  // namespace attest
