// Slopes: the oracle against the definition on 60 digits, and each term of the bound against a kernel that needs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/test/oracle/variant_bounds.h"

namespace attest {
namespace {

Arithmetic in_form(SlopeForm form, DType dtype = DType::f32) {
  Arithmetic a = plain(dtype);
  a.slopes = form;
  return a;
}
constexpr std::array forms{SlopeForm::distance, SlopeForm::column, SlopeForm::column_divided};

/// Grouped heads, a mask or none, a causal form or an alignment, a window, a sink, a cap or lengths or none, and slopes
/// of each kind, for the batch or for each of its entries.
Case random_case(Random& random, DType dtype, std::int64_t most_keys = 9) {
  const std::int64_t batch = 1 + random.below(2), group = 1 + random.below(2), kv = 1 + random.below(2),
                     M = 1 + random.below(4), N = 1 + random.below(most_keys), dk = 1 + random.below(5);
  Case c;
  c.scale = inverse_root(dk);
  const double size = random.below(3) == 0 ? 6 : 1;
  c[Slot::q] = random.tensor(dtype, {batch, kv * group, M, dk}, size);
  c[Slot::k] = random.tensor(dtype, {batch, kv, N, dk}, size);
  c[Slot::v] = random.tensor(dtype, {batch, kv, N, 3}, 1);
  if (random.below(2) == 0) {
    c[Slot::mask] = random.tensor(dtype, {1, kv * group, M, N}, 1);
    for (std::int64_t e = 0; e < c.mask().elements(); ++e)
      if (random.below(3) == 0) c[Slot::mask].set(e, -infinity);
  } else if (random.below(2) == 0) {
    c.mask_convention = MaskConvention::pre_scale;  // of a mask that is not there
  }
  if (random.below(2) == 0) c.causal = random.below(2) == 0 ? Causal::top_left : Causal::bottom_right;
  if (random.below(3) == 0) c.window_left = random.below(3);
  if (random.below(3) == 0) c[Slot::sink] = random.tensor(DType::f32, {kv * group}, 3);
  if (random.below(3) == 0) c.softcap = 1 + std::fabs(random.normal(4));
  if (random.below(4) == 0) {
    c[Slot::kv_lengths] = Tensor(DType::i32, {batch});
    for (std::int64_t b = 0; b < batch; ++b) c[Slot::kv_lengths].set(b, static_cast<double>(random.below(N + 1)));
  }
  Tensor slopes(DType::f32, {random.below(2) == 0 ? batch : 1, kv * group});
  for (std::int64_t h = 0; h < slopes.elements(); ++h) {
    const std::array<double, 7> kinds{0.5, 0x1p-8, random.normal(1), -0.25, 0, random.normal(40), 1e-42};
    slopes.set(h, kinds[static_cast<std::size_t>(random.below(7))]);
  }
  c[Slot::alibi_slopes] = std::move(slopes);
  if (random.below(2) == 0) c.alignment = Causal::bottom_right;
  settle_alignment(c);
  validate(c);
  return c;
}

TEST(SlopeOracle, EnclosesTheDefinition) {
  Random random(1);
  int rows = 0;
  for (int n = 0; n < 600; ++n) {
    const Case c = random_case(random, n % 2 == 0 ? DType::f32 : DType::f64, n % 20 == 0 ? 90 : 9);
    SCOPED_TRACE(n);
    rows += expect_enclosed(c, in_form(forms[static_cast<std::size_t>(n % 3)], c.dtype()));
  }
  EXPECT_GT(rows, 1500);
}

TEST(SlopeOracle, AgreesAtEveryLevel) {
  Random random(2);
  for (int n = 0; n < 90; ++n)
    expect_same_at_every_level(random_case(random, DType::f32, n % 10 == 0 ? 90 : 9),
                               in_form(forms[static_cast<std::size_t>(n % 3)]));
}

// Rows of one query that are not at one place: what is known of the one is not so of the other.
TEST(SlopeOracle, TellsEqualQueriesAtOtherPlacesApart) {
  Random random(3);
  Case c;
  const std::int64_t M = 256, N = 256;
  c[Slot::q] = Tensor(DType::f32, {1, 1, M, 4});
  c[Slot::k] = random.tensor(DType::f32, {1, 1, N, 4}, 1);
  c[Slot::v] = random.tensor(DType::f32, {1, 1, N, 2}, 1);
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1});
  c[Slot::alibi_slopes].set(0, 0.125);
  settle_alignment(c);
  validate(c);
  Tensor out(DType::f32, c.out_shape());
  const AttentionBounds bounds = attention_bounds(c, plain(DType::f32), true);
  for (std::int64_t e = 0; e < out.elements(); ++e) out.set(e, bounds.elements[static_cast<std::size_t>(e)].value);
  EXPECT_EQ(judge_attention(c, out, {}, plain(DType::f32)).outcome, Outcome::held);
  for (std::int64_t i = 0; i < M; ++i)
    for (std::int64_t e = 0; e < 2; ++e) out.set(i * 2 + e, bounds.elements[static_cast<std::size_t>(e)].value);
  EXPECT_EQ(judge_attention(c, out, {}, plain(DType::f32)).outcome, Outcome::violated);
}

