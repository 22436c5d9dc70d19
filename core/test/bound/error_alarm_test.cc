// The probabilistic bound: correct kernels stay within it wherever it speaks, and kernels that hide below the proved
// bound do not.
#include "core/bound/error_alarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/test/cases.h"
#include "core/test/fleet/fleet.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {
namespace {

// ---- Correct kernels on the regimes of error-bounds.md ----

class AlarmValidation : public testing::TestWithParam<Share> {};

TEST_P(AlarmValidation, NoCorrectKernelRaisesIt) {
  const Ledger ledger = validate_bound(
      GetParam().dtype,
      {.first_seed = 1, .seeds = 10, .max_keys = 512, .max_head_dim = 128, .alarm_probability = alarm_probability});
  std::fputs(ledger.alarm_table().c_str(), stdout);
  RecordProperty("elements", std::to_string(ledger.total().alarm.elements));
  EXPECT_GE(ledger.total().alarm.elements, GetParam().least);
  for (const auto& [kernel, regimes] : ledger.entries()) {
    for (const auto& [regime, entry] : regimes) {
      EXPECT_EQ(entry.alarm.beyond, 0) << entry.first_alarm;
      // Equal keys: the alarm abstains, unless they are too light to matter.
      if (regime == Regime::ties || regime == Regime::cancel_v) {
        EXPECT_GE(entry.alarm.uncovered, entry.alarm.elements) << kernel;
      }
    }
  }
}

// Together more than 5e4 elements.
INSTANTIATE_TEST_SUITE_P(All, AlarmValidation,
                         testing::Values(Share{DType::f64, 11'000}, Share{DType::f32, 24'000},
                                         Share{DType::f16, 13'000}, Share{DType::bf16, 12'000}),
                         dtype_name);

TEST(AlarmBounds, AreNeverLargerThanTheProvedBound) {
  const Effort effort{.first_seed = 1, .seeds = 1, .max_keys = 200, .max_head_dim = 200};
  for (const Emulation& kernel : correct_kernels()) {
    for (int r = 0; r < validated_regimes; ++r) {
      const Case c = validation_case(static_cast<Regime>(r), kernel.arithmetic.input, effort, /*seed=*/7);
      const AttentionBounds bounds = attention_bounds(c, kernel.arithmetic, /*ignores_dead_values=*/true);
      const std::vector<ElementAlarm> alarms = alarm_bounds(c, kernel.arithmetic, alarm_probability, true);
      ASSERT_EQ(alarms.size(), bounds.elements.size());
      for (std::size_t i = 0; i < alarms.size(); ++i) {
        const double proved = bounds.elements[i].allowed;
        ASSERT_LE(alarms[i].allowed, alarms[i].hm) << kernel.name;
        ASSERT_LE(alarms[i].hm, proved) << kernel.name;
        ASSERT_GE(alarms[i].allowed, 0.0) << kernel.name;
        // Not covered: the proved bound itself, to what attention_bounds rounds it up by.
        ASSERT_TRUE(alarms[i].covered || alarms[i].allowed >= proved * (1 - 0x1p-19)) << kernel.name;
      }
    }
  }
}

// ---- Hand-made rows: one query, scores as given, one column of values or more ----

/// k_j = (score_j, 0, …) and q = (1, 0, …) at scale 1, so that the scores are exact; more columns of k are zero.
Case row_of(DType dtype, const std::vector<double>& scores, const std::vector<double>& values) {
  return test::one_query(dtype, {1}, scores, values);
}

/// The alarm of one kernel's answer to one case; the proved bound must hold.
Alarm alarm_of(const Emulation& does, const Arithmetic& declares, const Case& c) {
  const Verdict verdict =
      judge_attention(c, emulate(does, c).out, {}, declares, {.alarm_probability = alarm_probability});
  EXPECT_NE(verdict.outcome, Outcome::violated) << verdict.reason;
  return verdict.alarm.value_or(Alarm{});
}
Alarm alarm_of(const Emulation& correct, const Case& c) {
  return alarm_of(correct, correct.arithmetic, c);
}

/// Its one element is within the alarm, and its error at least this share of it.
void expect_silent(const Alarm& alarm, double worst) {
  EXPECT_EQ(alarm.elements, 1);
  EXPECT_EQ(alarm.beyond, 0);
  EXPECT_GT(alarm.worst, worst);
}

ElementAlarm only_element(const Arithmetic& arithmetic, const Case& c) {
  return alarm_bounds(c, arithmetic).at(0);
}

Emulation two_pass(DType dtype) {
  return {"two-pass", plain(dtype), {}, {}};
}

TEST(AlarmOfCorrectKernels, CountsSwallowedSummandsInFull) {
  // Every key but the first weighs a little less than half a unit of the first: added one by one they leave no trace in
  // the sum of weights, n u in all, where random errors would make sqrt(n) u.
  std::vector<double> scores{0}, values{0};
  for (int j = 1; j < 4096; ++j) {
    scores.push_back(std::log(0x1p-24) - 0.05 - 1e-5 * j);
    values.push_back(1);
  }
  // A correct kernel that would exceed a bound without them.
  expect_silent(alarm_of(two_pass(DType::f32), row_of(DType::f32, scores, values)), 0.3);
}

/// A summand that loses nearly half a unit of every sum from 4096 to 8192.
constexpr double leaning_summand = 1 + 0.49 * 0x1p-11;

TEST(AlarmOfCorrectKernels, CountsCrowdedSummandsInFull) {
  // Weights that differ by less than the last bit of their sum; no two keys are equal.
  std::vector<double> scores, values;
  for (int j = 0; j < 8192; ++j) scores.push_back(0x1p-30 * (j + 1)), values.push_back(leaning_summand);
  expect_silent(alarm_of(two_pass(DType::f32), row_of(DType::f32, scores, values)), 0.1);
}

TEST(AlarmOfCorrectKernels, CountsClumpsOfSummandsInFull) {
  // The same in 31 clumps of nearly equal weights, none of them a large share of the row.
  std::vector<double> scores, values;
  for (int j = 0; j < 8190; ++j) {
    // Multiples of 2^-22, so that products and sums are exact and cannot be equal by chance.
    const double centre = -0x1p-22 * std::round(0x1p22 * 0.17 * std::sqrt(1 + j % 31));
    scores.push_back(centre + 0x1p-22 * std::floor(j / 31.0));
    values.push_back(leaning_summand * std::exp(-0.17 - centre));
  }
  expect_silent(alarm_of(two_pass(DType::f32), row_of(DType::f32, scores, values)), 0.1);
}

TEST(AlarmOfCorrectKernels, CountsALooseCrowdInFull) {
  // Weights spread over two and a half units of their sum: more additions err to one side than to the other, by little,
  // but over 2^18 keys. A single value, so that only the sum of weights errs.
  std::vector<double> scores, values;
  for (std::uint32_t j = 0; j < 1U << 18; ++j) {
    const std::uint32_t scrambled = j * 40503 % (1U << 18);
    scores.push_back(-5 * 0x1p-25 * scrambled);
    values.push_back(j == 0 ? 1 : 0);
  }
  expect_silent(alarm_of(two_pass(DType::f32), row_of(DType::f32, scores, values)), 0.02);
}

TEST(AlarmOfCorrectKernels, CountsWeightsAtTheEdgeOfTheRange) {
  // Few keys, and all of the answer comes from the weight of one, near the smallest normal number; its error is that of
  // its score. Which seeds draw such a case depends on the compiler's order of evaluation.
  const Effort effort{.first_seed = 0, .seeds = 1, .max_keys = 512, .max_head_dim = 64};
  double worst = 0;
  for (std::uint64_t seed = 2000; seed < 2200; ++seed) {
    const Alarm alarm = alarm_of(two_pass(DType::f64), validation_case(Regime::subnormal, DType::f64, effort, seed));
    EXPECT_EQ(alarm.beyond, 0) << seed;
    worst = std::max(worst, alarm.worst);
  }
  EXPECT_GT(worst, 0.1);
}

TEST(AlarmOfCorrectKernels, CountsTheRoundingOfAScaledQueryInFull) {
  // The scale and q*scale are rounded once for all keys: errors of the temperature, which the values here follow.
  Emulation kernel = two_pass(DType::f16);
  kernel.arithmetic.prescaled_q = DType::f16;
  kernel.arithmetic.output = DType::f32;
  std::vector<double> scores, values;
  for (int j = 0; j < 1000; ++j) {
    const double side = j % 2 == 0 ? 1 : -1;
    scores.push_back(side * (1 + 0x1p-10 * j));
    values.push_back(side);
  }
  Case c = row_of(DType::f16, scores, values);
  c.scale = 1 + 25.49 * 0x1p-10;  // f16 keeps 25 of the 25.49, and of the 25.488 that q makes of them 25 again
  c[Slot::q] = Tensor(DType::f16, c.q().shape(), std::vector<double>{1 + 20 * 0x1p-10});
  expect_silent(alarm_of(kernel, c), 0.5);
}

TEST(AlarmOfCorrectKernels, CountsSwallowedProductsInFull) {
  // One large product first and many below half a unit of it: q.k loses them, a little more the larger they are, and
  // the values follow. The common part of the loss cancels.
  Emulation kernel = two_pass(DType::f16);
  kernel.arithmetic.score_sums = DType::f16;
  kernel.arithmetic.output = DType::f32;
  constexpr std::int64_t n = 256, dk = 64;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> spread(0, 1);
  std::vector<double> q(dk, 1.0), k, v;
  for (std::int64_t j = 0; j < n; ++j) {
    const double tail = (j % 2 == 0 ? 1 : -1) * 0x1p-8 * (0.9 + 0.05 * spread(random));
    k.push_back(8 + 0x1p-7 * static_cast<double>(j % 64));
    for (std::int64_t c = 1; c < dk; ++c) k.push_back(tail * (1 - 0.01 * spread(random)));
    v.push_back(j % 2 == 0 ? 1 : -1);
  }
  expect_silent(alarm_of(kernel, test::one_query(DType::f16, q, k, v)), 0.3);
}

TEST(AlarmOfCorrectKernels, CountsRoundedWeightsInFull) {
  // Weights of bf16 that lie a little less than half a unit from what they are rounded to: a tenth of them, with the
  // value 1, all rounded up, the others, with the value 0, all rounded down. Summed as they were rounded, or not.
  for (const bool in_denominator : {false, true}) {
    Emulation kernel = two_pass(DType::bf16);
    kernel.arithmetic.weights = DType::bf16;
    kernel.arithmetic.weights_in_denominator = in_denominator;
    kernel.arithmetic.output = DType::f32;
    constexpr std::int64_t n = 400;
    std::vector<double> scores(n, 0.0), values(n, 0.0), mask(n, 0.0);
    for (int j = 1; j < n; ++j) {
      const bool up = j % 10 == 0;
      values[static_cast<std::size_t>(j)] = up ? 1 : 0;
      mask[static_cast<std::size_t>(j)] = std::log(0.5 * (1 + 0x1p-8 * ((up ? 1.05 : 0.99) - 1e-4 * j)));
    }
    Case c = row_of(DType::bf16, scores, values);
    c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, n}, mask);
    SCOPED_TRACE(in_denominator);
    expect_silent(alarm_of(kernel, c), 0.6);
  }
}

