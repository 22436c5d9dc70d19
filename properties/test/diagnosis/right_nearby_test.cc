// What is right beside a wrong case, of planted faults whose mistake begins at a known place.
#include "properties/diagnosis/right_nearby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/problem/fields.h"
#include "core/test/cases.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Of the first violated case of attention.oracle as it was shrunk.
std::vector<std::string> right_beside(std::string_view fault) {
  const auto kernel = registered(fault);
  const Property& property = property_named("attention.oracle");
  for (std::int64_t k = 0; k < 6000; ++k) {
    const Case c = project(generate(property, DType::f32, 1, k), kernel->manifest());
    if (check_case(property, *kernel, c).outcome != Outcome::violated) continue;
    return right_nearby(*kernel, shrink(property, *kernel, c));
  }
  ADD_FAILURE() << "no case is violated by " << fault;
  return {};
}

TEST(RightNearby, IsFewerKeysOrQueriesWhereTilesEnd) {
  EXPECT_THAT(right_beside("fault:last-tile-not-rescaled"), Contains(StartsWith("N=")));
  EXPECT_THAT(right_beside("fault:prefill-sum-not-rescaled"),
              AllOf(Contains("M=63"), Contains(StartsWith("N=6")), Contains("the wrong query alone")));
}

TEST(RightNearby, IsOneHeadAlone) {
  EXPECT_THAT(right_beside("fault:interleaved-groups"), Contains("the wrong head alone"));
}

TEST(RightNearby, IsWithoutAMask) {
  EXPECT_THAT(right_beside("fault:bias-sign"), Contains("no mask"));
  EXPECT_THAT(right_beside("fault:top-left-for-bottom-right"), Contains("no causal form"));
}

TEST(RightNearby, IsTheUsualScale) {
  EXPECT_THAT(right_beside("fault:scale-ignored"), Contains("the scale 1/sqrt(dk)"));
}

TEST(RightNearby, IsWithoutASoftcap) {
  Tampered halved = asked_otherwise([](Case& c) { c.softcap /= 2; });
  Case c = test::one_query(DType::f32, {1}, {0, 3}, {1, 2});
  c.softcap = 2;
  EXPECT_THAT(right_nearby(halved, c), Contains("no softcap"));
}

TEST(RightNearby, IsWithoutAWindowOrChunks) {
  Tampered wrong = asked_otherwise([](Case& c) {
    if (c.window_left >= 0) ++c.window_left;
    if (c.attention_chunk > 0) ++c.attention_chunk;
  });
  Case windowed = test::one_query(DType::f32, {1}, {0, 3, 1}, {1, 2, 4});
  windowed.alignment = Causal::bottom_right;
  Case chunked = windowed;
  windowed.window_left = 0;
  // The last of three keys by itself; in chunks of 3 there are all.
  chunked.attention_chunk = 2;
  EXPECT_THAT(right_nearby(wrong, windowed), AllOf(Contains("no window"), Not(Contains("no chunks"))));
  EXPECT_THAT(right_nearby(wrong, chunked), AllOf(Contains("no chunks"), Not(Contains("no window"))));
  Case both = chunked;
  both.window_left = 1;
  EXPECT_THAT(right_nearby(wrong, both), Not(AnyOf(Contains("no window"), Contains("no chunks"))))
      << "it is wrong about either";
}

/// One that stands alone stands elsewhere.
TEST(RightNearby, TakesNoQueryAloneWherePositionsCount) {
  Tampered shifted = answered_otherwise(each_out([](double x) { return x == 1 ? 2 : x; }));
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 3, 1});
  c[Slot::k] = Tensor(DType::f32, {1, 1, 3, 1});
  c[Slot::v] = Tensor(DType::f32, {1, 1, 3, 1}, std::vector<double>{5, 7, 1});
  c.attention_chunk = 1, c.alignment = Causal::top_left;
  // Alone the last query would see the first key.
  EXPECT_THAT(right_nearby(shifted, c), AllOf(Contains("M=2"), Not(Contains("the wrong query alone"))));
}

