// A sample of rows where a case is too large to be judged as a whole.
#include "core/oracle/rows/sampled_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

Case drawn_case(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto drawn = [&](const Shape& shape) {
    Tensor tensor(DType::f32, shape);
    for (std::int64_t at = 0; at < tensor.elements(); ++at) tensor.set(at, normal(random));
    return tensor;
  };
  Case c;
  c[Slot::q] = drawn({1, heads, queries, 4});
  c[Slot::k] = drawn({1, 1, keys, 4});
  c[Slot::v] = drawn({1, 1, keys, 3});
  c.scale = 0.5;
  return c;
}

TEST(SampledRows, AreTheEndsEdgesOfTilesExtremesAndWhatIsDrawn) {
  Case c = drawn_case(1, 2000, 5);
  for (std::int64_t e = 0; e < 4; ++e) c[Slot::q].set(777 * 4 + e, 100), c[Slot::q].set(1234 * 4 + e, 0);
  detail::Head head;
  head.load(c, sequence_of(c, 0), 0, false);
  std::vector<std::int64_t> rows, again, other;
  detail::sample_rows(head, 100, 1, rows);
  detail::sample_rows(head, 100, 1, again);
  detail::sample_rows(head, 100, 2, other);
  EXPECT_EQ(rows, again);
  EXPECT_NE(rows, other);
  EXPECT_EQ(rows.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.size());
  for (const std::int64_t row : {0, 777, 1234, 1999}) EXPECT_TRUE(std::ranges::binary_search(rows, row)) << row;
  EXPECT_GE(std::ranges::count_if(rows, [](std::int64_t i) { return i % 16 == 0; }), 8);
  EXPECT_GE(std::ranges::count_if(rows, [](std::int64_t i) { return i % 16 == 15; }), 8);
  EXPECT_GE(std::ranges::count_if(rows, [](std::int64_t i) { return i % 256 >= 255 || i % 256 <= 1; }), 3);
  detail::sample_rows(head, 5000, 1, rows);
  EXPECT_EQ(rows.size(), 2000U);
  detail::sample_rows(head, 1, 1, rows);
  EXPECT_EQ(rows, std::vector<std::int64_t>{1999});
}

TEST(SampledRows, AreJudgedAloneAndCounted) {
  const Case c = drawn_case(3, 400, 9);
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  Tensor out(DType::f32, c.out_shape(), test::reference_attention<double>(c));
  const auto judged = [&](std::int64_t rows, std::set<std::int64_t>* seen = nullptr) {
    OracleOptions options{.rows = rows};
    if (seen) options.element = [&](const JudgedElement& e) { seen->insert(e.element / 3); };
    return judge_attention(c, out, {}, a, options);
  };
  std::set<std::int64_t> seen;
  const Verdict some = judged(100, &seen);
  EXPECT_EQ(some.outcome, Outcome::held) << some.reason;
  EXPECT_EQ(some.rows_judged, 100);
  EXPECT_EQ(some.rows, 1200);
  EXPECT_EQ(seen.size(), 100U);
  for (std::int64_t head = 0; head < 3; ++head) {
    const auto of_head = std::ranges::count_if(seen, [&](std::int64_t row) { return row / 400 == head; });
    EXPECT_TRUE(of_head == 33 || of_head == 34) << of_head;
  }
  for (const std::int64_t all : {0, 1200, 5000}) {
    EXPECT_EQ(judged(all).rows_judged, 1200);
    EXPECT_EQ(judged(all).rows, 1200);
  }
  EXPECT_EQ(judged(2).rows_judged, 2);
  // A wrong element is found where its row is judged, and only there.
  const std::int64_t within = *seen.begin();
  std::int64_t without = 0;
  while (seen.contains(without)) ++without;
  const double right = out[without * 3];
  out.set(without * 3, right + 1);
  EXPECT_EQ(judged(100).outcome, Outcome::held);
  EXPECT_EQ(judged(0).outcome, Outcome::violated);
  out.set(without * 3, right);
  out.set(within * 3, out[within * 3] + 1);
  EXPECT_EQ(judged(100).outcome, Outcome::violated);
  EXPECT_EQ(judged(100).element, within * 3);
}

}  // namespace
}  // namespace attest