// ---- Errors exactly as the alarm assumes them, and as large as they may be ----

/// A row in double whose sums get the factor 1 + u or 1 - u at random where f32 would round. Returns o.
double with_random_errors(const Case& c, std::mt19937_64& random) {
  const auto off = [&](double x) { return x * (random() % 2 == 0 ? 1 + 0x1p-24 : 1 - 0x1p-24); };
  const std::int64_t n = c.k().shape()[2], dk = c.k().shape()[3];
  std::vector<double> s;
  for (std::int64_t j = 0; j < n; ++j) {
    double x = 0;
    for (std::int64_t e = 0; e < dk; ++e) x = off(x + c.q()[e] * c.k()[j * dk + e]);
    s.push_back(c.scale * x);
  }
  const double m = *std::max_element(s.begin(), s.end());
  double sum = 0, o = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double w = std::exp(s[static_cast<std::size_t>(j)] - m);
    sum = off(sum + w);
    o = off(o + w * c.v()[j]);
  }
  return o / sum;
}

/// Worst error over the alarm of p = 1e-9, and the share of errors beyond that of p = 0.05.
struct RandomTrials {
  double worst = 0, share = 0;
};
RandomTrials try_random_errors(const Case& c, int trials) {
  std::mt19937_64 random(11);
  const double exact = attention_bounds(c, plain(DType::f32)).elements.at(0).value;
  const ElementAlarm strict = only_element(plain(DType::f32), c);
  const double loose = alarm_bounds(c, plain(DType::f32), 0.05).at(0).allowed;
  EXPECT_TRUE(strict.covered);
  RandomTrials out;
  for (int i = 0; i < trials; ++i) {
    const double error = std::fabs(with_random_errors(c, random) - exact);
    out.worst = std::max(out.worst, error / strict.allowed);
    if (!(error <= loose)) out.share += 1.0 / trials;
  }
  return out;
}

