// What a row sees, beside the predicate that reference_attention.h writes out: every M and N up to 5, every causal
// form, every kind of mask and every way in which heads and batch entries share one; and every window and every length
// of chunks, both ways aligned, with ends and lengths up to 6.
#include "core/problem/sight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "core/test/cases.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

constexpr double hidden_entry = -std::numeric_limits<double>::infinity();
constexpr std::int64_t most = 5;

enum class MaskOf { nothing, booleans, numbers, numbers_and_infinities };

/// Draws afresh, so that no two batch entries, heads or rows hide the same.
Tensor drawn_mask(MaskOf kind, const Shape& shape, std::mt19937_64& random) {
  if (kind == MaskOf::nothing) return {};
  return test::filled(kind == MaskOf::booleans ? DType::boolean : DType::f64, shape, [&]() -> double {
    const auto bits = random();
    if (kind == MaskOf::booleans) return static_cast<double>(bits & 1);
    if (kind == MaskOf::numbers_and_infinities && (bits & 1) != 0) return hidden_entry;
    return static_cast<double>(bits >> 56) - 128;
  });
}

/// Calls visit with every problem of M x N scores, in two batch entries of two heads.
void for_each_problem(Operation operation, std::int64_t M, std::int64_t N,
                      const std::function<void(const Case&)>& visit) {
  std::mt19937_64 random(static_cast<std::uint64_t>(M * 8 + N));
  Case c = test::case_of(operation, {.batch = 2, .heads = 2, .queries = M, .keys = N}, {Slot::q, Slot::k, Slot::v},
                         [](Slot, const Shape& shape) { return Tensor(DType::f64, shape); });
  for (const Causal causal : {Causal::none, Causal::top_left, Causal::bottom_right}) {
    c.causal = causal;
    for (const MaskOf kind : {MaskOf::nothing, MaskOf::booleans, MaskOf::numbers, MaskOf::numbers_and_infinities}) {
      for (const std::int64_t batch : {1, 2}) {
        for (const std::int64_t heads : {1, 2}) {
          c[Slot::mask] = drawn_mask(kind, {batch, heads, M, N}, random);
          visit(c);
        }
      }
    }
  }
}

/// Windows and chunks with and without a causal form, of no mask or one of booleans.
void for_each_window(const std::function<void(const Case&)>& visit) {
  std::mt19937_64 random(7);
  for (std::int64_t M = 0; M <= most; ++M) {
    for (std::int64_t N = 0; N <= most; ++N) {
      Case c = test::case_of(Operation::attention, {.batch = 2, .heads = 2, .queries = M, .keys = N},
                             {Slot::q, Slot::k, Slot::v},
                             [](Slot, const Shape& shape) { return Tensor(DType::f64, shape); });
      for (const Causal causal : {Causal::none, Causal::top_left, Causal::bottom_right}) {
        for (const Causal alignment : {Causal::top_left, Causal::bottom_right}) {
          for (std::int64_t left = -1; left <= most + 1; ++left) {
            for (std::int64_t right = -1; right <= most + 1; ++right) {
              c.causal = causal;
              c.window_left = left, c.window_right = right;
              c[Slot::mask] = (left + right) % 3 == 0 ? drawn_mask(MaskOf::booleans, {1, 2, M, N}, random) : Tensor();
              for (std::int64_t chunk = 0; chunk <= most + 1; ++chunk) {
                c.attention_chunk = chunk;
                c.alignment = alignment;
                settle_alignment(c);
                validate(c);
                visit(c);
              }
            }
          }
        }
      }
    }
  }
}

void for_each_problem(const std::function<void(const Case&)>& visit) {
  for_each_window(visit);
  for (const Operation operation : {Operation::attention, Operation::multihead})
    for (std::int64_t M = 0; M <= most; ++M)
      for (std::int64_t N = 0; N <= most; ++N) for_each_problem(operation, M, N, visit);
}

std::string named(const Case& c) {
  return std::string(name_of(c.operation)) + " of " + std::to_string(queries_of(c)) + " x " +
         std::to_string(keys_of(c)) + ", causal " + std::string(name_of(c.causal)) + ", mask " +
         (c.mask().present() ? std::string(name_of(c.mask().dtype())) + c.mask().shape().to_string() : "none");
}

