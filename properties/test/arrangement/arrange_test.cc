#include "properties/arrangement/arrange.h"

#include <gtest/gtest.h>

#include <limits>

#include "properties/catalogue/hypotheses.h"

namespace attest {
namespace {

constexpr double hidden_value = -std::numeric_limits<double>::infinity();

Case masked_case() {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 2, 1}, std::vector<double>{1, 2});
  c[Slot::k] = Tensor(DType::f32, {1, 1, 3, 1}, std::vector<double>{3, 4, 5});
  c[Slot::v] = Tensor(DType::f32, {1, 1, 3, 1}, std::vector<double>{6, 7, 8});
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 2, 3}, std::vector<double>{10, 11, 12, 13, 14, 15});
  c.scale = 1;
  return c;
}

TEST(Arrange, DeletionTakesTheMaskAlong) {
  const Case row = without_query(masked_case(), 0), key = without_key(masked_case(), 1);
  EXPECT_EQ(row.q().to_doubles(), (std::vector<double>{2}));
  EXPECT_EQ(row.mask().to_doubles(), (std::vector<double>{13, 14, 15}));
  EXPECT_EQ(key.k().to_doubles(), (std::vector<double>{3, 5}));
  EXPECT_EQ(key.v().to_doubles(), (std::vector<double>{6, 8}));
  EXPECT_EQ(key.mask().to_doubles(), (std::vector<double>{10, 12, 13, 15}));
  validate(row), validate(key);
}

TEST(Arrange, MasksAreWrittenOut) {
  Case c = masked_case();
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 3}, std::vector<double>{1, 0, 1, 1, 1, 1});
  EXPECT_EQ(with_additive_mask(c).mask().to_doubles(), (std::vector<double>{0, hidden_value, 0, 0, 0, 0}));
  c[Slot::mask] = Tensor();
  EXPECT_EQ(with_additive_mask(c).mask().to_doubles(), std::vector<double>(6, 0.0));
  c.causal = Causal::top_left;
  const Case top_left = with_causal_written_out(c);
  EXPECT_EQ(top_left.causal, Causal::none);
  EXPECT_EQ(top_left.mask().to_doubles(), (std::vector<double>{0, hidden_value, hidden_value, 0, 0, hidden_value}));
  c.causal = Causal::bottom_right;
  const Case bottom_right = with_causal_written_out(c);
  EXPECT_EQ(bottom_right.mask().to_doubles(), (std::vector<double>{0, 0, hidden_value, 0, 0, 0}));
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(hidden(c, 0, 0, i, j), hidden(bottom_right, 0, 0, i, j));
}

TEST(Arrange, OneEntryOrAColumnIsHidden) {
  EXPECT_EQ(with_mask_entry(masked_case(), 1, 2, hidden_value).mask().to_doubles(),
            (std::vector<double>{10, 11, 12, 13, 14, hidden_value}));
  EXPECT_EQ(with_mask_entry(masked_case(), -1, 0, hidden_value).mask().to_doubles(),
            (std::vector<double>{hidden_value, 11, 12, hidden_value, 14, 15}));
}

TEST(Arrange, GroupedHeadsKeepTheirKeys) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, 4, 1, 1}, std::vector<double>{0, 1, 2, 3});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 2, 1, 1}, std::vector<double>{5, 6});
  c.scale = 1;
  const Case two = with_heads(c, {3, 1});
  EXPECT_EQ(two.q().to_doubles(), (std::vector<double>{3, 1}));
  EXPECT_EQ(two.k().to_doubles(), (std::vector<double>{6, 5}));
  validate(two);
}

TEST(Arrange, HypothesesAreNamed) {
  Case c = masked_case();
  EXPECT_NE(hypotheses::unmasked.misses(c).find("has a mask"), std::string::npos);
  EXPECT_EQ(hypotheses::unmasked.misses(without_mask(c)), "");
  c.causal = Causal::top_left;
  EXPECT_NE(hypotheses::no_causal_form.misses(c).find("top-left"), std::string::npos);
  EXPECT_EQ(hypotheses::two_queries.misses(c), "");
  EXPECT_EQ(hypotheses::two_queries.misses(with_queries(c, {0})), "has 1 queries; the theorem needs at least 2");
  EXPECT_EQ(hypotheses::two_keys.misses(with_keys(c, {0})), "has 1 keys; the theorem needs at least 2");
}

}  // namespace
}  // namespace attest
