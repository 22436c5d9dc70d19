// Dropout: the oracle against the definition on 60 digits, and each term of the bound against a kernel that needs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "core/kernels/core_problem.h"
#include "core/oracle/oracle.h"
#include "core/oracle/wide_oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/scalars/mpfr.h"
#include "core/support/infinity.h"
#include "core/test/oracle/variant_bounds.h"

namespace attest {
namespace {

Arithmetic applied_to(DropoutPlace place, DType dtype = DType::f32) {
  Arithmetic a = plain(dtype);
  a.dropout = place;
  return a;
}

/// Grouped heads, a mask or none, a causal form, a sink or none, masks of dropout that batch entries and heads share or
/// not, of which some drop all of a row.
Case random_case(Random& random, DType dtype, std::int64_t most_keys = 9, std::int64_t of_rates = 6) {
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
  }
  if (random.below(3) == 0) c.causal = random.below(2) == 0 ? Causal::top_left : Causal::bottom_right;
  if (random.below(3) == 0) c[Slot::sink] = random.tensor(DType::f32, {kv * group}, 3);
  constexpr std::array<double, 6> rates{0, 0.1, 0.25, 0.5, 0.9, 0.999};
  c.dropout_p = rates[static_cast<std::size_t>(random.below(of_rates))];
  Tensor keep(DType::boolean, {random.below(2) == 0 ? 1 : batch, random.below(2) == 0 ? 1 : kv * group, M, N});
  const std::int64_t of_ten = random.below(11);
  for (std::int64_t e = 0; e < keep.elements(); ++e) keep.set(e, random.below(10) < of_ten ? 1 : 0);
  c[Slot::keep] = std::move(keep);
  validate(c);
  return c;
}

TEST(DropoutOracle, EnclosesTheDefinition) {
  Random random(1);
  int rows = 0, nothing = 0;
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
      if (bound.excuse != Excuse::none) continue;
      ++rows;
      EXPECT_LE(distance(page.lse(row % M), bound.lse), bound.lse_certificate);
      bool any = false;
      for (std::int64_t j = 0; j < keys_of(c); ++j) {
        const std::int64_t b = row / M / heads_of(c), h = row / M % heads_of(c);
        any = any || (!hidden(c, b, h, row % M, j) && keeps(c, b, h, row % M, j));
      }
      nothing += any ? 0 : 1;
      for (std::int64_t k = 0; k < dv; ++k) {
        const ElementBound& element = bounds.elements[static_cast<std::size_t>(row * dv + k)];
        EXPECT_LE(distance(page.out(row % M, k), element.value), element.certificate) << c.dropout_p;
        EXPECT_LE(element.certificate, 0x1p-40 / (1 - c.dropout_p)) << c.dropout_p;
        if (!any) {
          EXPECT_EQ(element.value, 0);
        }
      }
    }
  }
  EXPECT_GT(rows, 2000);
  EXPECT_GT(nothing, 100);
}

TEST(DropoutOracle, AgreesAtEveryLevel) {
  Random random(2);
  // Of rates up to 1/2, beyond which 0.01 may be within the bound.
  for (int n = 0; n < 60; ++n) expect_same_at_every_level(random_case(random, DType::f32, n % 10 == 0 ? 90 : 9, 4));
}

/// One query whose scores are all 0, so that each of n keys weighs 1/n; these are kept.
Case even(const std::vector<double>& values, const std::vector<int>& kept, double p, DType dtype = DType::f32) {
  const auto n = static_cast<std::int64_t>(values.size());
  Case c;
  c.scale = 1;
  c[Slot::q] = Tensor(dtype, {1, 1, 1, 1});
  c[Slot::k] = Tensor(dtype, {1, 1, n, 1});
  c[Slot::v] = Tensor(dtype, {1, 1, n, 1});
  c[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, n});
  for (std::int64_t j = 0; j < n; ++j) {
    c[Slot::v].set(j, values[static_cast<std::size_t>(j)]);
    c[Slot::keep].set(j, kept[static_cast<std::size_t>(j)]);
  }
  c.dropout_p = p;
  validate(c);
  return c;
}

TEST(DropoutOracle, DividesByWhatIsKept) {
  const AttentionBounds bounds = attention_bounds(even({1, 2, 4, 8}, {1, 0, 1, 0}, 0.75), plain(DType::f32));
  EXPECT_EQ(bounds.elements[0].value, 5);
  EXPECT_NEAR(bounds.rows[0].lse, std::log(4), 1e-15);
}

// The certificate of a value in units of the least double, as it is of no weight at all.
TEST(DropoutOracle, HasAnAnswerOfZeroWhereNothingIsKept) {
  const AttentionBounds bounds = attention_bounds(even({1, 2}, {0, 0}, 0.5), plain(DType::f32));
  EXPECT_EQ(bounds.elements[0].value, 0);
  EXPECT_LT(bounds.elements[0].allowed, 1e-40);
  EXPECT_EQ(bounds.elements[0].excuse, Excuse::none);
}

