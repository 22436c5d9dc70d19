// Rows of a window cost the keys that they see: no other score is computed, and of those that are no bit differs.
#include "core/oracle/rows/head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/workspace.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

struct Shape {
  DType dtype;
  std::int64_t queries, keys, dk, left, right;
  Causal causal = Causal::none, alignment = Causal::bottom_right;
};

Problem problem_of(const Shape& s) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto drawn = [&](std::int64_t rows) {
    Tensor tensor(s.dtype, {1, 1, rows, s.dk});
    for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, normal(random));
    return tensor;
  };
  Problem c;
  c[Slot::q] = drawn(s.queries), c[Slot::k] = drawn(s.keys), c[Slot::v] = drawn(s.keys);
  c.window_left = s.left, c.window_right = s.right, c.causal = s.causal, c.alignment = s.alignment;
  settle_alignment(c);
  return c;
}

/// f32 has blocks of several rows, f64 one row at a time; keys that end within a panel, and rows without a key.
const Shape shapes[] = {{DType::f32, 40, 200, 8, 10, 3},
                        {DType::f32, 40, 203, 8, 0, 0, Causal::none, Causal::top_left},
                        {DType::f32, 200, 70, 5, 20, -1, Causal::bottom_right},
                        {DType::f32, 37, 300, 8, -1, 5, Causal::none, Causal::top_left},
                        {DType::f64, 40, 200, 8, 10, 3},
                        {DType::f64, 31, 77, 3, 17, -1, Causal::top_left},
                        {DType::bf16, 64, 512, 16, 127, -1, Causal::bottom_right}};

std::vector<std::int64_t> rows_from(std::int64_t i, std::int64_t queries) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(std::min(rows_at_once, queries - i)));
  std::iota(rows.begin(), rows.end(), i);
  return rows;
}

void expect_same_bits(double one, double other) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(one), std::bit_cast<std::uint64_t>(other)) << one << " and " << other;
}

TEST(ScoresOfRow, AreTheSameBitsOfAnyPartOfTheKeys) {
  for (const Shape& shape : shapes) {
    const Problem c = problem_of(shape);
    Head head;
    head.load(c, sequence_of(c, 0), 0, /*same_keys=*/false);
    Row part, whole;
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      const Sight seen = sight(head.sight_rule, i, head.queries, head.keys);
      if (seen.first == seen.last) continue;
      take_query(head, rows_from(i, head.queries), part);
      take_query(head, rows_from(i, head.queries), whole);
      scores_of_row(head, seen.first, seen.last, part);
      scores_of_row(head, 0, head.keys, whole);
      for (std::int64_t j = seen.first; j < seen.last; ++j) {
        expect_same_bits(part.x[j], whole.x[j]);
        expect_same_bits(part.size[j], whole.size[j]);
      }
    }
  }
}

TEST(ScoresOfRow, CostTheKeysThatTheBlockSees) {
  for (const Shape& shape : shapes) {
    const Problem c = problem_of(shape);
    Head head;
    head.load(c, sequence_of(c, 0), 0, /*same_keys=*/false);
    const Profile profile = profile_for(c, head, universal_arithmetic(shape.dtype, shape.dtype));
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      Row row;
      row.block.x.assign(static_cast<std::size_t>(rows_at_once * padded(head.keys)), -infinity);
      const std::vector<std::int64_t> rows = rows_from(i, head.queries);
      if (evaluate_double(head, rows, profile, /*ignores_dead_values=*/true, false, row) != Excuse::none) continue;
      std::int64_t computed = 0, most = 0;
      for (std::int64_t j = 0; j < padded(head.keys); ++j) computed += row.x[j] != -infinity ? 1 : 0;
      for (std::int64_t r = 0; r < row.block.rows; ++r) {
        const Sight seen = sight(head.sight_rule, row.block.row[static_cast<std::size_t>(r)], head.queries, head.keys);
        most = std::max(most, seen.last - seen.first);
      }
      EXPECT_LE(computed, most + row.block.rows + 2 * panel_width) << "row " << i;
    }
  }
}

}  // namespace
}  // namespace attest::detail