TEST(AlarmOfRandomErrors, IsSharpForTheSumsOverKeys) {
  // The first key has nine tenths of the weight, so every addition rounds a sum that is nearly whole.
  std::vector<double> scores{0}, values{1};
  for (int j = 1; j < 2000; ++j) scores.push_back(-9.8 - 1e-3 * j), values.push_back(-1);
  const RandomTrials trials = try_random_errors(row_of(DType::f32, scores, values), 300);
  EXPECT_LE(trials.share, 0.05);
  EXPECT_LE(trials.worst, 1);
  EXPECT_GT(trials.worst, 0.25);
}

TEST(AlarmOfRandomErrors, IsSharpForTheScores) {
  // Long products of large numbers and few keys: what errs is q.k.
  constexpr std::int64_t n = 48, dk = 1024;
  std::mt19937_64 random(12);
  std::vector<double> k, v;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t e = 0; e < dk; ++e) k.push_back(std::uniform_real_distribution<double>(0.9, 1.1)(random));
    v.push_back(j % 2 == 0 ? 1 : -1);
  }
  Case c = test::one_query(DType::f32, std::vector<double>(dk, 1.1), k, v);
  c.scale = 0x1p-5;
  const RandomTrials trials = try_random_errors(c, 100);
  EXPECT_LE(trials.share, 0.05);
  EXPECT_LE(trials.worst, 1);
  EXPECT_GT(trials.worst, 0.15);
}