/// The last of n queries of one head, whose products with the keys are t, under a causal form.
struct LastQuery {
  std::vector<double> t, b;  ///< b empty: no mask
  double slope = 0, scale = 1;
  DType dtype = DType::f32;

  [[nodiscard]] Case made(Random& random) const {
    const auto n = static_cast<std::int64_t>(t.size());
    Case c;
    c.scale = scale;
    c.causal = Causal::bottom_right;
    c[Slot::q] = Tensor(dtype, {1, 1, 1, 1});
    c[Slot::q].set(0, 1);
    c[Slot::k] = Tensor(dtype, {1, 1, n, 1});
    for (std::int64_t j = 0; j < n; ++j) c[Slot::k].set(j, t[static_cast<std::size_t>(j)]);
    c[Slot::v] = random.tensor(dtype, {1, 1, n, 1}, 1);
    if (!b.empty()) {
      c[Slot::mask] = Tensor(dtype, {1, 1, 1, n});
      for (std::int64_t j = 0; j < n; ++j) c[Slot::mask].set(j, b[static_cast<std::size_t>(j)]);
    }
    c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1});
    c[Slot::alibi_slopes].set(0, slope);
    settle_alignment(c);
    validate(c);
    return c;
  }
};

/// The output where the scores are these, in double: what is left is what they err by.
double output_of(const Case& c, const std::vector<double>& scores) {
  const double most = *std::ranges::max_element(scores);
  double sum = 0, out = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double w = std::exp(scores[j] - most);
    sum += w, out += w * c.v()[static_cast<std::int64_t>(j)];
  }
  return out / sum;
}

/// Everything but the scores is as good as exact.
Arithmetic scores_alone(SlopeForm form) {
  Arithmetic a = in_form(form);
  a.accumulate = a.weights = a.output = DType::f64;
  a.exp_ulp = 0x1p-20;
  return a;
}

/// The score of key j from its product and its bias, where the last one's position is p.
using ScoreOf = std::function<double(float t, float b, float slope, std::int64_t j, std::int64_t p)>;

/// The largest use of the bound by a kernel with these scores, as it is and changed, of two keys as far apart as can be
/// whose weights both count: what the slope takes from the first one, its product gives, or its mask.
Used most_used(const Arithmetic& arithmetic, const ScoreOf& score_of, const std::function<void(Profile&)>& change,
               bool masked = false, double scale = 1) {
  Random random(4);
  Used most;
  constexpr std::int64_t n = 3000;
  for (int turn = 0; turn < 300; ++turn) {
    LastQuery query;
    const auto slope = static_cast<float>(0.3 + std::fabs(random.normal(0.3)));
    query.slope = static_cast<double>(slope), query.scale = scale;
    const double level = query.slope * static_cast<double>(n - 1) + random.normal(0.5);
    for (std::int64_t j = 0; j < n; ++j) {
      const double given = j == 0 ? level : j == n - 1 ? random.normal(0.5) : -1e4;
      const auto t = static_cast<float>((masked ? random.normal(1) : given) / scale);
      query.t.push_back(static_cast<double>(t));
      if (masked) query.b.push_back(static_cast<double>(static_cast<float>(given)));
    }
    Case c = query.made(random);
    for (std::int64_t j = 0; j < n; ++j) c[Slot::v].set(j, j == 0 ? 1 : 0);
    std::vector<double> scores;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      scores.push_back(
          score_of(static_cast<float>(query.t[at]), masked ? static_cast<float>(query.b[at]) : 0.0F, slope, j, n - 1));
    }
    const Used u = used(c, arithmetic, output_of(c, scores), change);
    most = {std::max(most.as_it_is, u.as_it_is), std::max(most.changed, u.changed)};
  }
  return most;
}

