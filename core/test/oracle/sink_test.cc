// Sinks: the oracle against the definition on 60 digits, and each term of the bound against a kernel that needs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/kernels/core_problem.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/scalars/mpfr.h"
#include "core/support/infinity.h"
#include "core/test/oracle/variant_bounds.h"

namespace attest {
namespace {

/// Grouped heads, a mask or none, a causal form, a window or none, and a sink of each kind.
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
    if (random.below(2) == 0) c.mask_convention = MaskConvention::pre_scale;
  }
  if (random.below(3) == 0) c.causal = random.below(2) == 0 ? Causal::top_left : Causal::bottom_right;
  if (random.below(3) == 0) c.window_left = random.below(3), settle_alignment(c);
  Tensor sinks(DType::f32, {kv * group});
  for (std::int64_t h = 0; h < sinks.elements(); ++h) {
    const double kinds[] = {random.normal(2), random.normal(30), -infinity, -std::numeric_limits<float>::max(), 0, 80};
    sinks.set(h, kinds[random.below(6)]);
  }
  c[Slot::sink] = std::move(sinks);
  validate(c);
  return c;
}

TEST(SinkOracle, EnclosesTheDefinition) {
  Random random(1);
  int rows = 0, empty = 0, without = 0;
  for (int n = 0; n < 400; ++n) {
    const Case c = random_case(random, n % 2 == 0 ? DType::f32 : DType::f64, n % 20 == 0 ? 90 : 9);
    const AskedPrecision precision(60);
    const CallPrecision<Mpfr> call;
    const std::vector<AttentionResult<Mpfr>> exact = attention_results<Mpfr>(c.problem());
    const AttentionBounds bounds = attention_bounds(c, plain(c.dtype()), /*ignores_dead_values=*/true);
    const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
    for (std::int64_t row = 0; row < std::ssize(bounds.rows); ++row) {
      const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
      const AttentionResult<Mpfr>& page = exact[static_cast<std::size_t>(row / M)];
      if (bound.excuse != Excuse::none) {
        EXPECT_EQ(bound.excuse, Excuse::fully_masked);
        ++without;
        continue;
      }
      ++rows;
      EXPECT_LE(distance(page.lse(row % M), bound.lse), bound.lse_certificate);
      bool sees = false;
      for (std::int64_t j = 0; j < keys_of(c); ++j)
        sees = sees || !hidden(c, row / M / heads_of(c), row / M % heads_of(c), row % M, j);
      for (std::int64_t k = 0; k < dv; ++k) {
        const ElementBound& element = bounds.elements[static_cast<std::size_t>(row * dv + k)];
        EXPECT_LE(distance(page.out(row % M, k), element.value), element.certificate);
        if (!sees) {
          EXPECT_EQ(element.value, 0);
        }
      }
      empty += sees ? 0 : 1;
    }
  }
  EXPECT_GT(rows, 2000);
  EXPECT_GT(empty, 20);
  EXPECT_GT(without, 5);
}

TEST(SinkOracle, AgreesAtEveryLevel) {
  Random random(2);
  for (int n = 0; n < 60; ++n) expect_same_at_every_level(random_case(random, DType::f32, n % 10 == 0 ? 90 : 9));
}

/// One query of one head: the scores of the keys are their first columns, as q is 1 and the scale, too.
Case scores_and_sink(const std::vector<double>& scores, double sink, DType of_sink = DType::f32) {
  const auto n = static_cast<std::int64_t>(scores.size());
  Case c;
  c.scale = 1;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1});
  c[Slot::q].set(0, 1);
  c[Slot::k] = Tensor(DType::f32, {1, 1, n, 1});
  c[Slot::v] = Tensor(DType::f32, {1, 1, n, 1});
  for (std::int64_t j = 0; j < n; ++j) c[Slot::k].set(j, scores[static_cast<std::size_t>(j)]), c[Slot::v].set(j, 1);
  c[Slot::sink] = Tensor(of_sink, {1});
  c[Slot::sink].set(0, sink);
  validate(c);
  return c;
}

/// In float, with the sink's exponential as given.
double attend(const Case& c, float reference, float of_sink) {
  float sum = of_sink, out = 0;
  for (std::int64_t j = 0; j < keys_of(c); ++j) {
    const float weight = std::exp(static_cast<float>(c.k()[j]) - reference);
    sum += weight, out += weight * static_cast<float>(c.v()[j]);
  }
  return static_cast<double>(out / sum);
}

// A sink of a finer format than the scores' is rounded to it.
TEST(SinkBound, NeedsTheConversionOfTheSink) {
  Random random(3);
  double most = 0, most_changed = 0;
  for (int n = 0; n < 2000; ++n) {
    const double sink = 3000 + random.normal(1000);
    const Case c = scores_and_sink({std::round(sink)}, sink, DType::f64);
    const auto reference = static_cast<float>(c.k()[0]);
    const double found = attend(c, reference, std::exp(static_cast<float>(sink) - reference));
    const Used u = used(c, plain(DType::f32), found, [](Profile& p) { p.u_sink = 0; });
    most = std::max(most, u.as_it_is), most_changed = std::max(most_changed, u.changed);
  }
  EXPECT_LE(most, 1);
  EXPECT_GT(most_changed, 1);
}

