// The probabilistic bound of gradients (gradient-bounds.md, 8): correct backward passes stay within it wherever it
// speaks, and ones that hide below the proved bound do not.
#include "core/bound/gradient_alarm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/test/fleet/backward.h"

namespace attest::fleet {
namespace {

GradientOptions alarmed() {
  GradientOptions options;
  options.alarm_probability = alarm_probability;
  return options;
}

// ---- Correct kernels ----

class GradientAlarm : public testing::TestWithParam<DType> {};

TEST_P(GradientAlarm, IsRaisedByNoCorrectKernel) {
  GradientCount all;
  for (const BackwardEmulation& kernel : correct_backward_kernels()) {
    if (kernel.forward.arithmetic.input != GetParam()) continue;
    for (const Added added : {Added::nothing, Added::dropout})
      all.merge(validate_gradients(kernel, {.first_seed = 1,
                                            .seeds = 1,
                                            .most_rows = 40,
                                            .most_keys = 120,
                                            .most_columns = 16,
                                            .added = added,
                                            .alarm_probability = alarm_probability}));
  }
  std::printf("%ld elements, %ld uncovered, worst %.3f of the alarm, %.3f of the bound\n", all.alarm.elements,
              all.alarm.uncovered, all.alarm.worst, all.worst);
  EXPECT_EQ(all.alarm.beyond, 0) << all.first_alarm;
  EXPECT_EQ(all.violations, 0) << all.first_violation;
  EXPECT_GT(all.alarm.elements, 50'000);
}
INSTANTIATE_TEST_SUITE_P(All, GradientAlarm, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

// ---- Cases made by hand ----

Tensor filled(DType dtype, std::int64_t rows, std::int64_t columns,
              const std::function<double(std::int64_t, std::int64_t)>& at) {
  Tensor t(dtype, {1, 1, rows, columns});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t c = 0; c < columns; ++c) t.set(i * columns + c, at(i, c));
  return t;
}

struct ByHand {
  BackwardEmulation kernel = backward_kernel_named("f32.backward");
  BackwardCase of;

  [[nodiscard]] std::array<Tensor, gradient_count> gradients(BackwardInputs& given) const {
    Answer answer = emulate_heads(kernel.forward, of.c);
    given = {of.d_out, of.d_lse, std::move(answer.out), std::move(answer.lse)};
    return emulate_backward(kernel, of.c, given);
  }
  /// One of them alone, or all.
  [[nodiscard]] std::array<Verdict, gradient_count> judged(std::optional<Gradient> only = {}) const {
    BackwardInputs given;
    std::array<Tensor, gradient_count> found = gradients(given);
    for (const Gradient one : every_gradient)
      if (only && one != *only) found[static_cast<std::size_t>(one)] = {};
    GradientOptions options = alarmed();
    std::array<Verdict, gradient_count> all =
        judge_gradients(of.c, given, found, kernel.forward.arithmetic, kernel.backward, options);
    for (const Verdict& verdict : all) EXPECT_NE(verdict.outcome, Outcome::violated) << verdict.reason;
    return all;
  }
  [[nodiscard]] Alarm alarm(Gradient gradient) const {
    return judged(gradient)[static_cast<std::size_t>(gradient)].alarm.value_or(Alarm{});
  }
};

/// No correct kernel raises it, and this one comes so near to it.
void expect_silent(const Alarm& alarm, double worst) {
  std::printf("worst %.3f\n", alarm.worst);
  EXPECT_GT(alarm.elements, 0);
  EXPECT_EQ(alarm.beyond, 0);
  EXPECT_GT(alarm.worst, worst);
}

/// A summand that loses nearly half a unit of every sum from 4096 to 8192.
constexpr double leaning_summand = 1 + 0.49 * 0x1p-11;

/// One key, so that P = 1 and dv is the sum of the gradients by the output.
ByHand sum_of(std::int64_t rows, const std::function<double(std::int64_t)>& summand) {
  ByHand all;
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  all.of.c[Slot::q] = filled(DType::f32, rows, 1, [&](auto, auto) { return normal(random); });
  all.of.c[Slot::k] = filled(DType::f32, 1, 1, [](auto, auto) { return 0; });
  all.of.c[Slot::v] = filled(DType::f32, 1, 1, [](auto, auto) { return 1; });
  all.of.d_out = filled(DType::f32, rows, 1, [&](std::int64_t i, auto) { return summand(i); });
  return all;
}

TEST(GradientAlarmOfCorrectKernels, CountsSwallowedSummandsInFull) {
  expect_silent(
      sum_of(4096, [](std::int64_t i) { return i == 0 ? 1 : 0x1p-24 * (0.95 - 1e-5 * static_cast<double>(i)); })
          .alarm(Gradient::v),
      0.3);
}

TEST(GradientAlarmOfCorrectKernels, CountsCrowdedSummandsInFull) {
  expect_silent(sum_of(8192, [](auto) { return leaning_summand; }).alarm(Gradient::v), 0.1);
}

/// Two keys, one of them the other's opposite, and equal rows of q. The products of a row and a key grow large, and the
/// last takes back what all others have made, so that the weights are even and the errors of the scores are not.
ByHand of_large_products(std::int64_t rows, std::int64_t dk, const std::function<double(std::int64_t)>& product) {
  std::vector<double> key(static_cast<std::size_t>(dk));
  double sum = 0;
  for (std::int64_t c = 0; c + 1 < dk; ++c) {
    key[static_cast<std::size_t>(c)] = static_cast<double>(static_cast<float>(product(c)));
    sum += key[static_cast<std::size_t>(c)];
  }
  key.back() = -sum;
  ByHand all;
  all.of.c[Slot::q] = filled(DType::f32, rows, dk, [](auto, auto) { return 1; });
  all.of.c[Slot::k] = filled(DType::f32, 2, dk, [&](std::int64_t j, std::int64_t c) {
    return (j == 0 ? 1 : -1) * key[static_cast<std::size_t>(c)];
  });
  all.of.c[Slot::v] = filled(DType::f32, 2, 1, [](std::int64_t j, auto) { return j; });
  all.of.d_out = filled(DType::f32, rows, 1, [](std::int64_t i, auto) { return 1 + 0.01 * static_cast<double>(i); });
  // The errors at second order stay below those at first.
  all.of.c.scale = 25 / sum;
  return all;
}

/// Rows, or keys, whose products g.v are the same but for their signs, and what these meet has the signs, too: an error
/// of all of them, which their number does not lessen.
ByHand of_equal_products(Gradient of, double product) {
  constexpr std::int64_t many = 16, columns = 4000;
  const auto sign = [](std::int64_t i) { return i % 2 == 0 ? 1 : -1; };
  const auto signs = [&](std::int64_t i, std::int64_t c) { return c == 0 ? 0 : sign(i); };
  const auto nothing = [](auto, auto) { return 0; };
  ByHand all;
  if (of == Gradient::q) {
    all.of.c[Slot::q] = filled(DType::f32, 1, 2, nothing);
    all.of.c[Slot::k] = filled(DType::f32, many, 2, signs);
    all.of.c[Slot::v] = filled(DType::f32, many, columns, [&](std::int64_t j, auto) { return product * sign(j); });
    all.of.d_out = filled(DType::f32, 1, columns, [](auto, auto) { return 1; });
  } else {
    all.of.c[Slot::q] = filled(DType::f32, many, 2, signs);
    all.of.c[Slot::k] = filled(DType::f32, 2, 2, nothing);
    all.of.c[Slot::v] = filled(DType::f32, 2, columns, [&](std::int64_t j, auto) { return j == 0 ? product : 0; });
    all.of.d_out = filled(DType::f32, many, columns, [&](std::int64_t i, auto) { return sign(i); });
  }
  return all;
}

TEST(GradientAlarmOfCorrectKernels, CountsEqualProductsInFull) {
  for (const Gradient of : {Gradient::q, Gradient::k}) {
    double worst = 0;
    for (int i = 0; i < 20; ++i) {
      const Alarm alarm = of_equal_products(of, 1 + 0.0173 * i).alarm(of);
      EXPECT_EQ(alarm.beyond, 0) << i;
      worst = std::max(worst, alarm.worst);
    }
    std::printf("%s: worst %.3f\n", std::string(name_of(of)).c_str(), worst);
    EXPECT_GT(worst, 0.05);
  }
  // Equal rows of q have the same errors in q.k.
  double worst = 0;
  for (int i = 0; i < 10; ++i) {
    const double product = 1 + 0.0173 * i;
    const Alarm alarm = of_large_products(256, 300, [&](auto) { return product; }).alarm(Gradient::v);
    EXPECT_EQ(alarm.beyond, 0) << i;
    worst = std::max(worst, alarm.worst);
  }
  std::printf("dv of equal q: worst %.3f\n", worst);
  EXPECT_GT(worst, 0.05);
}

/// Rows and keys of normal numbers. Each second column of k meets zeros of q, and each of q zeros of k.
ByHand gaussian(std::int64_t rows, std::int64_t keys, std::int64_t dk, std::int64_t dv, std::uint64_t seed) {
  ByHand all;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto gauss = [&](auto, auto) { return normal(random); };
  all.of.c[Slot::q] = filled(DType::f32, rows, dk, gauss);
  all.of.c[Slot::k] = filled(DType::f32, keys, dk, gauss);
  all.of.c[Slot::v] = filled(DType::f32, keys, dv, gauss);
  all.of.d_out = filled(DType::f32, rows, dv, gauss);
  all.of.c.scale = 1 / std::sqrt(static_cast<double>(dk));
  return all;
}

// Where nearly all of the error is that of one kind of sum, which does not cancel. Without room for it the alarm would
// be raised.
struct Isolated {
  std::string what;
  Gradient of;
  std::string kernel;
  std::function<ByHand(std::mt19937_64&)> make;
};
std::vector<Isolated> isolated() {
  // Two keys that differ in a column that q does not see.
  const auto two_keys = [](std::int64_t rows, std::int64_t dk, std::int64_t dv, std::mt19937_64& random) {
    std::uniform_real_distribution<double> one_to_two(1, 2);
    const auto positive = [&](auto, auto) { return one_to_two(random); };
    ByHand all;
    all.of.c[Slot::q] = filled(DType::f32, rows, dk, [&](auto, std::int64_t c) { return c == 0 ? 0 : positive(0, c); });
    all.of.c[Slot::k] = filled(DType::f32, 2, dk, [&](std::int64_t j, std::int64_t c) {
      return (j == 0 ? 1 : -1) * (c == 0 ? 1 : positive(j, c));
    });
    all.of.c[Slot::v] = filled(DType::f32, 2, dv, positive);
    all.of.d_out = filled(DType::f32, rows, dv, positive);
    all.of.c.scale = 0.25 / static_cast<double>(dk);
    return all;
  };
  const auto with_sink = [](ByHand all) {
    all.of.c[Slot::sink] = Tensor(DType::f32, {1});
    return all;
  };
  const auto with_mask = [](ByHand all) {
    all.of.c[Slot::mask] = Tensor(DType::f32, {1, 1, all.of.c.q().shape()[2], all.of.c.k().shape()[2]});
    return all;
  };
  return {
      {"products g.v, dmask", Gradient::mask, "f32.backward",
       [=](std::mt19937_64& random) {
         ByHand all = two_keys(1, 1, 60'000, random);
         for (std::int64_t c = 0; c < 60'000; ++c) all.of.c[Slot::v].set(c, -all.of.c.v()[c]);
         return with_mask(std::move(all));
       }},
      {"sums over heads, dmask", Gradient::mask, "f32.backward",
       [=](std::mt19937_64& random) {
         // One key has all of its values, of one sign, and the other none.
         std::uniform_real_distribution<double> one_to_two(1, 2);
         constexpr std::int64_t heads = 8'000;
         ByHand all;
         all.of.c[Slot::q] = Tensor(DType::f32, {1, heads, 1, 1});
         all.of.c[Slot::k] = Tensor(DType::f32, {1, 1, 2, 1});
         all.of.c[Slot::v] = Tensor(DType::f32, {1, 1, 2, 1});
         all.of.c[Slot::v].set(1, 1);
         all.of.c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2});
         all.of.d_out = Tensor(DType::f32, {1, heads, 1, 1});
         for (std::int64_t h = 0; h < heads; ++h) all.of.d_out.set(h, one_to_two(random));
         return all;
       }},
      {"sums over rows, dsink", Gradient::sink, "f32.backward",
       [=](std::mt19937_64& random) { return with_sink(two_keys(30'000, 1, 1, random)); }},
      {"products g.o of D, dsink", Gradient::sink, "f32.backward",
       [=](std::mt19937_64& random) { return with_sink(two_keys(1, 1, 60'000, random)); }},
      {"sums over rows, dv", Gradient::v, "f32.backward",
       [=](std::mt19937_64& random) { return two_keys(30'000, 1, 1, random); }},
      {"products g.v, dq", Gradient::q, "f32.backward",
       [=](std::mt19937_64& random) {
         ByHand all = two_keys(1, 1, 60'000, random);
         for (std::int64_t c = 0; c < 60'000; ++c) all.of.c[Slot::v].set(c, -all.of.c.v()[c]);
         return all;
       }},
      {"products q.k, dv", Gradient::v, "f32.backward",
       [](std::mt19937_64& random) {
         std::uniform_real_distribution<double> one_to_two(1, 2);
         return of_large_products(1, 300, [&](auto) { return one_to_two(random); });
       }},
      {"products g.o of D, dq", Gradient::q, "f32.backward",
       [](std::mt19937_64& random) {
         // Values that are nearly the same for all keys, and a column of k that is.
         std::normal_distribution<double> normal;
         constexpr std::int64_t keys = 4096, columns = 1000;
         const auto positive = [&](auto, auto) { return 1 + 0.01 * normal(random); };
         ByHand all;
         all.of.c[Slot::q] = filled(DType::f32, 1, 1, [](auto, auto) { return 0; });
         all.of.c[Slot::k] = filled(DType::f32, keys, 1, [](auto, auto) { return 1; });
         all.of.c[Slot::v] = filled(DType::f32, keys, columns, positive);
         all.of.d_out = filled(DType::f32, 1, columns, positive);
         return all;
       }},
      {"sums of D over keys, dk", Gradient::k, "f32.backward.weights-delta",
       [](std::mt19937_64& random) {
         std::uniform_real_distribution<double> one_to_two(1, 2);
         const auto positive = [&](auto, auto) { return one_to_two(random); };
         ByHand all;
         all.of.c[Slot::q] = filled(DType::f32, 1, 1, positive);
         all.of.c[Slot::k] = filled(DType::f32, 30'000, 1, positive);
         all.of.c[Slot::v] = filled(DType::f32, 30'000, 1, positive);
         all.of.d_out = filled(DType::f32, 1, 1, positive);
         return all;
       }},
  };
}

TEST(GradientAlarmOfCorrectKernels, HasRoomForEachKindOfSum) {
  for (const Isolated& one : isolated()) {
    Alarm all;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      std::mt19937_64 random(seed);
      ByHand made = one.make(random);
      made.kernel = backward_kernel_named(one.kernel);
      all.merge(made.alarm(one.of));
    }
    std::printf("%s: worst %.3f\n", one.what.c_str(), all.worst);
    EXPECT_EQ(all.beyond, 0) << one.what;
    EXPECT_GT(all.worst, 0.005) << one.what;
    EXPECT_GT(all.elements, 0) << one.what;
  }
}

TEST(GradientAlarms, AreNeverLargerThanTheProvedBound) {
  for (const BackwardEmulation& kernel : correct_backward_kernels()) {
    for (int r = 0; r < validated_regimes; ++r) {
      std::mt19937_64 random(static_cast<std::uint64_t>(r));
      const BackwardCase of = draw_backward(static_cast<Regime>(r), Loss::gauss, kernel.forward.arithmetic.input, 2,
                                            {.M = 9, .N = 40, .dk = 12, .dv = 20}, Added::nothing, random);
      Answer answer = emulate_heads(kernel.forward, of.c);
      const BackwardInputs given{of.d_out, of.d_lse, std::move(answer.out), std::move(answer.lse)};
      const Arithmetic& forward = kernel.forward.arithmetic;
      const GradientBounds proved = gradient_bounds(of.c, given, forward, kernel.backward);
      const GradientAlarms alarms = gradient_alarms(of.c, given, forward, kernel.backward, alarmed());
      for (const Gradient gradient : every_gradient) {
        const auto g = static_cast<std::size_t>(gradient);
        ASSERT_EQ(alarms[g].size(), proved[g].size());
        for (std::size_t e = 0; e < proved[g].size(); ++e) {
          if (proved[g][e].excuse != Excuse::none) continue;
          EXPECT_LE(alarms[g][e].allowed, proved[g][e].allowed) << kernel.forward.name;
          EXPECT_GT(alarms[g][e].allowed, 0) << kernel.forward.name;
          EXPECT_EQ(alarms[g][e].covered, forward.rounding == Rounding::nearest) << kernel.forward.name;
        }
      }
    }
  }
}

TEST(GradientAlarms, AreSeveralTimesSharperOnGaussianRows) {
  const ByHand all = gaussian(64, 1024, 64, 16, 3);
  BackwardInputs given;
  static_cast<void>(all.gradients(given));
  const Arithmetic& forward = all.kernel.forward.arithmetic;
  const GradientBounds proved = gradient_bounds(all.of.c, given, forward, all.kernel.backward);
  const GradientAlarms alarms = gradient_alarms(all.of.c, given, forward, all.kernel.backward, alarmed());
  for (const auto& [gradient, least] :
       {std::pair(Gradient::q, 3.0), std::pair(Gradient::k, 2.0), std::pair(Gradient::v, 2.0)}) {
    const auto g = static_cast<std::size_t>(gradient);
    std::vector<double> gains;
    gains.reserve(alarms[g].size());
    for (std::size_t e = 0; e < alarms[g].size(); ++e) gains.push_back(proved[g][e].allowed / alarms[g][e].allowed);
    std::ranges::nth_element(gains, gains.begin() + std::ssize(gains) / 2);
    const double gain = gains[gains.size() / 2];
    std::printf("%s: proved / alarm, median: %.3g\n", std::string(name_of(gradient)).c_str(), gain);
    EXPECT_GE(gain, least);
  }
}

TEST(GradientAlarms, LeaveTheVerdictAsItIs) {
  ByHand all = gaussian(20, 64, 16, 8, 4);
  BackwardInputs given;
  std::array<Tensor, gradient_count> found = all.gradients(given);
  const auto judge = [&](const GradientOptions& options) {
    return judge_gradients(all.of.c, given, found, all.kernel.forward.arithmetic, all.kernel.backward, options);
  };
  const auto without = judge({}), with = judge(alarmed());
  for (const Gradient gradient : gradients_by_inputs) {
    const auto g = static_cast<std::size_t>(gradient);
    EXPECT_FALSE(without[g].alarm.has_value());
    ASSERT_TRUE(with[g].alarm.has_value());
    EXPECT_EQ(with[g].alarm->elements, found[g].elements());
    EXPECT_EQ(with[g].outcome, without[g].outcome);
    EXPECT_EQ(with[g].utilisation, without[g].utilisation);
  }
  found[1].set(3, std::numeric_limits<double>::quiet_NaN());
  const Verdict lost = judge(alarmed())[1];
  EXPECT_EQ(lost.outcome, Outcome::violated);
  EXPECT_EQ(lost.alarm->beyond, 1);
  EXPECT_TRUE(std::isinf(lost.alarm->worst));
}

TEST(GradientAlarms, SayNothingOfMoreTermsThanTheyKeep) {
  ByHand all = gaussian(1100, 1000, 2, 2, 6);
  const auto verdicts = all.judged();
  EXPECT_EQ(verdicts[0].alarm->elements, 2200);
  EXPECT_EQ(verdicts[1].alarm->elements, 0);
  EXPECT_EQ(verdicts[1].alarm->uncovered, 2000);
  EXPECT_EQ(verdicts[2].alarm->uncovered, 2000);
  all.of.c[Slot::mask] = Tensor(DType::f32, {1, 1, 1100, 1000});
  const Alarm of_mask = all.alarm(Gradient::mask);
  EXPECT_EQ(of_mask.elements, 0);
  EXPECT_EQ(of_mask.uncovered, 1'100'000);
}

/// The alarm of dsink over rows of q, each of which is the same times a number of its own. D is a sum over the weights
/// of a key whose score errs by much and of one whose score does not.
double alarm_of_sink(const std::function<double(std::int64_t)>& factor) {
  constexpr std::int64_t rows = 256, dk = 100;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> one_to_two(1, 2);
  ByHand all = of_large_products(rows, dk, [&](auto) { return one_to_two(random); });
  all.of.c[Slot::q] = filled(DType::f32, rows, dk, [&](std::int64_t i, auto) { return factor(i); });
  for (std::int64_t c = 0; c < dk; ++c) all.of.c[Slot::k].set(dk + c, c == 0 ? 1.1 : 0);
  for (std::int64_t j = 0; j < 2; ++j) all.of.c[Slot::v].set(j, j == 0 ? 1 : 0);
  all.of.c[Slot::sink] = Tensor(DType::f32, {1});
  all.of.d_out = filled(DType::f32, rows, 1, [&](auto, auto) { return one_to_two(random); });
  all.kernel.backward.delta = DeltaFrom::weights;
  BackwardInputs given;
  static_cast<void>(all.gradients(given));
  GradientOptions options = alarmed();
  options.at = GradientsAt::answers;
  return gradient_alarms(all.of.c, given, all.kernel.forward.arithmetic, all.kernel.backward,
                         options)[static_cast<std::size_t>(Gradient::sink)]
      .at(0)
      .allowed;
}

TEST(GradientAlarms, CountTheWeightsThatEqualRowsShareInFull) {
  const double equal = alarm_of_sink([](auto) { return 1; });
  const double unlike = alarm_of_sink([](std::int64_t i) { return 1 + 0x1p-16 * static_cast<double>(i); });
  std::printf("alarm of equal rows, by that of others: %.3g\n", equal / unlike);
  EXPECT_GT(equal, 4 * unlike);
}

/// The alarm of an element of a mask that two heads share, which read so many heads of k and v: the same ones.
double alarm_of_shared_mask(std::int64_t kv_heads) {
  constexpr std::int64_t dv = 6000;
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  ByHand all;
  const auto drawn = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    Tensor t(DType::f32, {1, heads, rows, width});
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, normal(random));
    return t;
  };
  const auto repeated = [&](const Tensor& one) {
    Tensor t(DType::f32, {1, kv_heads, one.shape()[2], one.shape()[3]});
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, one[e % one.elements()]);
    return t;
  };
  all.of.c[Slot::q] = drawn(2, 1, 2);
  all.of.d_out = drawn(2, 1, dv);
  all.of.c[Slot::k] = repeated(drawn(1, 2, 2));
  all.of.c[Slot::v] = repeated(drawn(1, 2, dv));
  all.of.c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2});
  // The emulated passes have one head of k and v.
  const AttentionBounds exact = attention_bounds(all.of.c, all.kernel.forward.arithmetic);
  BackwardInputs given{all.of.d_out, {}, Tensor(DType::f32, {1, 2, 1, dv}), Tensor(DType::f64, {1, 2, 1})};
  for (std::int64_t e = 0; e < given.out.elements(); ++e)
    given.out.set(e, exact.elements[static_cast<std::size_t>(e)].value);
  for (std::int64_t h = 0; h < 2; ++h) given.lse.set(h, exact.rows[static_cast<std::size_t>(h)].lse);
  return gradient_alarms(all.of.c, given, all.kernel.forward.arithmetic, all.kernel.backward,
                         alarmed())[static_cast<std::size_t>(Gradient::mask)]
      .at(0)
      .allowed;
}

TEST(GradientAlarms, CountInFullWhatHeadsOfOtherKeysMayShare) {
  const double one = alarm_of_shared_mask(1), several = alarm_of_shared_mask(2);
  std::printf("alarm of two heads of k, by that of one: %.3g\n", several / one);
  EXPECT_GT(several, 4 * one);
}

// ---- What it is for ----

/// Where each term of the second column has the sign of its dS, so that an error of all of them does not cancel.
ByHand aligned(Gradient of, const BackwardFault& fault) {
  ByHand all = gaussian(of == Gradient::q ? 1 : 1000, of == Gradient::q ? 1000 : 3, 64, 64, 9);
  const bool by_keys = of == Gradient::q;
  Tensor &own = all.of.c[by_keys ? Slot::k : Slot::q], &other = all.of.c[by_keys ? Slot::q : Slot::k];
  for (std::int64_t i = 0; i < other.shape()[2]; ++i) other.set(i * 64 + 1, 0);
  all.of.c[Slot::mask] = Tensor(DType::f32, {1, 1, all.of.c.q().shape()[2], all.of.c.k().shape()[2]});
  BackwardInputs given;
  const Tensor scores = all.gradients(given)[static_cast<std::size_t>(Gradient::mask)];
  for (std::int64_t i = 0; i < own.shape()[2]; ++i) {
    const double dS = scores[by_keys ? i : i * 3];
    own.set(i * 64 + 1, std::copysign(1, dS));
  }
  all.kernel.fault = fault;
  return all;
}

TEST(GradientAlarms, HearWhatTheProvedBoundAllows) {
  for (const Gradient of : {Gradient::q, Gradient::k}) {
    EXPECT_EQ(aligned(of, {}).alarm(of).beyond, 0);
    BackwardFault fault;
    fault.apart_factor = 1 + 4e-5;
    const Alarm alarm = aligned(of, fault).alarm(of);
    std::printf("%s times 1 + 4e-5: worst %.3f\n", std::string(name_of(of)).c_str(), alarm.worst);
    EXPECT_GT(alarm.beyond, 0);
  }
  // Of dv a log-sum-exp that is off, which no other gradient shows at the answers.
  ByHand all = sum_of(4096, [](std::int64_t i) { return 1 + 1e-4 * static_cast<double>(i % 997); });
  EXPECT_EQ(all.alarm(Gradient::v).beyond, 0);
  all.kernel.fault.lse_error = 1.2e-4;
  EXPECT_EQ(all.alarm(Gradient::v).beyond, 1);
}

}  // namespace
}  // namespace attest::fleet
