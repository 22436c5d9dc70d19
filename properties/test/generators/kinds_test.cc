// Each kind has the character its name promises, seen from outside: in the numbers a kernel gets.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/problem/sight.h"
#include "properties/generators/recipe.h"
#include "properties/test/inspect.h"

namespace attest {
namespace {

constexpr DType kernels_dtypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

Recipe some(DType dtype, std::uint64_t seed) {
  Recipe r;
  r.dtype = dtype;
  r.seed = seed;
  r.batch = 2;
  r.heads = 2;
  r.kv_heads = 1 + static_cast<std::int32_t>(seed % 2);
  r.queries = 1 + static_cast<std::int32_t>(seed % 5);
  r.keys = 2 + static_cast<std::int32_t>(seed % 7);
  r.dk = 1 + static_cast<std::int32_t>(seed % 9);
  r.dv = 1 + static_cast<std::int32_t>(seed % 4);
  return r;
}

/// Calls see(row of scores, c, b, h, i) for every row of 40 seeds in four dtypes.
template <class Change, class See>
void for_rows(Change change, See see) {
  for (const DType dtype : kernels_dtypes) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Recipe r = some(dtype, seed);
      change(r);
      const Case c = decode(r);
      for (std::int64_t at = 0; at < std::int64_t{r.batch} * r.heads * r.queries; ++at) {
        const std::int64_t b = at / r.queries / r.heads, h = at / r.queries % r.heads, i = at % r.queries;
        std::vector<double> row;
        for (std::int64_t j = 0; j < r.keys; ++j) row.push_back(score(c, b, h, i, j));
        see(row, c, b, h, i);
      }
    }
  }
}

template <class See>
void for_scores(ScoreKind kind, See see) {
  for_rows([&](Recipe& r) { r.scores = kind; },
           [&](std::vector<double>& row, const Case& c, auto...) { see(row, c.dtype()); });
}

double range(const std::vector<double>& row) {
  const auto [low, high] = std::ranges::minmax(row);
  return high - low;
}

TEST(ScoreKinds, ExactTiesTie) {
  for_scores(ScoreKind::exact_ties, [](const std::vector<double>& row, DType) { ASSERT_EQ(range(row), 0.0); });
}

TEST(ScoreKinds, NearTiesDifferByUlps) {
  int differ = 0;
  for_scores(ScoreKind::near_ties, [&](const std::vector<double>& row, DType dtype) {
    // Three ulps of a product of numbers up to 3.5 each.
    ASSERT_LE(range(row), 6 * 2 * format_of(dtype).unit * 3.5 * 3.5);
    differ += range(row) > 0;
  });
  EXPECT_GE(differ, 200);
}

TEST(ScoreKinds, DuplicateKeysRepeatSomeAndNotAll) {
  int ties = 0, spreads = 0;
  for_scores(ScoreKind::duplicate_keys, [&](std::vector<double>& row, DType) {
    std::ranges::sort(row);
    ties += std::ranges::adjacent_find(row) != row.end();
    spreads += range(row) > 0;
  });
  EXPECT_GE(ties, 1000);
  EXPECT_GE(spreads, 1000);
}

TEST(ScoreKinds, DominantStandsOut) {
  for_scores(ScoreKind::dominant, [](std::vector<double>& row, DType) {
    std::ranges::sort(row, std::greater());
    ASSERT_GE(row[0] - row[1], 0.5);
  });
}

TEST(ScoreKinds, OffsetIsCommon) {
  for_scores(ScoreKind::offset, [](const std::vector<double>& row, DType) {
    ASSERT_GE(std::abs(row[0]), 80.0);
    ASSERT_LE(std::abs(row[0]), 3100.0);
    for (const double s : row) ASSERT_EQ(std::signbit(s), std::signbit(row[0]));
  });
}

TEST(ScoreKinds, SpreadSpreads) {
  double widest = 0;
  for_scores(ScoreKind::spread, [&](const std::vector<double>& row, DType) { widest = std::max(widest, range(row)); });
  EXPECT_GE(widest, 100.0);
}

TEST(ScoreKinds, BelowSentinelsLieOnBothSidesOfThem) {
  int above = 0, below = 0;
  for_scores(ScoreKind::below_sentinels, [&](const std::vector<double>& row, DType) {
    for (const double s : row) {
      ASSERT_LE(s, -9000.0);
      (s < -1e4 ? below : above)++;
    }
  });
  EXPECT_GE(above, 500);
  EXPECT_GE(below, 500);
}