TEST(Sight, OfAWindowHasBothItsEnds) {
  const SightRule rule{.window_left = 2, .window_right = 1, .alignment = Causal::bottom_right};
  // Four rows, ten keys: row 0 is at position 6.
  EXPECT_EQ(sight(rule, 0, 4, 10).first, 4);
  EXPECT_EQ(sight(rule, 0, 4, 10).last, 8);
  EXPECT_EQ(sight(rule, 3, 4, 10).last, 10);
  // Rows before and behind the keys see none.
  EXPECT_EQ(sight(rule, 0, 10, 4).first, sight(rule, 0, 10, 4).last);
  const SightRule top{.window_left = 2, .alignment = Causal::top_left};
  EXPECT_EQ(sight(top, 6, 7, 4).first, 4);
  EXPECT_EQ(sight(top, 6, 7, 4).last, 4);
  EXPECT_EQ(sight(top, 5, 7, 4).first, 3);
  // No end overflows.
  const SightRule far{.window_left = 0x7fffffff, .window_right = 0x7fffffff, .alignment = Causal::top_left};
  EXPECT_EQ(sight(far, 0x7ffffffe, 0x7fffffff, 0x7fffffff).first, 0);
  EXPECT_EQ(sight(far, 0x7ffffffe, 0x7fffffff, 0x7fffffff).last, 0x7fffffff);
}

TEST(Sight, OfChunksIsTheRowsOwnChunk) {
  const SightRule rule{.alignment = Causal::bottom_right, .chunk = 4};
  // Three rows, ten keys: they are at positions 7, 8 and 9.
  EXPECT_EQ(sight(rule, 0, 3, 10).first, 4);
  EXPECT_EQ(sight(rule, 0, 3, 10).last, 8);
  EXPECT_EQ(sight(rule, 1, 3, 10).first, 8);
  EXPECT_EQ(sight(rule, 1, 3, 10).last, 10);
  // A row before the keys is in a chunk without one, and so is one behind them.
  EXPECT_EQ(sight(rule, 0, 5, 4).first, sight(rule, 0, 5, 4).last);
  EXPECT_EQ(sight(rule, 1, 5, 4).last, 4);
  const SightRule top{.alignment = Causal::top_left, .chunk = 4};
  EXPECT_EQ(sight(top, 8, 9, 8).first, sight(top, 8, 9, 8).last);
  // What else hides keys hides them within the chunk.
  const SightRule all{.causal = Causal::top_left, .window_left = 1, .alignment = Causal::top_left, .chunk = 4};
  EXPECT_EQ(sight(all, 4, 9, 9).first, 4);
  EXPECT_EQ(sight(all, 4, 9, 9).last, 5);
  EXPECT_EQ(sight(all, 7, 9, 9).first, 6);
  const SightRule far{.alignment = Causal::top_left, .chunk = 0x7fffffff};
  EXPECT_EQ(sight(far, 0x7ffffffe, 0x7fffffff, 0x7fffffff).first, 0);
  EXPECT_EQ(sight(far, 0x7fffffff, 0x7fffffffLL + 1, 0x7fffffffLL + 1).first, 0x7fffffff);
}

TEST(Alignment, IsThatOfTheCausalFormAndOfWindowsAlone) {
  Problem c;
  c.alignment = Causal::bottom_right;
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::none);
  c.window_left = 0;
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::top_left);
  c.alignment = Causal::bottom_right;
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::bottom_right);
  c.causal = Causal::top_left;
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::top_left);
}

TEST(Alignment, IsThatOfSlopesToo) {
  Problem c;
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1});
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::top_left);
  c.alignment = Causal::bottom_right, c.window_left = 0;
  // What the other one asks for stays.
  Problem without_window = c, without_slopes = c, without_both = c;
  drop_variant(without_window, window_variant.name);
  EXPECT_EQ(without_window.window_left, -1);
  EXPECT_EQ(without_window.alignment, Causal::bottom_right);
  drop_variant(without_slopes, alibi_variant.name);
  EXPECT_FALSE(without_slopes[Slot::alibi_slopes].present());
  EXPECT_EQ(without_slopes.alignment, Causal::bottom_right);
  for (const std::string_view name : {alibi_variant.name, window_variant.name}) drop_variant(without_both, name);
  EXPECT_EQ(without_both.alignment, Causal::none);
}

TEST(Alignment, StaysAsLongAsAnythingAsksForIt) {
  Problem c;
  c.attention_chunk = 3, c.window_left = 0, c.alignment = Causal::bottom_right;
  settle_alignment(c);
  EXPECT_EQ(c.alignment, Causal::bottom_right);
  drop_variant(c, window_variant.name);
  EXPECT_EQ(c.alignment, Causal::bottom_right);
  drop_variant(c, chunk_variant.name);
  EXPECT_EQ(c.attention_chunk, 0);
  EXPECT_EQ(c.alignment, Causal::none);
}