TEST(SlopeBound, NeedsTheProductWithTheDistance) {
  const Used u = most_used(
      scores_alone(SlopeForm::distance),
      [](float t, float, float slope, std::int64_t j, std::int64_t p) {
        return static_cast<double>(t - slope * static_cast<float>(p - j));
      },
      [](Profile& p) { p.u_slope = p.th_scale = p.u_s = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.as_it_is, 0.2);
  EXPECT_GT(u.changed, 1);
}

// In the form of columns the scores of the nearest keys are the largest numbers: the shift is of all, their roundings
// are not.
TEST(SlopeBound, NeedsTheSizesOfTheColumnForm) {
  const ScoreOf column = [](float t, float, float slope, std::int64_t j, std::int64_t) {
    return static_cast<double>(t + slope * static_cast<float>(j));
  };
  // Products so small that only the last keys count.
  Random random(7);
  double as_column = 0, as_distance = 0;
  for (int turn = 0; turn < 200; ++turn) {
    LastQuery query;
    query.slope = static_cast<double>(static_cast<float>(0.5 + std::fabs(random.normal(0.2))));
    for (int j = 0; j < 2048; ++j) query.t.push_back(static_cast<double>(static_cast<float>(random.normal(1))));
    const Case c = query.made(random);
    std::vector<double> scores;
    scores.reserve(2048);
    for (std::int64_t j = 0; j < 2048; ++j)
      scores.push_back(column(static_cast<float>(query.t[static_cast<std::size_t>(j)]), 0,
                              static_cast<float>(query.slope), j, 2047));
    const double found = output_of(c, scores);
    as_column = std::max(as_column, used(c, scores_alone(SlopeForm::column), found, [](Profile&) {}).as_it_is);
    as_distance = std::max(as_distance, used(c, scores_alone(SlopeForm::distance), found, [](Profile&) {}).as_it_is);
  }
  EXPECT_LE(as_column, 1);
  EXPECT_GT(as_column, 0.02);
  EXPECT_GT(as_distance, 10);
}

TEST(SlopeBound, NeedsTheDivisionOfTheSlope) {
  const float scale = 0.3F;
  const Used u = most_used(
      scores_alone(SlopeForm::column_divided),
      [&](float t, float, float slope, std::int64_t j, std::int64_t) {
        const float divided = slope / scale;
        return static_cast<double>((t + divided * static_cast<float>(j)) * scale);
      },
      [](Profile& p) { p.u_slope = p.th_divided = p.th_scale = p.th_tau = p.u_s = 0; }, /*masked=*/false,
      static_cast<double>(scale));
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.as_it_is, 0.1);
  EXPECT_GT(u.changed, 1);
}

// Two sums: what a mask and a slope take from each other is no longer seen in their result.
TEST(SlopeBound, NeedsTheFirstOfTwoSums) {
  for (const bool slope_first : {false, true}) {
    const Used u = most_used(
        scores_alone(SlopeForm::distance),
        [&](float t, float b, float slope, std::int64_t j, std::int64_t p) {
          const float part = -slope * static_cast<float>(p - j);
          return static_cast<double>(slope_first ? (t + part) + b : (t + b) + part);
        },
        [](Profile& p) { p.u_both = 0; }, /*masked=*/true);
    EXPECT_LE(u.as_it_is, 1);
    EXPECT_GT(u.as_it_is, 0.3);
    EXPECT_GT(u.changed, 1);
  }
}