TEST(ScoreKinds, UnderflowEdgesLieAboutAnEdge) {
  int near = 0, rows = 0;
  for_scores(ScoreKind::underflow_edges, [&](const std::vector<double>& row, DType) {
    ++rows;
    for (const double edge : {9.7, 16.64, 17.33, 87.34, 103.97, 708.4, 745.1}) {
      if (std::abs(range(row) - edge) <= 2.5) {
        ++near;
        break;
      }
    }
  });
  EXPECT_GE(near, rows * 3 / 4);
}

TEST(ScoreKinds, IllConditionedCancels) {
  // |s| far below sum |q_c k_c|: more than ten times in most rows with an even dk.
  int cancels = 0, rows = 0;
  for_rows(
      [](Recipe& r) {
        r.scores = ScoreKind::ill_conditioned;
        r.dk = 4;
      },
      [&](const std::vector<double>& row, const Case& c, std::int64_t b, std::int64_t h, std::int64_t i) {
        const std::int64_t kv = c.k().shape()[1], n = c.k().shape()[2];
        double size = 0;
        for (int column = 0; column < 4; ++column) {
          size += std::abs(c.q()[((b * 2 + h) * c.q().shape()[2] + i) * 4 + column] *
                           c.k()[(b * kv + h / (2 / kv)) * n * 4 + column]);
        }
        ++rows;
        cancels += std::abs(row[0]) <= 0.1 * c.scale * size;
      });
  EXPECT_GE(cancels, rows / 2);
}

TEST(ScoreKinds, ZeroQueriesGiveZeroScores) {
  for_scores(ScoreKind::zero_queries, [](const std::vector<double>& row, DType) {
    for (const double s : row) ASSERT_EQ(s, 0.0);
  });
}

TEST(ScoreKinds, IntegersAreWhole) {
  for_rows([](Recipe& r) { r.scores = ScoreKind::integers; },
           [](const std::vector<double>&, const Case& c, auto...) {
             for (std::int64_t e = 0; e < c.q().elements(); ++e) ASSERT_EQ(c.q()[e], std::nearbyint(c.q()[e]));
           });
}

TEST(ScoreKinds, HugeIsHugeAndFinite) {
  double largest = 0;
  for_scores(ScoreKind::huge, [&](const std::vector<double>& row, DType) {
    for (const double s : row) {
      ASSERT_TRUE(std::isfinite(s));
      largest = std::max(largest, std::abs(s));
    }
  });
  EXPECT_GE(largest, 1e6);
}

TEST(ScoreKinds, BitClassesHoldZerosSubnormalsAndPowers) {
  int zeros = 0, negative_zeros = 0, subnormal = 0, powers = 0, all_ones = 0;
  for_rows([](Recipe& r) { r.scores = ScoreKind::bit_classes; },
           [&](const std::vector<double>&, const Case& c, auto...) {
             for (std::int64_t e = 0; e < c.q().elements(); ++e) {
               const double x = c.q()[e];
               int exponent = 0;
               zeros += x == 0;
               negative_zeros += x == 0 && std::signbit(x);
               subnormal += x != 0 && std::abs(x) < format_of(c.dtype()).min_normal;
               powers += std::abs(std::frexp(x, &exponent)) == 0.5;
               all_ones += std::abs(std::frexp(x, &exponent)) == 1.0 - format_of(c.dtype()).unit;
             }
           });
  for (const int count : {zeros, negative_zeros, subnormal, powers, all_ones}) EXPECT_GE(count, 100);
}

template <class See>
void for_values(ValueKind kind, MaskKind mask, See see) {
  for (const DType dtype : kernels_dtypes) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Recipe r = some(dtype, seed);
      r.values = kind;
      r.mask = mask;
      see(decode(r));
    }
  }
}

TEST(ValueKinds, OnesAndHalfOnes) {
  for_values(ValueKind::ones, MaskKind::none, [](const Case& c) {
    for (std::int64_t e = 0; e < c.v().elements(); ++e) ASSERT_EQ(c.v()[e], 1.0);
  });
  for_values(ValueKind::half_ones, MaskKind::none, [](const Case& c) {
    const std::int64_t keys = c.v().shape()[2], dv = c.v().shape()[3];
    for (std::int64_t e = 0; e < c.v().elements(); ++e) ASSERT_EQ(c.v()[e], e / dv % keys < keys / 2 ? 0.0 : 1.0);
  });
}

