// Cases counted by the classes of their shapes: merged, written, read, and refused where they do not add up.
#include "core/journal/shape_counts.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/journal/journal.h"
#include "core/support/errors.h"

namespace attest {
namespace {

Extents shape_of(std::int64_t queries, std::int64_t keys) {
  return {.batch = 2, .heads = 4, .kv_heads = 2, .queries = queries, .keys = keys, .dk = 64, .dv = 32};
}

/// Three judged cases and one that the kernel refused.
BatchRecord counted() {
  BatchRecord batch{{"attention.oracle", "builtin:flash", "f32"}, 0, 4, {}, {}};
  std::int64_t k = 0;
  for (const Extents& shape : {shape_of(128, 200), shape_of(128, 200), shape_of(1, 8192)})
    batch.tally.add(k++, {.utilisation = 0.5}, "", 0, &shape);
  const Extents refused = shape_of(16, 16);
  batch.tally.add(k, {.outcome = Outcome::skipped, .reason = "unsupported: M"}, "", 0, &refused);
  return batch;
}

std::string text_of(const BatchRecord& batch) {
  return stamped(to_line(RunRecord{}) + to_line(batch));
}

std::string error_of(const std::string& text) {
  try {
    (void)parse_journal(text, "j");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

/// The journal of counted() with `right` replaced by `wrong`, and its checksums anew.
std::string changed(const std::string& right, const std::string& wrong) {
  std::string line = to_line(counted());
  const std::size_t at = line.find(right);
  EXPECT_NE(at, std::string::npos) << line;
  line.replace(at, right.size(), wrong);
  return stamped(to_line(RunRecord{}) + line);
}

TEST(ShapeCounts, CountEveryCaseOnceInEachFacet) {
  const ShapeCounts shapes = counted().tally.shapes;
  for (const ShapeCounts::Facet& facet : shapes.facets) EXPECT_EQ(sum_of(facet), (ShapeCount{3, 1}));
  const std::size_t production = shape_classes(shape_of(128, 200))[0], small = shape_classes(shape_of(16, 16))[0];
  EXPECT_EQ(shapes.facets[0].at(static_cast<std::uint8_t>(production)), (ShapeCount{2, 0}));
  EXPECT_EQ(shapes.facets[0].at(static_cast<std::uint8_t>(small)), (ShapeCount{0, 1}));
  EXPECT_EQ(shapes.largest, (Reach{128, 8192, 64, 32, 4, 2, 2}));
}

TEST(ShapeCounts, MergeInAnyOrder) {
  const Extents one = shape_of(1, 1), two = shape_of(65, 129), three = shape_of(0, 4);
  ShapeCounts a, b, c;
  a.add(one, true), b.add(two, false), c.add(three, true);
  const auto merged = [](ShapeCounts to, const ShapeCounts& from) {
    to.merge(from);
    return to;
  };
  EXPECT_EQ(merged(merged(a, b), c), merged(a, merged(b, c)));
  EXPECT_EQ(merged(a, b), merged(b, a));
  EXPECT_EQ(merged(a, ShapeCounts()), a);
  EXPECT_NE(merged(a, b), a);
}

TEST(ShapeCounts, AreReadAsTheyWereWritten) {
  const Journal journal = parse_journal(text_of(counted()), "j");
  EXPECT_EQ(journal.batches.at(0).tally, counted().tally);
}

TEST(ShapeCounts, AreNotThereInAJournalOfBefore) {
  BatchRecord before{{"attention.oracle", "builtin:flash", "f32"}, 0, 1, {}, {}};
  before.tally.add(0, {.utilisation = 0.5});
  EXPECT_EQ(to_line(before).find("shapes"), std::string::npos);
  const Tally read = parse_journal(text_of(before), "j").batches.at(0).tally;
  EXPECT_TRUE(read.shapes.empty());
  // One that goes on with an older one counts what it has.
  Tally both = read;
  both.merge(counted().tally);
  EXPECT_EQ(sum_of(both.shapes.of(ShapeFacet::batch)), (ShapeCount{3, 1}));
}

TEST(ShapeCounts, ThatDoNotAddUpAreRefused) {
  EXPECT_EQ(error_of(text_of(counted())), "no error");
  const auto refused = [](const std::string& right, const std::string& wrong, const std::string& why) {
    const std::string error = error_of(changed(right, wrong));
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  refused("\"dk\":[[3,3,1]]", "\"dk\":[[3,2,1]]", "\"shapes\" counts other cases by \"dk\"");
  refused("\"dk\":[[3,3,1]]", "\"dk\":[[99,3,1]]", "has the class 99, which is none");
  refused("\"dk\":[[3,3,1]]", "\"dk\":[[3]]", "must hold a class with its counts");
  refused("\"dk\":[[3,3,1]]", "\"dk\":[[3,-3,1]]", "whole number of at least 0");
  refused("\"largest\":[128,8192,64,32,4,2,2]", "\"largest\":[128,8192]", "\"largest\" must hold 7 extents");
  refused("\"largest\":[128,8192,64,32,4,2,2],", "", "\"largest\" of \"shapes\" is of judged cases");
  // More than there were.
  BatchRecord more = counted();
  more.tally.shapes.add(shape_of(1, 1), true);
  EXPECT_NE(error_of(text_of(more)).find("more judged cases than were held or violated"), std::string::npos);
  more = counted();
  more.tally.shapes.add(shape_of(1, 1), false);
  EXPECT_NE(error_of(text_of(more)).find("more cases than were not judged"), std::string::npos);
}

}  // namespace
}  // namespace attest