/// The largest use of the bound by a kernel that answers so for a rate and a value of one key of two, as it is and
/// changed.
using Answers = std::function<double(float value, double p)>;
Used most_used(const Arithmetic& arithmetic, const Answers& answers, const std::function<void(Profile&)>& change,
               double least = 0.05, double most_rate = 0.95) {
  Random random(4);
  Used most;
  for (int n = 0; n < 4000; ++n) {
    const double p = least + (most_rate - least) * static_cast<double>(random.below(1 << 20)) * 0x1p-20;
    const double value = round_to(arithmetic.input, random.normal(1));
    const Case c = even({value, 1}, {1, 0}, p, arithmetic.input);
    const Used u = used(c, arithmetic, answers(static_cast<float>(value), p), change);
    most = {std::max(most.as_it_is, u.as_it_is), std::max(most.changed, u.changed)};
  }
  return most;
}

/// 1/(1 - p) of a rounded p.
float gain_of_float(double p) {
  return 1 / (1 - static_cast<float>(p));
}

TEST(DropoutBound, NeedsTheRoundingsOfTheOutput) {
  const Answers by_output = [](float v, double p) { return static_cast<double>(0.5F * v * gain_of_float(p)); };
  const auto change = [](Profile& p) { p.u_gained = 0; };
  const Used u = most_used(applied_to(DropoutPlace::output), by_output, change);
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
  EXPECT_LE(most_used(plain(DType::f32), by_output, change).as_it_is, 1);
}

TEST(DropoutBound, NeedsTheRoundingsOfTheWeights) {
  const Answers by_weights = [](float v, double p) { return static_cast<double>(0.5F * gain_of_float(p) * v); };
  const auto change = [](Profile& p) { p.u_drop = 0; };
  const Used u = most_used(applied_to(DropoutPlace::weights), by_weights, change);
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
  EXPECT_LE(most_used(plain(DType::f32), by_weights, change).as_it_is, 1);
}

// Of a rate near 1 its own rounding counts most.
TEST(DropoutBound, NeedsTheRoundingOfTheRate) {
  const Answers by_weights = [](float v, double p) { return static_cast<double>(0.5F * gain_of_float(p) * v); };
  const Used u = most_used(
      applied_to(DropoutPlace::weights), by_weights, [](Profile& p) { p.u_drop = 4 * 0x1p-24; }, 0.98, 0.9999);
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 10);
}