// What the format of the scores cannot hold of a slope, relatively and below its least number.
TEST(SlopeBound, NeedsTheConversionOfTheSlope) {
  Arithmetic half = scores_alone(SlopeForm::distance);
  half.score_sums = DType::f16;
  Random random(8);
  LastQuery query;
  query.slope = 0x1p-25;  // half way between 0 and the least number of f16
  query.t.assign(2000, 0.0);
  const Case c = query.made(random);
  const double found = output_of(c, std::vector<double>(2000, 0.0));
  const Used u = used(c, half, found, [](Profile& p) { p.lam_slope = p.lam_scale = p.lam_s = p.lam_e = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

// Between the form of the scores and that of the log-sum-exp the shift is taken off, and what is left is rounded.
TEST(SlopeBound, NeedsTheShiftOfTheLogSumExp) {
  Random random(9);
  LastQuery query;
  query.slope = static_cast<double>(0.3F);
  for (int j = 0; j < 2048; ++j) query.t.push_back(static_cast<double>(static_cast<float>(random.normal(1))));
  const Case c = query.made(random);
  const double shift = query.slope * 2047;
  for (const SlopeForm form : forms) {
    Arithmetic definition = in_form(form), columns = definition;
    columns.lse_of_columns = true;
    const double as_definition = attention_bounds(c, definition).rows[0].lse_allowed;
    const double as_columns = attention_bounds(c, columns).rows[0].lse_allowed;
    const double least = shift * 0x1p-24;  // of one rounding of the shift
    if (form == SlopeForm::distance) {
      EXPECT_LT(as_definition, least);
    } else {
      EXPECT_GT(as_definition, as_columns + least) << static_cast<int>(form);
    }
    EXPECT_GT(as_columns, least) << static_cast<int>(form);
  }
}

// A sink is shifted with the scores.
TEST(SlopeBound, NeedsTheShiftOfTheSink) {
  Random random(10);
  Used most;
  for (int turn = 0; turn < 200; ++turn) {
    LastQuery query;
    query.slope = static_cast<double>(static_cast<float>(0.5 + std::fabs(random.normal(0.2))));
    for (int j = 0; j < 2048; ++j) query.t.push_back(0);
    Case c = query.made(random);
    c[Slot::sink] = random.tensor(DType::f32, {1}, 1);
    std::vector<double> scores;
    scores.reserve(2048);
    const auto slope = static_cast<float>(query.slope);
    for (std::int64_t j = 0; j < 2048; ++j) scores.push_back(static_cast<double>(slope) * static_cast<double>(j));
    const float sink = static_cast<float>(c[Slot::sink][0]) + slope * 2047.0F;
    const double largest = std::max(scores.back(), static_cast<double>(sink));
    double sum = std::exp(static_cast<double>(sink) - largest), out = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double w = std::exp(scores[j] - largest);
      sum += w, out += w * c.v()[static_cast<std::int64_t>(j)];
    }
    const Used u = used(c, scores_alone(SlopeForm::column), out / sum,
                        [](Profile& p) { p.u_shift = 0, p.u_slope = 0, p.th_bias = p.th_scale = 0, p.u_e = 0; });
    most = {std::max(most.as_it_is, u.as_it_is), std::max(most.changed, u.changed)};
  }
  EXPECT_LE(most.as_it_is, 1);
  EXPECT_GT(most.changed, 1);
}

// Scores that a slope has pushed out of the format are nobody's.
TEST(SlopeBound, ExcusesWhatLeavesTheRange) {
  Random random(11);
  LastQuery query;
  query.t = {0, 0, 0};
  const auto excuse = [&](double slope, SlopeForm form, double scale = 1) {
    query.slope = slope, query.scale = scale;
    return attention_bounds(query.made(random), in_form(form)).rows[0].excuse;
  };
  for (const SlopeForm form : forms) {
    EXPECT_EQ(excuse(1e30, form), Excuse::none);
    EXPECT_EQ(excuse(2.5e38, form), Excuse::overflow);
  }
  EXPECT_EQ(excuse(1e30, SlopeForm::column, 1e-12), Excuse::none);
  EXPECT_EQ(excuse(1e30, SlopeForm::column_divided, 1e-12), Excuse::overflow);
}

// Whole numbers are exact in whichever order they are added up.
TEST(SlopeBound, KnowsExactScores) {
  Random random(12);
  LastQuery query;
  query.slope = 0.5;
  query.t = {3, -2, 5, 0};
  const Case c = query.made(random);
  detail::Head head;
  head.load(c, sequence_of(c, 0), 0, false);
  const Arithmetic a = plain(DType::f32);
  const Profile p = detail::profile_for(c, head, a);
  detail::RowOracle oracle;
  ASSERT_EQ(oracle.start(head, 0, p, true, true, 4096), Excuse::none);
  const double exact = oracle.element(0).allowed;
  query.slope = 0.1;
  const Case other = query.made(random);
  head.load(other, sequence_of(other, 0), 0, false);
  detail::RowOracle rounded;
  ASSERT_EQ(rounded.start(head, 0, detail::profile_for(other, head, a), true, true, 4096), Excuse::none);
  EXPECT_LT(oracle.terms().most_E, rounded.terms().most_E);
  EXPECT_GT(exact, 0);
}

}  // namespace
}  // namespace attest
