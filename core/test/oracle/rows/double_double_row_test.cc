// The oracle's double-double level on whole rows: its certificate against balls, its verdicts against those of balls.
#include "core/oracle/rows/double_double_row.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "core/oracle/oracle.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/problem/case.h"

namespace attest::detail {
namespace {

constexpr double largest = std::numeric_limits<double>::max();
constexpr double largest_float = 3.4028234663852886e38;

/// What makes a row hard.
struct Regime {
  const char* name;
  double q_size = 1, v_size = 1;
  double offset = 0;  ///< added to all scores
  double mask = 0;    ///< a random half of the entries, or all of them
  bool all_masked = false;
  bool random_mask = false;  ///< every entry also gets a normal number
  bool cancelling = false;   ///< q.k nearly 0 with large products
  bool one_hot = false;      ///< values are 1 at one key of a column, else 0
  bool ties = false;         ///< equal keys
  MaskConvention convention = MaskConvention::post_scale;
  bool within = true;  ///< every row must be settled in double-double, none need balls
  bool fused = false;  ///< but where products are fused alone: halves of such values overflow
};

const Regime regimes[] = {
    {.name = "plain"},
    {.name = "sharp", .q_size = 30},
    {.name = "offset", .offset = 3000},
    {.name = "far offset", .offset = 1e9},
    {.name = "cancelling", .q_size = 1e3, .cancelling = true},
    {.name = "huge scores", .q_size = 1e7, .within = false},
    {.name = "hugest scores", .q_size = 1e18, .within = false},
    {.name = "bias", .random_mask = true},
    {.name = "bias before the scale", .random_mask = true, .convention = MaskConvention::pre_scale},
    {.name = "finite mask", .mask = -1e9},
    {.name = "all -1e9", .mask = -1e9, .all_masked = true, .random_mask = true},
    {.name = "-FLT_MAX", .mask = -largest_float},
    {.name = "all -FLT_MAX", .mask = -largest_float, .all_masked = true, .within = false},
    {.name = "-DBL_MAX", .mask = -largest},
    {.name = "all -DBL_MAX", .mask = -largest, .all_masked = true, .within = false},
    {.name = "-DBL_MAX before the scale", .mask = -largest, .convention = MaskConvention::pre_scale},
    {.name = "huge values", .v_size = 1e290},
    {.name = "hugest values", .v_size = 1e306, .fused = true},
    {.name = "tiny values", .v_size = 1e-290},
    {.name = "subnormal values", .v_size = 1e-315, .within = false},
    {.name = "tiny products", .q_size = 1e-300},
    {.name = "one-hot", .q_size = 10, .one_hot = true},
    {.name = "one-hot, lost weights", .q_size = 200, .one_hot = true, .within = false},
    {.name = "ties", .ties = true},
};

Case draw_case(std::mt19937_64& random, const Regime& r, DType dtype) {
  std::normal_distribution<double> normal;
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const std::int64_t N = pick(1, 40), dk = r.cancelling ? 2 * pick(1, 10) : pick(1, 20), dv = pick(1, 6);
  const auto size = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
  std::vector<double> q(size(1, dk)), k(size(N, dk)), v(size(N, dv)), mask(size(1, N));
  for (double& x : q) x = r.q_size * normal(random);
  for (double& x : k) x = normal(random);
  if (r.ties)
    for (std::size_t e = static_cast<std::size_t>(dk); e < k.size(); ++e) k[e] = k[e - static_cast<std::size_t>(dk)];
  if (r.cancelling)
    for (std::size_t e = 1; e < k.size(); e += 2) {
      const std::size_t c = e % static_cast<std::size_t>(dk);
      k[e] = -k[e - 1] * q[c - 1] / q[c] * (1 + 1e-9 * normal(random));
    }
  for (double& x : v) x = r.v_size * normal(random);
  if (r.one_hot)
    for (std::int64_t j = 0; j < N; ++j)
      for (std::int64_t c = 0; c < dv; ++c) v[static_cast<std::size_t>(j * dv + c)] = j % dv == c && j < dv ? 1 : 0;
  bool hidden = false;
  for (double& x : mask) {
    const bool here = r.all_masked || (random() & 1 && hidden);
    hidden = true;
    x = (here ? r.mask : 0) + (r.random_mask ? 5 * normal(random) : 0) + r.offset;
  }
  Case c;
  c[Slot::q] = Tensor(dtype, Shape{1, 1, 1, dk}, q);
  c[Slot::k] = Tensor(dtype, Shape{1, 1, N, dk}, k);
  c[Slot::v] = Tensor(dtype, Shape{1, 1, N, dv}, v);
  if (r.mask != 0 || r.random_mask || r.offset != 0) c[Slot::mask] = Tensor(DType::f64, Shape{1, 1, 1, N}, mask);
  c.scale = random() & 1 ? 0.125 : 0.7 / std::sqrt(static_cast<double>(dk));
  c.mask_convention = r.convention;
  return c;
}

struct Evaluated {
  Head head;
  Profile profile;
  RowOracle oracle;
  Excuse excuse = Excuse::none;
  Evaluated(const Case& c, const Arithmetic& a) {
    head.load(c, sequence_of(c, 0), 0, false);
    profile = profile_of(a, {.keys = head.keys,
                             .dk = head.dk,
                             .scale = head.scale,
                             .bias = head.bias,
                             .convention = head.convention,
                             .mask = c.mask().present() ? c.mask().dtype() : c.dtype()});
    excuse = oracle.start(head, 0, profile, true, true, 4096);
  }
};

TEST(DoubleDoubleRow, CertificateHoldsAgainstBallsInEveryRegime) {
  for (const Regime& r : regimes) {
    SCOPED_TRACE(r.name);
    std::mt19937_64 random(11);
    std::map<int, int> levels;
    double worst = 0;
    int judged = 0;
    const bool within = r.within && (!r.fused || __builtin_cpu_supports("fma"));
    for (int round = 0; round < 150; ++round) {
      const DType dtype = round % 3 == 0 && r.v_size == 1 && r.q_size < 1e9 && r.q_size >= 1 ? DType::f32 : DType::f64;
      const Case c = draw_case(random, r, dtype);
      Arithmetic arithmetic = universal_arithmetic(dtype, dtype);
      arithmetic.folded_exp2 = round % 2 == 0;  // without it there is no end to the domain at large scores
      Evaluated row(c, arithmetic);
      if (row.excuse != Excuse::none) continue;
      ++judged;
      RowOracle& oracle = row.oracle;
      const bool settled = oracle.level() == 2 || (oracle.level() == 1 && oracle.evaluate_double_double());
      ++levels[settled ? 2 : oracle.level()];
      if (!settled) continue;
      ASSERT_EQ(oracle.level(), 2);
      BallRow exact;
      exact.evaluate(row.head, oracle.row(), 1500);
      for (std::int64_t k = 0; k < row.head.dv; ++k) {
        const double found = oracle.value(k);
        double lower = 0, upper = 0, exact_lower = 0, exact_upper = 0;
        oracle.distance(k, found, lower, upper);
        exact.distance(k, found, exact_lower, exact_upper);
        EXPECT_LE(lower, exact_upper) << k;
        EXPECT_GE(upper, exact_lower) << k;
        EXPECT_LE(exact_upper, oracle.certificate(k)) << k;
        const double low = (lower + upper) / 2, radius = (upper - lower) / 2;
        if (radius > 0) worst = std::max(worst, std::fabs(exact_upper - low) / radius);
        if (within) {
          EXPECT_LE(radius, 0x1p-8 * oracle.element(k).allowed) << k;
        }
      }
      double lower = 0, upper = 0, exact_lower = 0, exact_upper = 0;
      oracle.lse_distance(oracle.lse(), lower, upper);
      exact.lse_distance(oracle.lse(), exact_lower, exact_upper);
      EXPECT_LE(lower, exact_upper);
      EXPECT_GE(upper, exact_lower);
      EXPECT_LE(exact_upper, oracle.lse_certificate());
    }
    if (within) {
      EXPECT_GE(judged, 100);
      EXPECT_EQ(levels[2], judged);
    }
    RecordProperty(r.name, std::to_string(worst));
  }
}

/// The exact answer as nearest doubles, each moved by `share` of its bound.
struct Answer {
  Tensor out, lse;
};
Answer displaced(const Case& c, const Arithmetic& arithmetic, double share) {
  const AttentionBounds bounds = attention_bounds(c, arithmetic, true);
  Answer a{Tensor(DType::f64, c.out_shape()), Tensor(DType::f64, Shape{1, 1, 1})};
  for (std::size_t e = 0; e < bounds.elements.size(); ++e)
    a.out.set(static_cast<std::int64_t>(e), bounds.elements[e].value + share * bounds.elements[e].allowed);
  a.lse.set(0, bounds.rows[0].lse + share * bounds.rows[0].lse_allowed);
  return a;
}

TEST(DoubleDoubleRow, JudgesAsBallsDo) {
  int held = 0, violated = 0, by_double_double = 0;
  for (const Regime& r : regimes) {
    SCOPED_TRACE(r.name);
    std::mt19937_64 random(12);
    for (int round = 0; round < 40; ++round) {
      const Case c = draw_case(random, r, DType::f64);
      Arithmetic arithmetic = universal_arithmetic(DType::f64, DType::f64);
      arithmetic.folded_exp2 = round % 2 == 0;
      for (const double share : {0.0, 0.5, -0.9, 0.97, 1.03, -1.2, 4.0}) {
        const Answer a = displaced(c, arithmetic, share);
        const Verdict quick = judge_attention(c, a.out, a.lse, arithmetic, {.ignores_dead_values = true});
        const Verdict sure =
            judge_attention(c, a.out, a.lse, arithmetic, {.first_level = 3, .ignores_dead_values = true});
        ASSERT_EQ(quick.outcome, sure.outcome) << share << ": " << quick.reason << " / " << sure.reason;
        held += quick.outcome == Outcome::held;
        violated += quick.outcome == Outcome::violated;
        by_double_double += quick.level == 2;
        if (quick.outcome == Outcome::held) {
          EXPECT_NEAR(quick.utilisation, sure.utilisation, 0x1p-7) << share;
        }
      }
    }
  }
  EXPECT_GT(held, 1000);
  EXPECT_GT(violated, 1000);
  EXPECT_GT(by_double_double, 2000);
}

TEST(DoubleDouble, AQuotientIsNearAsFarAsDoublesGo) {
  using Exact = boost::multiprecision::cpp_bin_float_100;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> of_one(1, 2);
  int beyond_halves = 0;
  for (int round = 0; round < 20000; ++round) {
    const int exponent = std::uniform_int_distribution<int>(-600, 1023)(random);
    const double high = std::ldexp(of_one(random), exponent), divisor = (round % 2 ? -1 : 1) * of_one(random) * 64;
    const DoubleDouble a{high, high * 0x1p-54 * (of_one(random) - 1.5)}, b{divisor, divisor * 0x1p-54 * 0.7};
    const DoubleDouble q = quotient_of(a, b);
    ASSERT_TRUE(std::isfinite(q.high) && std::isfinite(q.low)) << high << '/' << divisor;
    beyond_halves += std::fabs(q.high) > 0x1p997;
    const Exact exact = (Exact(a.high) + a.low) / (Exact(b.high) + b.low);
    EXPECT_LE(abs(Exact(q.high) + q.low - exact), abs(exact) * 0x1p-100) << high << '/' << divisor;
  }
  EXPECT_GT(beyond_halves, 100);
}

}  // namespace
}  // namespace attest::detail
