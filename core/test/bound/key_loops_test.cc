// The loops over keys on every processor: the same numbers from every table, and those of the last, partly filled
// block.
#include "core/bound/loops/key_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/support/infinity.h"

namespace attest::detail {
namespace {

constexpr std::size_t arrays = 13;

struct Outcome {
  std::array<std::vector<double>, arrays> x;
  ScoreRange scores;
  ErrorRange errors;
  WeightSums weights;
};

/// Every loop on n keys. The last key but one carries no weight.
Outcome run(const KeyLoops& loops, std::int64_t n, bool bias, bool input) {
  Outcome out;
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::uniform_real_distribution<double> number(0.1, 1.0);
  for (auto& array : out.x)
    for (std::int64_t j = 0; j < n; ++j) array.push_back(number(random));
  auto& x = out.x;
  const auto count = static_cast<std::size_t>(n);
  for (std::size_t j = 0; j < count; ++j) x[4][j] = std::log(x[5][j] /= static_cast<double>(2 * n));
  if (n > 1) x[4][count - 2] = -1e4, x[5][count - 2] = 0, x[0][count - 2] = -1e4;
  const KeyArrays keys{x[0].data(),
                       x[1].data(),
                       x[2].data(),
                       x[3].data(),
                       x[4].data(),
                       x[5].data(),
                       bias ? x[6].data() : nullptr,
                       input ? x[7].data() : nullptr,
                       x[8].data(),
                       x[9].data(),
                       x[10].data(),
                       x[11].data(),
                       x[12].data()};
  KeyConstants c;
  c.tau = 0.125, c.on_size = 1e-6, c.on_t = 2e-6, c.on_s = 3e-6, c.on_b = 4e-6, c.constant = 1e-7;
  c.th_tau = 1e-6, c.th_l2e = 2e-6, c.thE = 1e-6, c.residual = 1e-6, c.rest = 1e-6;
  c.dead = -745, c.unit = 0x1p-53, c.unit_here = 0x1p-47, c.exp_here = 0x1p-49, c.u_a = 0.01;
  loops.means(keys, n, c.g_mean, c.s_mean);
  loops.score_errors(keys, n, c);
  out.scores = loops.score_range(keys, n, c);
  c.M = out.scores.M, c.Mabs = std::fabs(out.scores.top), c.s_top = out.scores.s_top;
  out.errors = loops.errors(keys, n, c);
  out.weights = loops.weights(keys, n, c);
  return out;
}

void expect_near(double a, double b) {
  EXPECT_LE(std::fabs(a - b), 1e-12 * std::fabs(b)) << a << " and " << b;
}

class KeyLoopsOf : public testing::TestWithParam<const char*> {};

TEST_P(KeyLoopsOf, AgreeWithTheBaselineOnFullAndPartialBlocks) {
  const KeyLoops* fast = key_loops_named(GetParam());
  if (fast == nullptr) GTEST_SKIP() << "this processor cannot run them";
  for (std::int64_t n = 1; n <= 19; ++n)
    for (int form = 0; form < 4; ++form) {
      const Outcome a = run(*fast, n, form & 1, form & 2), b = run(*key_loops_named("baseline"), n, form & 1, form & 2);
      for (std::size_t row = 0; row < arrays; ++row)
        for (std::size_t j = 0; j < a.x[row].size(); ++j) expect_near(a.x[row][j], b.x[row][j]);
      expect_near(a.scores.M, b.scores.M), expect_near(a.scores.top, b.scores.top);
      expect_near(a.scores.bottom, b.scores.bottom), expect_near(a.scores.size, b.scores.size);
      expect_near(a.errors.E, b.errors.E), expect_near(a.errors.least_E, b.errors.least_E);
      expect_near(a.errors.vanished_Q, b.errors.vanished_Q), expect_near(a.weights.reach, b.weights.reach);
      expect_near(a.weights.denominators, b.weights.denominators);
      EXPECT_EQ(a.weights.big, b.weights.big);
    }
}

TEST_P(KeyLoopsOf, ResultsAreThoseOfTheKeysAlone) {
  const KeyLoops* loops = key_loops_named(GetParam());
  if (loops == nullptr) GTEST_SKIP() << "this processor cannot run them";
  for (std::int64_t n = 2; n <= 19; ++n) {
    const Outcome r = run(*loops, n, false, false);
    double E = 0, reach = 0, denominators = 0;
    std::int64_t big = 0;
    for (std::size_t j = 0; j < r.x[10].size(); ++j) {
      if (j + 2 != r.x[10].size()) E = std::max(E, r.x[10][j]);
      reach += r.x[11][j], denominators += std::min(r.x[12][j], 0.01), big += r.x[12][j] > 0.01;
    }
    expect_near(r.errors.E, E), expect_near(r.weights.reach, reach);
    expect_near(r.weights.denominators, denominators);
    EXPECT_EQ(r.weights.big, big);
    EXPECT_GT(r.errors.vanished_Q, 9e3);
    EXPECT_LT(r.errors.Q, 10) << "a key without weight was counted among those that carry some";
    EXPECT_EQ(r.x[12][r.x[12].size() - 2], 0);
  }
  EXPECT_EQ(run(*loops, 1, false, false).errors.vanished_Q, 0) << "a copy that fills the block was counted";
}

TEST_P(KeyLoopsOf, PrepareARow) {
  const KeyLoops* loops = key_loops_named(GetParam());
  if (loops == nullptr) GTEST_SKIP() << "this processor cannot run them";
  std::mt19937_64 random(7);
  std::normal_distribution<double> number;
  for (std::int64_t n = 1; n <= 19; ++n) {
    const auto count = static_cast<std::size_t>(n);
    std::vector<double> x(count), size(count), b(count), t(count), s(count), la(count), alpha(count);
    for (auto* array : {&x, &size, &b, &alpha})
      for (double& value : *array) value = number(random);
    // One entry more than there are keys, which nothing may look at or touch.
    for (auto* array : {&x, &size, &b}) array->push_back(infinity);
    for (auto* array : {&t, &s, &la, &alpha}) array->push_back(99);
    const std::vector<double> weight = alpha;
    for (const bool bias : {false, true}) {
      const RowScores found =
          loops->scores(x.data(), size.data(), bias ? b.data() : nullptr, 0.3, n, t.data(), s.data());
      double most = s[0], most_size = 0;
      for (std::size_t j = 0; j < count; ++j) {
        EXPECT_EQ(t[j], 0.3 * x[j]);
        EXPECT_EQ(s[j], bias ? t[j] + b[j] : t[j]);
        most = std::max(most, s[j]), most_size = std::max(most_size, size[j]);
      }
      EXPECT_EQ(found.most, most);
      EXPECT_EQ(found.most_size, most_size);
      EXPECT_TRUE(found.finite);
    }
    loops->normalise(s.data(), n, 2.5, 0.75, 0.1, la.data(), alpha.data());
    for (std::size_t j = 0; j < count; ++j) {
      EXPECT_EQ(la[j], (s[j] - 2.5) - 0.75);
      EXPECT_EQ(alpha[j], weight[j] * 0.1);
    }
    for (const auto* array : {&t, &s, &la, &alpha}) EXPECT_EQ(array->back(), 99);
    std::vector<float> narrowed(count + 1, 99.0F);
    loops->narrow(x.data(), n, narrowed.data());
    for (std::size_t j = 0; j < count; ++j) EXPECT_EQ(narrowed[j], static_cast<float>(x[j]));
    EXPECT_EQ(narrowed.back(), 99.0F);
    for (const double bad : {std::nan(""), infinity})
      for (std::size_t at = 0; at < count; ++at)
        for (auto* array : {&x, &size}) {
          const double before = std::exchange((*array)[at], bad);
          EXPECT_FALSE(loops->scores(x.data(), size.data(), nullptr, 0.3, n, t.data(), s.data()).finite);
          (*array)[at] = before;
        }
  }
}

TEST_P(KeyLoopsOf, KnowWhatAWeightMayLose) {
  const KeyLoops* loops = key_loops_named(GetParam());
  if (loops == nullptr) GTEST_SKIP() << "this processor cannot run them";
  // Exponents above -700, between -700 and the one where a weight is dead, and below that.
  const std::vector<double> la{-1, -699, -710, -744, -746, -1e4}, pp{0.5, 1e-300, 1e-308, 5e-324, 0, 0};
  for (const auto& [vanishes, lam_weight, z] : {std::tuple(false, 1e-5, 0.0), std::tuple(true, 1e-5, 0.0),
                                                std::tuple(true, 0.0, 0.0), std::tuple(true, 1e-5, -9000.5)})
    for (std::size_t n = 1; n <= 40; ++n) {
      std::vector<double> logs(n), weights(n), zero(n, 0.0), caps(n + 1, 99);
      for (std::size_t j = 0; j < n; ++j) logs[j] = la[j % la.size()] + z, weights[j] = pp[j % pp.size()];
      KeyArrays keys{};
      keys.la = logs.data(), keys.E = zero.data(), keys.pp = weights.data();
      const double least =
          loops->lost_weights(keys, static_cast<std::int64_t>(n), 1e-3, lam_weight, -745, z, vanishes, caps.data());
      double expected_least = infinity;
      for (std::size_t j = 0; j < n; ++j) {
        const double exponent = logs[j] - z;
        const double whole = exponent > -700 ? weights[j] : exponent > -745 ? 0x1p-1009 : 0.0;
        const double stored = std::min(1e-3, whole);
        const double most = exponent > -700 ? 1.0625 * weights[j] + stored : exponent > -745 ? infinity : 0.0;
        const double cap = stored + (vanishes ? std::min(lam_weight, most) : lam_weight);
        EXPECT_EQ(caps[j], cap) << j;
        expected_least = std::min(expected_least, cap);
      }
      EXPECT_EQ(least, expected_least);
      EXPECT_EQ(caps[n], 99);
    }
}

INSTANTIATE_TEST_SUITE_P(EveryTable, KeyLoopsOf, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace attest::detail