// ---- Where it does not speak ----

TEST(AlarmBounds, AbstainWhereKeysAreEqual) {
  const Arithmetic f32 = plain(DType::f32);
  // Irregular numbers, so that products are rounded.
  const double a = static_cast<float>(1.1), b = static_cast<float>(0.7), far = static_cast<float>(0.3);
  const auto of_scores = [&](const std::vector<double>& scores) {
    Case c = row_of(DType::f32, scores, {1, 2, 3});
    c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector{0.9});
    return only_element(f32, c);
  };
  EXPECT_TRUE(of_scores({a, b, far}).covered);
  EXPECT_FALSE(of_scores({a, b, a}).covered);
  EXPECT_FALSE(of_scores({a, b, -b}).covered);     // the same roundings with the other sign
  EXPECT_FALSE(of_scores({a, b, 2 * b}).covered);  // and twice as large
  // Equal keys of which hardly any weight is left count in full instead.
  EXPECT_TRUE(of_scores({a, -40 * a, -40 * a}).covered);
  EXPECT_FALSE(of_scores({a, -10 * a, -10 * a}).covered);
  // Products that no sum has to round share nothing but the weight.
  EXPECT_TRUE(only_element(f32, row_of(DType::f32, {1, 2, -1}, {1, 2, 3})).covered);
  EXPECT_FALSE(only_element(f32, row_of(DType::f32, {1, 2, 1}, {1, 2, 3})).covered);
  // Equal weights of different keys: q = 0.
  Case zero = row_of(DType::f32, {a, b, far}, {1, 2, 3});
  zero[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector{0.0});
  EXPECT_FALSE(only_element(f32, zero).covered);
  // A hidden key is no key.
  Case hidden = row_of(DType::f32, {a, b, a}, {1, 2, 3});
  hidden[Slot::mask] =
      Tensor(DType::f32, {1, 1, 1, 3}, std::vector{0.0, 0.0, -std::numeric_limits<double>::infinity()});
  EXPECT_TRUE(only_element(f32, hidden).covered);
}