TEST(ValueKinds, OneHotColumnsHaveASingleOne) {
  for (const ValueKind kind : {ValueKind::one_hot, ValueKind::low_weight_one_hot}) {
    for_values(kind, MaskKind::none, [](const Case& c) {
      const Shape& shape = c.v().shape();
      for (std::int64_t at = 0; at < shape[0] * shape[1] * shape[3]; ++at) {
        const std::int64_t block = at / shape[3], column = at % shape[3];
        double sum = 0;
        for (std::int64_t j = 0; j < shape[2]; ++j) sum += c.v()[(block * shape[2] + j) * shape[3] + column];
        ASSERT_EQ(sum, 1.0);
      }
    });
  }
}

TEST(ValueKinds, LowWeightOneHotReadsTheLeastScoreOfTheFirstRow) {
  for_values(ValueKind::low_weight_one_hot, MaskKind::last_block, [](const Case& c) {
    const std::int64_t keys = c.v().shape()[2], dv = c.v().shape()[3];
    double least = INFINITY, read = NAN;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double s = score(c, 0, 0, 0, j);
      if (s > -INFINITY) least = std::min(least, s);
      if (c.v()[j * dv] == 1.0) read = s;
    }
    // Equal but for the rounding of q and k to the dtype after the order was taken.
    ASSERT_LE(read - least, 64 * format_of(c.dtype()).unit * 16);
  });
}

TEST(ValueKinds, ZeroVisibleIsZeroExactlyWhereSomeRowSees) {
  int hidden_keys = 0;
  for (const MaskKind mask : {MaskKind::first_block, MaskKind::middle_block, MaskKind::last_block, MaskKind::padding}) {
    for_values(ValueKind::zero_visible, mask, [&](const Case& c) {
      const std::int64_t heads = c.q().shape()[1], kv = c.k().shape()[1], keys = c.k().shape()[2],
                         dv = c.v().shape()[3];
      for (std::int64_t at = 0; at < 2 * kv * keys; ++at) {
        const std::int64_t b = at / keys / kv, g = at / keys % kv, j = at % keys;
        bool visible = false;
        for (std::int64_t h = g * heads / kv; h < (g + 1) * heads / kv; ++h)
          for (std::int64_t i = 0; i < c.q().shape()[2]; ++i) visible |= score(c, b, h, i, j) > -INFINITY;
        ASSERT_EQ(c.v()[at * dv] == 0.0, visible);
        hidden_keys += !visible;
      }
    });
  }
  EXPECT_GE(hidden_keys, 500);
}

TEST(ValueKinds, CancellingValuesComeInPairs) {
  int close = 0, all = 0;
  for_values(ValueKind::cancelling, MaskKind::none, [&](const Case& c) {
    const double first = c.v()[0], second = c.v()[c.v().shape()[3]];
    ASSERT_TRUE(first == 0 || first * second < 0);
    ++all;
    close += std::abs(first + second) <= 0.1 * std::abs(first);
  });
  EXPECT_GE(close, all / 2);
}

TEST(ValueKinds, HugeSumsStayInTheDomainButForAFew) {
  int inside = 0, all = 0;
  for_values(ValueKind::huge, MaskKind::none, [&](const Case& c) {
    double sum = 0;
    for (std::int64_t j = 0; j < c.v().shape()[2]; ++j) sum += std::abs(c.v()[j * c.v().shape()[3]]);
    ++all;
    inside += sum < 0.5 * format_of(c.dtype()).largest;
    ASSERT_GE(sum, format_of(c.dtype()).largest * 0x1p-14);
  });
  EXPECT_GE(inside, all * 8 / 10);
  EXPECT_LT(inside, all);
}

Case masked(MaskKind kind, std::uint64_t seed, bool boolean, DType dtype = DType::f32) {
  Recipe r = some(dtype, seed);
  r.mask = kind;
  r.boolean_mask = boolean;
  r.mask_per_batch = seed % 2;
  r.mask_per_head = seed % 3 == 0;
  r.queries = 3;
  return decode(r);
}

/// Rows that see nothing, of all rows.
int dead_rows(const Case& c) {
  int dead = 0;
  for (std::int64_t row = 0; row < 2 * 2 * 3; ++row) {
    bool sees = false;
    for (std::int64_t j = 0; j < c.k().shape()[2]; ++j) sees |= score(c, row / 6, row / 3 % 2, row % 3, j) > -INFINITY;
    dead += !sees;
  }
  return dead;
}