// In base 2 the sink is multiplied by log2(e), and so is every score, but the sink by itself.
TEST(SinkBound, NeedsItsRoundingsInBaseTwo) {
  Random random(4);
  Arithmetic base2 = plain(DType::f32);
  base2.base2 = true;
  double most = 0, most_changed = 0;
  for (int n = 0; n < 4000; ++n) {
    const auto sink = static_cast<float>(3000 + random.normal(1000));
    const Case c = scores_and_sink({static_cast<double>(sink)}, static_cast<double>(sink));
    // The scale 1 log2(e) is computed apart from the constant, a unit lower.
    const float log2e = std::numbers::log2e_v<float>, lower = std::nextafter(log2e, 0.0F);
    const float x = static_cast<float>(c.k()[0]) * lower, of_sink = sink * log2e, top = std::max(x, of_sink);
    const float weight = std::exp2(x - top), rest = std::exp2(of_sink - top);
    const auto found = static_cast<double>(weight / (weight + rest));
    const Used u = used(c, base2, found, [](Profile& p) { p.u_sink = 0, p.th_l2e = 0, p.th_tau = p.th_of_scale = 0; });
    most = std::max(most, u.as_it_is), most_changed = std::max(most_changed, u.changed);
  }
  EXPECT_LE(most, 1);
  EXPECT_GT(most_changed, 1);
}

// The scale is rounded, and the sink is not scaled, whichever convention masks have.
TEST(SinkBound, NeedsTheErrorOfTheScaleBesideTheSink) {
  Random random(7);
  constexpr double scale = 0.4082482904638631;
  double most = 0;
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    for (int n = 0; n < 2000; ++n) {
      const auto x = static_cast<float>(1e6 * (1 + random.normal(0.2)));
      const auto sink = static_cast<float>(scale * static_cast<double>(x) + random.normal(3));
      Case c = scores_and_sink({static_cast<double>(x)}, static_cast<double>(sink));
      c.scale = scale, c.mask_convention = convention;
      const float s = static_cast<float>(scale) * x, top = std::max(s, sink);
      const double weight = std::exp(static_cast<double>(s - top)), rest = std::exp(static_cast<double>(sink - top));
      most = std::max(most, used(c, plain(DType::f32), weight / (weight + rest), [](Profile&) {}).as_it_is);
    }
    EXPECT_LE(most, 1);
    EXPECT_GT(most, 0.1);
  }
}

// Where the reference is the keys', the exponent of a sink far above it errs as the keys' may.
TEST(SinkBound, HoldsWhereTheReferenceIsBelowTheSink) {
  Random random(5);
  Arithmetic beside = plain(DType::f32);
  beside.sink_in_max = false;
  double most = 0;
  for (int n = 0; n < 4000; ++n) {
    const auto above = static_cast<float>(40 + std::fabs(random.normal(12)));
    const auto key = static_cast<float>(random.normal(1e-3));
    const Case c = scores_and_sink({static_cast<double>(key)}, static_cast<double>(above));
    const double found = attend(c, key, std::exp(above - key));
    most = std::max(most, used(c, beside, found, [](Profile&) {}).as_it_is);
  }
  EXPECT_LE(most, 1);
  EXPECT_GT(most, 0.5);
}

// -inf in the format of the scores: nothing where it has company, and nothing at all where it has none.
TEST(SinkBound, ExcusesASinkThatIsAloneAndBelowTheRange) {
  Arithmetic half = plain(DType::f32);
  half.score_sums = DType::f16;
  EXPECT_EQ(attention_bounds(scores_and_sink({0, 1}, -85963), half).rows[0].excuse, Excuse::none);
  Case alone = scores_and_sink({0}, -85963);
  alone[Slot::mask] = Tensor(DType::boolean, {1, 1, 1, 1});
  EXPECT_EQ(attention_bounds(alone, half).rows[0].excuse, Excuse::overflow);
  EXPECT_EQ(attention_bounds(alone, plain(DType::f32)).rows[0].excuse, Excuse::none);
}

TEST(SinkBound, ExcusesWhatOverflowsBesideTheMaximum) {
  const Case far = scores_and_sink({0, 1}, 120), near = scores_and_sink({0, 1}, 80);
  Arithmetic beside = plain(DType::f32);
  EXPECT_EQ(attention_bounds(far, beside).rows[0].excuse, Excuse::none);
  beside.sink_in_max = false;
  EXPECT_EQ(attention_bounds(far, beside).rows[0].excuse, Excuse::overflow);
  EXPECT_EQ(attention_bounds(near, beside).rows[0].excuse, Excuse::none);
}

TEST(SinkBound, OfTheLowestNumberIsThatWithoutOne) {
  const Case lowest = scores_and_sink({3, 1, 2}, -std::numeric_limits<float>::max());
  Case none = lowest;
  drop_variant(none, sink_variant.name);
  for (const bool base2 : {false, true}) {
    Arithmetic a = plain(DType::f32);
    a.base2 = base2;
    const AttentionBounds with = attention_bounds(lowest, a), without = attention_bounds(none, a);
    EXPECT_EQ(with.rows[0].lse, without.rows[0].lse);
    EXPECT_LE(with.elements[0].allowed, 1.5 * without.elements[0].allowed);
    EXPECT_LE(with.rows[0].lse_allowed, 1.5 * without.rows[0].lse_allowed);
  }
}

}  // namespace
}  // namespace attest
