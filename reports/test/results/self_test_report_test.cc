// The search's own figures: out to a file, back, and onto the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/test/refusal.h"
#include "reports/page/print.h"
#include "reports/sections/self_test.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

SelfTestRead example() {
  SelfTestRead read;
  read.plan.seeds = 3;
  read.plan.most_runs = 100;
  read.result.detections = {{"a<b", "attention.oracle", "f32", {5, 7, 101}, {101, 101, 9}}};
  read.result.worsts = {{"builtin:flash", "bf16", {0.75, 0.5, 0.625}, {0.5, 0.25, 0.375}}};
  return read;
}

TEST(SelfTestReport, ComesBackFromItsFile) {
  SelfTestRead before = example();
  before.result.worsts[0].unguided[2] = INFINITY;  // NaN where a number must be
  const SelfTestRead after = parse_self_test(self_test_json(before.result, before.plan), "a file");
  EXPECT_EQ(after.plan.seeds, 3);
  EXPECT_EQ(after.plan.most_runs, 100);
  ASSERT_EQ(after.result.detections.size(), 1U);
  EXPECT_EQ(after.result.detections[0].fault, "a<b");
  EXPECT_EQ(after.result.detections[0].guided, before.result.detections[0].guided);
  EXPECT_EQ(after.result.detections[0].unguided, before.result.detections[0].unguided);
  ASSERT_EQ(after.result.worsts.size(), 1U);
  EXPECT_EQ(after.result.worsts[0].dtype, "bf16");
  EXPECT_EQ(after.result.worsts[0].guided, before.result.worsts[0].guided);
  EXPECT_EQ(after.result.worsts[0].unguided, before.result.worsts[0].unguided);
}

// Found by scores_fuzzer: what was read was not what was written of it.
TEST(SelfTestReport, ANegativeZeroIsZero) {
  std::string text = self_test_json(example().result, example().plan);
  text.replace(text.find("[0.75,"), 6, "[-0e7,");
  const SelfTestRead read = parse_self_test(text, "it");
  EXPECT_FALSE(std::signbit(read.result.worsts[0].guided[0]));
  const std::string written = self_test_json(read.result, read.plan);
  const SelfTestRead again = parse_self_test(written, "it");
  EXPECT_EQ(self_test_json(again.result, again.plan), written);
}

TEST(SelfTestReport, IsRefusedInOneLine) {
  const std::string good = self_test_json(example().result, example().plan);
  for (const std::string& text : {std::string("{}"), std::string("["), std::string("{\"schema\":\"other\"}"),
                                  std::string(good).replace(good.find("[5,7,101]"), 9, "[]"),
                                  std::string(good).replace(good.find("[5,7,101]"), 9, "\"5\""),
                                  std::string(good).replace(good.find("[5,7,101]"), 9, "[1e300]"),
                                  std::string(good).replace(good.find("[5,7,101]"), 9, "[-5]"),
                                  std::string(good).replace(good.find("[0.75,"), 6, "[-0.75,"),
                                  std::string(good).replace(good.find("[0.75,"), 6, "[true,"),
                                  std::string(good).replace(good.find("[0.75,"), 6, "[\"nan\",")}) {
    EXPECT_THAT(refusal([&] { return parse_self_test(text, "it"); }), testing::StartsWith("it: ")) << text;
  }
}

TEST(SelfTestReport, IsATableOnThePageWhereThereIsOne) {
  const fake::Folder folder;
  EXPECT_EQ(html_of(self_test_page(folder.path())), "");
  EXPECT_EQ(html_of(self_test_page("")), "");
  write_file_atomically(folder / "self-test.json", self_test_json(example().result, example().plan));
  const std::string html = html_of(self_test_page(folder.path()));
  EXPECT_THAT(html, Says("a&lt;b",
                         "<td class=\"number\">2/3</td><td class=\"number\">7</td><td class=\"number\">1/3</td>"
                         "<td class=\"number\">&gt; 100</td><td class=\"number\">0.78</td>",
                         "<td class=\"number\">0.625</td><td class=\"number\">0.375</td><td class=\"number\">1.67"));
}

}  // namespace
}  // namespace attest