TEST(MaskKinds, OnlyTheKindsThatSaySoLeaveARowWithoutKeys) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const bool boolean : {false, true}) {
      for (const MaskKind kind : {MaskKind::random, MaskKind::first_block, MaskKind::middle_block, MaskKind::last_block,
                                  MaskKind::padding, MaskKind::bias, MaskKind::alibi, MaskKind::finite_sentinel}) {
        const Case c = masked(kind, seed, boolean);
        ASSERT_EQ(dead_rows(c), 0) << name_of(kind) << ' ' << seed;
        ASSERT_FALSE(has_fully_masked_row(c));
      }
      for (const MaskKind kind : {MaskKind::whole_row, MaskKind::whole_head}) {
        const Case c = masked(kind, seed, boolean);
        ASSERT_GT(dead_rows(c), 0);
        ASSERT_LT(dead_rows(c), 12);
        ASSERT_TRUE(has_fully_masked_row(c));
      }
    }
  }
}

// Every key of a row at the end of the range, or within a factor of two of it: a bias, and its row has an answer.
TEST(MaskKinds, FiniteSentinelsFillWholeRows) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3}) {
    int lowest = 0, near = 0, none = 0;
    for (std::uint64_t n = 0; n < 400; ++n) {
      const Case c = masked(MaskKind::finite_sentinel, n * 0x9e3779b97f4a7c15, false, dtype);
      const std::int64_t N = c.k().shape()[2], rows = c.mask().elements() / N;
      int filled = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        double least = 0, most = -INFINITY;
        for (std::int64_t j = 0; j < N; ++j) {
          least = std::min(least, c.mask()[row * N + j] / format_of(dtype).largest);
          most = std::max(most, c.mask()[row * N + j] / format_of(dtype).largest);
        }
        if (!(most < -0.5)) continue;
        ++filled;
        EXPECT_EQ(least, most);
        (least == -1 ? lowest : near) += 1;
        if (least != -1) {
          EXPECT_NEAR(least, -0.6, 0.04);
        }
      }
      none += filled == 0;
    }
    EXPECT_GT(lowest, 40) << name_of(dtype);
    EXPECT_GT(near, 40) << name_of(dtype);
    EXPECT_GT(none, 250) << name_of(dtype);
  }
}

TEST(MaskKinds, HideWhatTheySay) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto first_row = [&](MaskKind kind) {
      const Case c = masked(kind, seed, seed % 2 == 0);
      std::vector<bool> sees;
      for (std::int64_t j = 0; j < c.k().shape()[2]; ++j) sees.push_back(score(c, 0, 0, 0, j) > -INFINITY);
      return sees;
    };
    EXPECT_TRUE(std::ranges::is_sorted(first_row(MaskKind::first_block)));
    EXPECT_TRUE(std::ranges::is_sorted(first_row(MaskKind::last_block), std::greater()));
    EXPECT_TRUE(std::ranges::is_sorted(first_row(MaskKind::padding), std::greater()));
  }
}

TEST(MaskKinds, BooleanAndAdditiveFormsHideTheSame) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Case boolean = masked(MaskKind::random, seed, true), additive = masked(MaskKind::random, seed, false);
    ASSERT_EQ(boolean.mask().dtype(), DType::boolean);
    ASSERT_EQ(additive.mask().dtype(), DType::f32);
    for (std::int64_t j = 0; j < boolean.k().shape()[2]; ++j) {
      ASSERT_EQ(score(boolean, 1, 1, 2, j), score(additive, 1, 1, 2, j));
    }
  }
}

TEST(MaskKinds, WithoutInfinityInTheFormatHidingIsBoolean) {
  for (const MaskKind kind : {MaskKind::random, MaskKind::alibi, MaskKind::finite_sentinel}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) validate(masked(kind, seed, false, DType::f8_e4m3));
  }
  EXPECT_EQ(masked(MaskKind::random, 0, false, DType::f8_e4m3).mask().dtype(), DType::boolean);
}

TEST(MaskKinds, DifferBetweenBatchEntriesAndHeadsWhereAsked) {
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Recipe r = some(DType::f32, seed);
    r.mask = MaskKind::random;
    r.mask_per_batch = r.mask_per_head = true;
    const Case c = decode(r);
    ASSERT_EQ(c.mask().shape(), (Shape{2, 2, r.queries, r.keys}));
    const std::size_t plane = c.mask().bytes().size() / 4;
    differ += !std::ranges::equal(c.mask().bytes().first(plane), c.mask().bytes().last(plane));
  }
  EXPECT_GE(differ, 15);
}

TEST(MatrixKinds, ASelfAttentionCaseHasOneTensor) {
  Recipe r = some(DType::f32, 3);
  r.operation = Operation::multihead;
  r.self_attention = true;
  r.c_q = 4;
  r.c_k = 7;
  const Case c = decode(r);
  EXPECT_EQ(c.q(), c.k());
  EXPECT_EQ(c.q(), c.v());
}

}  // namespace
}  // namespace attest
