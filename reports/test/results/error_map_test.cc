#include "reports/results/error_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace attest {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(ErrorMap, SharesAreOfTheFarEndAndNaNIsInfinitelyFar) {
  const ElementFacts facts{{1.0, 2.0}, 0.5, true};
  EXPECT_EQ(share_of_allowed(1.0, facts), 2);
  EXPECT_EQ(share_of_allowed(1.75, facts), 1.5);
  EXPECT_EQ(share_of_allowed(std::nan(""), facts), infinite);
  EXPECT_EQ(share_of_allowed(infinite, facts), infinite);
  EXPECT_EQ(share_of_allowed(1.0, {{1.0, 1.0}, 0.0, true}), 0);
  EXPECT_EQ(share_of_allowed(1.5, {{1.0, 1.0}, 0.0, true}), infinite);
  EXPECT_EQ(share_of_allowed(std::nan(""), {{1.0, 2.0}, 0.5, false}), 0);
  // Where every number is allowed an infinite one is, and NaN is none.
  EXPECT_EQ(share_of_allowed(infinite, {{1.0, 2.0}, infinite, true}), 0);
  EXPECT_EQ(share_of_allowed(std::nan(""), {{1.0, 2.0}, infinite, true}), infinite);
  EXPECT_EQ(share_of_allowed(1.0, {{1.0, 2.0}, std::nan(""), true}), infinite);
}

TEST(ErrorMap, SaysWhereSomethingIsWrong) {
  ErrorMap map{1, 4, 8, 2, std::vector<double>(64, 0.5)};
  EXPECT_EQ(map.wrong(), 0);
  EXPECT_EQ(where_wrong(map), "");
  const auto at = [&](std::size_t head, std::size_t query, std::size_t column) -> double& {
    return map.shares[(head * 8 + query) * 2 + column];
  };
  at(1, 3, 0) = 1;
  EXPECT_EQ(where_wrong(map), "");
  at(1, 3, 0) = 1.01;
  EXPECT_EQ(where_wrong(map), "1 of 64 elements: head 1 of 4, query 3 of 8, column 0 of 2");
  at(1, 4, 1) = at(1, 6, 1) = infinite;
  at(2, 3, 0) = 40;
  EXPECT_EQ(where_wrong(map), "4 of 64 elements: heads 1-2 of 4, queries 3-4, 6 of 8, every column");
  for (std::size_t query = 0; query < 8; ++query) at(0, query, 0) = at(3, query, 1) = 2;
  EXPECT_EQ(where_wrong(map), "20 of 64 elements: every head, every query, every column");
  map = {2, 1, 16, 1, std::vector<double>(32)};
  for (std::size_t query = 0; query < 16; query += 2) map.shares[16 + query] = 2;
  EXPECT_EQ(where_wrong(map), "8 of 32 elements: batch entry 1 of 2, 8 of 16 queries");
}

/// Two queries over one key: each row of the answer is v.
AnsweredCase two_rows() {
  AnsweredCase c;
  c.value[Slot::q] = Tensor(DType::f32, {1, 1, 2, 1});
  c.value[Slot::k] = Tensor(DType::f32, {1, 1, 1, 1});
  c.value[Slot::v] = Tensor(DType::f32, {1, 1, 1, 3});
  for (std::int64_t i = 0; i < 3; ++i) c.value[Slot::v].set(i, static_cast<double>(i + 1));
  c.found = Tensor(DType::f32, {1, 1, 2, 3});
  for (std::int64_t i = 0; i < 6; ++i) c.found.set(i, static_cast<double>(i % 3 + 1));
  return c;
}

TEST(ErrorMap, AllowsAnAnswerWhatItsOwnFormatIsAllowed) {
  const Manifest manifest = parse_manifest(R"({"name": "mine", "dtypes": ["bf16"], "out_dtypes": {"bf16": ["f32"]},
                          "arithmetic": {"bf16": {"weights": "f32"}}})",
                                           "mine");
  AnsweredCase c = two_rows();
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    Tensor rounded(DType::bf16, c.value[slot].shape());
    for (std::int64_t i = 0; i < rounded.elements(); ++i) rounded.set(i, c.value[slot][i]);
    c.value[slot] = std::move(rounded);
  }
  // Off by an eighth of a unit in bf16's last place.
  c.found.set(0, 1 + 0x1p-10);
  EXPECT_EQ(error_map(c, manifest)->wrong(), 1);
  // In bf16 itself by a whole one, which is more than rounding.
  Tensor in_bf16(DType::bf16, c.found.shape());
  for (std::int64_t i = 0; i < in_bf16.elements(); ++i) in_bf16.set(i, static_cast<double>(i % 3 + 1));
  c.found = std::move(in_bf16);
  EXPECT_EQ(error_map(c, manifest)->wrong(), 0);
  c.found.set(0, 1 + 0x1p-7);
  EXPECT_EQ(error_map(c, manifest)->wrong(), 1);
}

TEST(ErrorMap, JudgesTheAnswerThatWasKept) {
  const Manifest manifest = parse_manifest(R"({"name": "mine", "dtypes": ["f32"]})", "mine");
  AnsweredCase c = two_rows();
  ASSERT_TRUE(error_map(c, manifest));
  EXPECT_EQ(error_map(c, manifest)->wrong(), 0);
  c.found.set(4, std::nan(""));
  ASSERT_TRUE(error_map(c, manifest));
  EXPECT_EQ(where_wrong(*error_map(c, manifest)), "1 of 6 elements: query 1 of 2, column 1 of 3");
  c.found = {};
  EXPECT_FALSE(error_map(c, manifest));
  // What takes long to answer exactly is left alone.
  c.value[Slot::q] = Tensor(DType::f32, {1, 1, 1 << 14, 64});
  c.value[Slot::k] = Tensor(DType::f32, {1, 1, 1 << 12, 64});
  c.value[Slot::v] = Tensor(DType::f32, {1, 1, 1 << 12, 1});
  c.found = Tensor(DType::f32, c.value.out_shape());
  EXPECT_FALSE(error_map(c, manifest));
}

}  // namespace
}  // namespace attest