TEST(RightNearby, IsWithoutDropout) {
  Tampered halved = asked_otherwise([](Case& c) { c.dropout_p /= 2; });
  Tampered ignored = asked_otherwise([](Case& c) { drop_variant(c, dropout_variant.name); });
  Case c = test::one_query(DType::f32, {1}, {0, 3}, {1, 2});
  c[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, 2}, std::vector<double>{1, 0});
  c.dropout_p = 0.5;
  EXPECT_THAT(right_nearby(halved, c), AllOf(Contains("no dropout"), Contains("a dropout_p of 0")));
  EXPECT_THAT(right_nearby(ignored, c), AllOf(Contains("no dropout"), Not(Contains("a dropout_p of 0"))));
}

TEST(RightNearby, IsWithoutSlopes) {
  Tampered halved = asked_otherwise([](Case& c) {
    Tensor& slopes = c[Slot::alibi_slopes];
    if (slopes.present()) slopes.set(0, slopes[0] / 2);
  });
  Case c = test::one_query(DType::f32, {1}, {0, 3}, {1, 2});
  c.alignment = Causal::bottom_right;
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1}, std::vector<double>{0.5});
  EXPECT_THAT(right_nearby(halved, c), Contains("no slopes"));
}

TEST(RightNearby, IsWithoutFactors) {
  Tampered halved = asked_otherwise([](Case& c) {
    Tensor& factors = c[Slot::k_descale];
    if (factors.present()) factors.set(factors.elements() - 1, factors[factors.elements() - 1] / 2);
  });
  Tampered of_blocks = asked_otherwise([](Case& c) {
    Tensor& factors = c[Slot::k_descale];
    if (factors.elements() > 1) factors.set(1, factors[1] / 2);
  });
  Case c = test::one_query(DType::f32, {1}, {0, 3}, {1, 2});
  c[Slot::k_descale] = Tensor(DType::f32, {1, 1, 2}, std::vector<double>{0.5, 0.5});
  c.kv_descale_block = 1;
  EXPECT_THAT(right_nearby(halved, c), AllOf(Contains("no factors"), Not(Contains("no blocks of factors"))));
  EXPECT_THAT(right_nearby(of_blocks, c), AllOf(Contains("no factors"), Contains("no blocks of factors")));
}

TEST(RightNearby, IsOfTheLogSumExpToo) {
  EXPECT_THAT(right_beside("fault:lse-of-last-tile-unwritten"), Not(IsEmpty()));
}

/// One row is wrong by what it holds: alone, with its head or its batch entry it is wrong as well, and without it all
/// is right.
TEST(RightNearby, TakesTheWrongOneAlone) {
  Tampered large = answered_otherwise(each_out([](double x) { return x > 5 ? 2 * x : x; }), "builtin:two-pass");
  Case c;
  const Shape shape{2, 2, 2, 1};
  // The first query sees the first key, the second the second, whose value is large in the last head.
  const std::vector<double> rows{-9, 9, -9, 9, -9, 9, -9, 9}, values{1, 2, 1, 2, 1, 2, 1, 20};
  c[Slot::q] = c[Slot::k] = Tensor(DType::f32, shape, rows);
  c[Slot::v] = Tensor(DType::f32, shape, values);
  const std::vector<std::string> right = right_nearby(large, c);
  EXPECT_THAT(right, ElementsAre("N=1", "M=1"));
}

TEST(RightNearby, IsNothingWhereTheOthersAreWrongToo) {
  Tampered twice = answered_otherwise(each_out([](double x) { return 2 * x + 1; }), "builtin:flash");
  const Property& property = property_named("attention.oracle");
  int asked = 0;
  for (std::int64_t k = 0; k < 100; ++k) {
    const Case c = project(generate(property, DType::f32, 1, k), twice.manifest());
    if (check_case(property, twice, c).outcome != Outcome::violated) continue;
    ++asked;
    EXPECT_THAT(right_nearby(twice, c), IsEmpty());
  }
  EXPECT_GT(asked, 50);
}

TEST(RightNearby, IsAskedOfWrongCasesOnly) {
  const auto right = registered("builtin:flash");
  const Property& property = property_named("attention.oracle");
  for (std::int64_t k = 0; k < 50; ++k)
    EXPECT_THAT(right_nearby(*right, project(generate(property, DType::f32, 1, k), right->manifest())), IsEmpty());
}

}  // namespace
}  // namespace attest