TEST(AlarmBounds, AbstainWhereOneOfManyKeysIsEqualToAnother) {
  std::mt19937_64 random(13);
  std::vector<double> scores, values;
  for (int j = 0; j < 300; ++j) {
    scores.push_back(std::uniform_real_distribution<double>(-2, 2)(random));
    values.push_back(j);
  }
  const auto covered = [&] {
    Case c = row_of(DType::f32, scores, values);
    c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector{0.9});
    return only_element(plain(DType::f32), c).covered;
  };
  EXPECT_TRUE(covered());
  for (const std::size_t j : {0U, 1U, 150U, 298U}) {
    const double own = scores[299];
    scores[299] = j % 2 == 0 ? scores[j] : -scores[j] / 2;
    EXPECT_FALSE(covered()) << j;
    scores[299] = own;
  }
}

TEST(AlarmBounds, AbstainWhereSumsAreTruncated) {
  Arithmetic truncates = plain(DType::f32);
  truncates.rounding = Rounding::toward_zero;
  EXPECT_FALSE(only_element(truncates, row_of(DType::f32, {0.3, 0.7, 0.9}, {1, 2, 3})).covered);
}

TEST(AlarmBounds, LeaveTheVerdictAsItIs) {
  const Case c = draw(Regime::gauss_1, DType::f32, {2, 64, 16, 4}, /*seed=*/3);
  const Emulation kernel = two_pass(DType::f32);
  const Tensor out = emulate(kernel, c).out;
  const Verdict without = judge_attention(c, out, {}, kernel.arithmetic);
  const Verdict with = judge_attention(c, out, {}, kernel.arithmetic, {.alarm_probability = alarm_probability});
  EXPECT_FALSE(without.alarm.has_value());
  ASSERT_TRUE(with.alarm.has_value());
  EXPECT_EQ(with.alarm->elements, 8);
  EXPECT_EQ(with.outcome, without.outcome);
  EXPECT_EQ(with.utilisation, without.utilisation);
  EXPECT_EQ(with.level, without.level);
  Tensor nan = out;
  nan.set(3, std::numeric_limits<double>::quiet_NaN());
  const Verdict lost = judge_attention(c, nan, {}, kernel.arithmetic, {.alarm_probability = alarm_probability});
  EXPECT_EQ(lost.outcome, Outcome::violated);
  EXPECT_EQ(lost.alarm->beyond, 1);
  EXPECT_TRUE(std::isinf(lost.alarm->worst));
}

TEST(AlarmBounds, GrowAsTheProbabilityShrinks) {
  const Case c = draw(Regime::gauss_1, DType::f32, {1, 512, 128, 4}, /*seed=*/4);
  const auto at = [&](double p) { return alarm_bounds(c, plain(DType::f32), p).at(0); };
  EXPECT_LT(at(1e-3).allowed, at(1e-9).allowed);
  EXPECT_LT(at(1e-9).allowed, at(1e-15).allowed);
  EXPECT_LT(at(1e-3).hm, at(1e-15).hm);
}

// ---- What it is for ----