TEST(Slopes, TakeTheDistanceInTheRowsOwnSequence) {
  Case c = test::attention_of({.batch = 2, .heads = 2, .queries = 3, .keys = 5},
                              [](Slot, const Shape& shape) { return Tensor(DType::f32, shape); });
  EXPECT_EQ(slope_of(c, 1, 1), 0);
  EXPECT_EQ(bias_of(c, 1, 1, 2, 0), 0);
  c[Slot::alibi_slopes] = Tensor(DType::f32, {2, 2}, std::vector<double>{0.5, -2, 0, 0.25});
  c.alignment = Causal::top_left;
  EXPECT_EQ(slope_of(c, 0, 1), -2);
  EXPECT_EQ(slope_of(c, 1, 1), 0.25);
  EXPECT_EQ(distance_of(c, 0, 2, 0), 2);
  EXPECT_EQ(distance_of(c, 0, 0, 4), 4) << "keys behind a row are as far as those before it";
  EXPECT_EQ(slope_term(c, 0, 1, 2, 0), 4);
  c.alignment = Causal::bottom_right;
  EXPECT_EQ(distance_of(c, 0, 2, 0), 4);
  EXPECT_EQ(distance_of(c, 0, 0, 4), 2);
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 3, 5});
  c[Slot::mask].set(10, 7);
  EXPECT_EQ(bias_of(c, 0, 0, 2, 0), 7 - 0.5 * 4);
  // One row of slopes serves all entries.
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 2}, std::vector<double>{0.5, -2});
  EXPECT_EQ(slope_of(c, 1, 1), -2);
  // Lengths and padding change M, N and where keys begin.
  c[Slot::q_lengths] = Tensor(DType::i32, {2}, std::vector<double>{3, 2});
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{5, 4});
  EXPECT_EQ(distance_of(c, 1, 1, 0), 3);
  EXPECT_EQ(distance_of(c, 1, 0, 3), 1);
  EXPECT_EQ(distance_of(c, 1, 2, 0), 0) << "a row of no sequence";
  c[Slot::left_pad] = Tensor(DType::i32, {2}, std::vector<double>{0, 1});
  EXPECT_EQ(distance_of(c, 1, 1, 1), 2);
}

TEST(Sight, IsARangeOfTheKeysByPosition) {
  for_each_problem([](const Case& c) {
    const std::int64_t M = queries_of(c), N = keys_of(c);
    Case without = c;
    without[Slot::mask] = {};
    for (std::int64_t i = 0; i < M; ++i) {
      const Sight seen = sight(sight_rule(c), i, M, N);
      ASSERT_TRUE(0 <= seen.first && seen.first <= seen.last && seen.last <= N) << named(c) << ", row " << i;
      for (std::int64_t j = 0; j < N; ++j)
        ASSERT_EQ(seen.sees(j), test::added_to_score(without, 0, 0, i, j, M, N) != hidden_entry)
            << named(c) << ", row " << i << ", key " << j;
    }
  });
}

TEST(Sight, IsThatOfTheReference) {
  for_each_problem([](const Case& c) {
    const std::int64_t M = queries_of(c), N = keys_of(c);
    bool some_row_sees_nothing = false;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t i = 0; i < M; ++i) {
          std::int64_t seen = 0;
          for (std::int64_t j = 0; j < N; ++j) {
            const double added = test::added_to_score(c, b, h, i, j, M, N);
            ASSERT_EQ(hidden(c, b, h, i, j), added == hidden_entry)
                << named(c) << ", row " << b << " " << h << " " << i << ", key " << j;
            if (added == hidden_entry) continue;
            ++seen;
            ASSERT_EQ(bias_of(c, b, h, i, j), added) << named(c);
          }
          some_row_sees_nothing |= seen == 0;
        }
      }
    }
    ASSERT_EQ(has_fully_masked_row(c), some_row_sees_nothing) << named(c);
  });
}

TEST(Sight, NothingHidesTheAppendedRow) {
  for_each_problem([](const Case& c) {
    if (c.operation != Operation::multihead) return;
    Case appended = c;
    appended[Slot::bias_k] = appended[Slot::bias_v] = Tensor(DType::f64, {2});
    ASSERT_FALSE(has_fully_masked_row(appended)) << named(c);
  });
}

}  // namespace
}  // namespace attest