// V divided by 1 - p, in its own format.
TEST(DropoutBound, NeedsTheFormatOfTheValues) {
  const Arithmetic by_values = [] {
    Arithmetic a = applied_to(DropoutPlace::values, DType::bf16);
    a.output = DType::f32;
    return a;
  }();
  const Answers of_values = [](float v, double p) {
    return 0.5 * round_to(DType::bf16, static_cast<double>(gain_of_float(p) * v));
  };
  const Used u = most_used(by_values, of_values, [](Profile& p) { p.u_drop = 0x1p-20; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.as_it_is, 0.5);
  EXPECT_GT(u.changed, 10);
  // Who says nothing of V does not round it.
  Arithmetic unstated = by_values;
  unstated.dropout = DropoutPlace::unstated;
  EXPECT_GT(most_used(unstated, of_values, [](Profile&) {}).as_it_is, 10);
}

TEST(DropoutBound, NeedsTheUnderflowOfTheValues) {
  Arithmetic flushing = applied_to(DropoutPlace::values, DType::f16);
  flushing.output = DType::f32;
  const double tiny = 0x1p-20 + 0x1p-24;
  Case c = even({tiny, 0}, {1, 0}, 0.3, DType::f16);
  const double found = 0.5 * round_to(DType::f16, tiny / 0.7);
  const Used u = used(c, flushing, found, [](Profile& p) { p.lam_drop = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

// Nothing is rounded where nothing is divided.
TEST(DropoutBound, IsThatOfFewerValuesWithoutARate) {
  const double dropped = attention_bounds(even({3, 5}, {1, 0}, 0), plain(DType::f32)).elements[0].allowed;
  Case zero = even({3, 0}, {1, 1}, 0);
  zero[Slot::keep] = Tensor();
  EXPECT_EQ(dropped, attention_bounds(zero, plain(DType::f32)).elements[0].allowed);
}

TEST(DropoutBound, ExcusesARateThatTheKernelMayTakeForOne) {
  const auto excuse = [](double p) {
    return attention_bounds(even({1, 2}, {1, 0}, p), plain(DType::f32)).elements[0].excuse;
  };
  EXPECT_EQ(excuse(0.999), Excuse::none);
  EXPECT_EQ(excuse(1 - 0x1p-40), Excuse::overflow);
}

TEST(DropoutBound, EndsWhereTheValuesOverflow) {
  const auto excuse = [](double value, DropoutPlace place) {
    return attention_bounds(even({value, 0}, {1, 0}, 0.9, DType::f16), applied_to(place, DType::f16))
        .elements[0]
        .excuse;
  };
  EXPECT_EQ(excuse(6000, DropoutPlace::output), Excuse::none);
  EXPECT_EQ(excuse(6000, DropoutPlace::values), Excuse::overflow);
  EXPECT_EQ(excuse(20000, DropoutPlace::output), Excuse::overflow);
}

// Rows of one query are one row to the oracle, but where they drop other weights. As many as it compares at all.
TEST(DropoutOracle, TellsRowsOfOneQueryApartByWhatTheyDrop) {
  constexpr std::int64_t M = 512, N = 1024;
  Case c;
  c.scale = 1;
  c[Slot::q] = Tensor(DType::f32, {1, 1, M, 64});
  c[Slot::k] = Tensor(DType::f32, {1, 1, N, 64});
  c[Slot::v] = Tensor(DType::f32, {1, 1, N, 1});
  c[Slot::keep] = Tensor(DType::boolean, {1, 1, M, N});
  Tensor right(DType::f32, c.out_shape()), wrong = right;
  for (std::int64_t j = 0; j < N; ++j) c[Slot::v].set(j, j % 2 == 0 ? 1 : 4);
  for (std::int64_t i = 0; i < M; ++i) {
    for (std::int64_t j = 0; j < N; ++j) c[Slot::keep].set(i * N + j, (i + j) % 2 == 0 ? 1 : 0);
    right.set(i, i % 2 == 0 ? 0.5 : 2), wrong.set(i, 0.5);
  }
  EXPECT_EQ(judge_attention(c, right, {}, plain(DType::f32)).outcome, Outcome::held);
  EXPECT_EQ(judge_attention(c, wrong, {}, plain(DType::f32)).outcome, Outcome::violated);
}

// Scores that nobody knows: what a row keeps is near 0, and what it drops, far from it, does not make the bound sharp.
TEST(DropoutBound, IsVacuousByWhatTheRowKeeps) {
  Case c = even({1, 2, 1000}, {1, 1, 0}, 0.5);
  c[Slot::q].set(0, 0x1.234566p12);
  for (std::int64_t j = 0; j < 3; ++j) c[Slot::k].set(j, 0x1.654322p12);
  const Excuse found = attention_bounds(c, plain(DType::f32)).elements[0].excuse;
  c[Slot::v].set(2, 0), c[Slot::keep].set(2, 1);
  EXPECT_EQ(found, attention_bounds(c, plain(DType::f32)).elements[0].excuse);
  EXPECT_EQ(found, Excuse::vacuous);
}

// NaN in a value that every row drops is for nobody; in one that some row keeps nothing can be said of any.
TEST(DropoutOracle, JudgesBesideDeadValues) {
  Case c = even({1, 2, 4}, {1, 1, 0}, 0.5);
  c[Slot::v].set(2, std::nan(""));
  c.provenance.non_finite = "yes";
  EXPECT_EQ(attention_bounds(c, plain(DType::f32), /*ignores_dead_values=*/true).rows[0].excuse, Excuse::none);
  EXPECT_EQ(attention_bounds(c, plain(DType::f32), /*ignores_dead_values=*/false).rows[0].excuse, Excuse::not_finite);
  Case two;
  two.scale = 1;
  two[Slot::q] = Tensor(DType::f32, {1, 1, 2, 1});
  two[Slot::k] = c.k(), two[Slot::v] = c.v();
  two[Slot::keep] = Tensor(DType::boolean, {1, 1, 2, 3});
  for (const std::int64_t e : {0, 1, 3, 5}) two[Slot::keep].set(e, 1);
  two.provenance.non_finite = "yes";
  for (const RowBound& row : attention_bounds(two, plain(DType::f32), true).rows)
    EXPECT_EQ(row.excuse, Excuse::not_finite);
}

// Where the kernel draws what it drops nobody else knows the answer.
TEST(DropoutOracle, SaysNothingOfAMaskThatTheKernelDraws) {
  Case c = even({1, 2}, {1, 0}, 0.5);
  c[Slot::keep] = Tensor();
  const AttentionBounds bounds = attention_bounds(c, plain(DType::f32));
  EXPECT_EQ(bounds.rows[0].excuse, Excuse::own_dropout);
  EXPECT_EQ(bounds.elements[0].excuse, Excuse::own_dropout);
}

TEST(DropoutProblem, RefusesWhatIsNoDropout) {
  Case c = even({1, 2}, {1, 0}, 0.5);
  for (const double wrong : {-0.1, 1.0, 2.0, std::nan("")}) {
    c.dropout_p = wrong;
    EXPECT_THROW(validate(c), UsageError) << wrong;
  }
  c.dropout_p = 0.5;
  Case seed = c;
  seed.dropout_seed = 3;
  EXPECT_THROW(validate(seed), UsageError);
  seed[Slot::keep] = Tensor();
  validate(seed);
  seed.dropout_p = 0;
  EXPECT_THROW(validate(seed), UsageError);
  Case numbers = c;
  numbers[Slot::keep] = Tensor(DType::f32, {1, 1, 1, 2});
  EXPECT_THROW(validate(numbers), UsageError);
  Case other = c;
  other[Slot::keep] = Tensor(DType::boolean, {1, 1, 2, 2});
  EXPECT_THROW(validate(other), UsageError);
}

}  // namespace
}  // namespace attest