double median_gain(const Arithmetic& arithmetic, const Size& size, bool of_hm = false) {
  std::vector<double> gains;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Case c = draw(Regime::gauss_1, arithmetic.input, size, seed);
    const AttentionBounds bounds = attention_bounds(c, arithmetic);
    const std::vector<ElementAlarm> alarms = alarm_bounds(c, arithmetic);
    for (std::size_t i = 0; i < alarms.size(); ++i)
      gains.push_back(bounds.elements[i].allowed / (of_hm ? alarms[i].hm : alarms[i].allowed));
  }
  std::nth_element(gains.begin(), gains.begin() + static_cast<std::ptrdiff_t>(gains.size() / 2), gains.end());
  return gains[gains.size() / 2];
}

TEST(AlarmBounds, AreSeveralTimesSharperOnGaussianRows) {
  const Size size{2, 1024, 64, 16};
  const double gain = median_gain(plain(DType::f32), size), of_hm = median_gain(plain(DType::f32), size, true);
  const double universal = median_gain(universal_arithmetic(DType::f32, DType::f32), size);
  const double wide = median_gain(plain(DType::f32), {2, 1024, 128, 16}, true);
  std::printf("proved / alarm, median: %.3g, HM alone %.3g (dk = 128: %.3g), universal %.3g\n", gain, of_hm, wide,
              universal);
  RecordProperty("gain", std::to_string(gain));
  EXPECT_GE(gain, 3);
  EXPECT_GE(of_hm, 2);
  EXPECT_GE(universal, 1.5);
}

TEST(AlarmBounds, UseADeclaredDepth) {
  const Case c = draw(Regime::gauss_1, DType::f32, {1, 4096, 16, 8}, /*seed=*/5);
  Arithmetic pairwise = plain(DType::f32);
  pairwise.blocked_sums = BlockedSums{.block = 1, .depth = 1, .pairwise = true};
  const ElementAlarm any_order = only_element(plain(DType::f32), c), tree = only_element(pairwise, c);
  // A term passes 12 additions instead of 4096; the errors of the scores stay.
  EXPECT_LT(tree.allowed, any_order.allowed / 2);
  EXPECT_LT(tree.hm, any_order.hm / 2);
}

TEST(Alarm, HearsSumsInBf16ThatTheProvedBoundAllows) {
  // Pairwise in bf16, where sums in f32 in any order are declared: over 2^15 keys those may be as wrong.
  Emulation kernel = two_pass(DType::f32);
  kernel.structure.permuted_pairwise = true;
  const Arithmetic declares = kernel.arithmetic;
  const Case c = draw(Regime::offset_v, DType::f32, {1, std::int64_t{1} << 15, 2, 4}, /*seed=*/1);
  EXPECT_EQ(alarm_of(kernel, declares, c).beyond, 0);
  kernel.arithmetic.accumulate = DType::bf16;
  const Alarm alarm = alarm_of(kernel, declares, c);
  std::printf("bf16 sums: %lld of %lld elements beyond, worst %.3g\n", static_cast<long long>(alarm.beyond),
              static_cast<long long>(alarm.elements), alarm.worst);
  EXPECT_EQ(alarm.beyond, 4);
}

TEST(Alarm, HearsAScaleThatTheProvedBoundAllows) {
  // Values that follow the scores show an error of the scale.
  constexpr std::int64_t n = 1024, dk = 64;
  Case c = draw(Regime::gauss_1, DType::f32, {1, n, dk, 1}, /*seed=*/7);
  std::vector<double> values;
  for (std::int64_t j = 0; j < n; ++j) {
    double x = 0;
    for (std::int64_t e = 0; e < dk; ++e) x += c.q()[e] * c.k()[j * dk + e];
    values.push_back(x * c.scale);
  }
  c[Slot::v] = Tensor(DType::f32, {1, 1, n, 1}, values);
  Emulation kernel = two_pass(DType::f32);
  EXPECT_EQ(alarm_of(kernel, c).beyond, 0);
  kernel.fault.scale_factor = 1 + 6e-5;
  const Alarm alarm = alarm_of(kernel, kernel.arithmetic, c);
  std::printf("scale*(1 + 6e-5): worst %.3g\n", alarm.worst);
  EXPECT_EQ(alarm.beyond, 1);
}

}  // namespace
}  // namespace attest::fleet
