// The loops over keys on every processor: the same numbers from both tables, and those of the last, partly filled
// block.
#include "../src/bound/key_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

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

TEST(key_loops, tables_agree_on_full_and_partial_blocks) {
  const KeyLoops* fast = key_loops_named("avx2");
  if (fast == nullptr) GTEST_SKIP() << "this processor has no AVX2";
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

TEST(key_loops, results_are_those_of_the_keys_alone) {
  for (const char* name : {"baseline", "avx2"}) {
    const KeyLoops* loops = key_loops_named(name);
    if (loops == nullptr) continue;
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
}

}  // namespace
}  // namespace attest::detail
