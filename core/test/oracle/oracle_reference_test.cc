// The oracle's three levels, each forced in turn, against three evaluations it shares nothing with (row_references.h):
// whatever two of them enclose, the enclosures must overlap.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include "core/bound/row_bound.h"
#include "core/oracle/oracle.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/support/infinity.h"
#include "core/test/bound/row_references.h"
#include "core/test/cases.h"
#include "core/test/fleet/regimes.h"
#include "core/test/names.h"

namespace attest::fleet {

/// How GoogleTest prints a parameter.
static void PrintTo(Regime regime, std::ostream* out) {
  *out << name_of(regime);
}

}  // namespace attest::fleet

namespace attest::detail {
namespace {

using test::Range;
using test::RowRanges;

constexpr double float_max = 3.4028234663852886e38;

/// The profile of a kernel with the range of f64 and a unit roundoff of 2^-36: of a row of any format no bound is so
/// sharp that double must not judge it, none so loose that it leaves the domain.
Profile loose_profile(const Head& head, const Case& c) {
  Arithmetic f64 = universal_arithmetic(DType::f64, DType::f64);
  f64.base2 = f64.folded_exp2 = false;
  Profile p = profile_of(f64, {.keys = head.keys,
                               .dk = head.dk,
                               .scale = head.scale,
                               .bias = head.bias,
                               .convention = head.convention,
                               .mask = c.mask().present() ? c.mask().dtype() : c.dtype()});
  for (double* roundoff : {&p.u_score, &p.u_s, &p.u_qpre, &p.th_scale, &p.th_bias, &p.u_bc, &p.th_tau, &p.u_e,
                           &p.eps_exp, &p.u_lse, &p.eps_log, &p.u_a, &p.u_o, &p.u_range})
    *roundoff *= 0x1p17;
  return p;
}

/// [lower, upper] of |found - x| over the x of a range.
Range distances(const Range& x, double found) {
  const Mpfr f(found), below = x.lower - f, above = f - x.upper, zero(0);
  return {below > zero ? below : above > zero ? above : zero, -below > -above ? Mpfr(-below) : Mpfr(-above)};
}

Range around(double value, double radius) {
  return {Mpfr(value) - Mpfr(radius), Mpfr(value) + Mpfr(radius)};
}

/// What was compared, by level.
struct Counts {
  int rows = 0, excused = 0;
  int levels[4] = {};
};

class References {
 public:
  explicit References(const Case& c, Counts& counts) : c_(c), counts_(counts) {}

  void check() {
    const std::int64_t batch = c_.q().shape()[0], heads = c_.q().shape()[1], M = c_.q().shape()[2];
    const AttentionBounds bounds = attention_bounds(c_, f64_arithmetic(), true);
    const std::vector<ElementFacts> facts = exact_elements(c_, f64_arithmetic());
    std::size_t flat = 0;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h) {
        Head head;
        head.load(c_, sequence_of(c_, b), h, false);
        const Profile profile = loose_profile(head, c_);
        long most_bits = 0;
        for (std::int64_t i = 0; i < M; ++i) most_bits = std::max(most_bits, test::VisibleRow(c_, b, h, i).bits());
        const AttentionResult<Interval> intervals = test::by_intervals(c_, b, h, most_bits);
        for (std::int64_t i = 0; i < M; ++i, ++flat) {
          SCOPED_TRACE("b " + std::to_string(b) + " h " + std::to_string(h) + " i " + std::to_string(i));
          const test::VisibleRow row(c_, b, h, i);
          if (row.k.empty()) {
            RowOracle oracle;
            EXPECT_EQ(oracle.start(head, i, profile, true, true, 4096), Excuse::fully_masked);
            EXPECT_EQ(bounds.rows[flat].excuse, Excuse::fully_masked);
            EXPECT_EQ(bounds.rows[flat].lse, -infinity);
            continue;
          }
          const PrecisionScope<Mpfr> scope(test::digits_of(row.bits() + 200));
          references_ = {test::by_mpfr(row, row.bits()), {}, test::by_arb(row, row.bits())};
          for (Index e = 0; e < intervals.out.cols(); ++e)
            references_[1].out.push_back(test::range_of(intervals.out(i, e)));
          references_[1].lse = test::range_of(intervals.lse(i));
          agree(row);
          public_answers(bounds, facts, flat, row.dv);
          levels(head, i, profile);
        }
      }
  }

  static Arithmetic f64_arithmetic() {
    Arithmetic a = universal_arithmetic(DType::f64, DType::f64);
    a.folded_exp2 = a.base2 = false;
    return a;
  }

 private:
  /// The references overlap one another, and each is far narrower than anything it is to judge.
  void agree(const test::VisibleRow& row) {
    most_v_.assign(static_cast<std::size_t>(row.dv), 0.0);
    for (const auto& value : row.v)
      for (std::size_t e = 0; e < value.size(); ++e) most_v_[e] = std::max(most_v_[e], std::fabs(value[e]));
    for (const RowRanges& a : references_) {
      for (const RowRanges& b : references_) {
        for (std::size_t e = 0; e < a.out.size(); ++e) EXPECT_TRUE(test::overlap(a.out[e], b.out[e])) << e;
        EXPECT_TRUE(test::overlap(a.lse, b.lse));
      }
      for (std::size_t e = 0; e < a.out.size(); ++e)
        EXPECT_LE(a.out[e].upper - a.out[e].lower, Mpfr(0x1p-300) * Mpfr(most_v_[e])) << e;
      EXPECT_LE(a.lse.upper - a.lse.lower, Mpfr(0x1p-300));
    }
  }

  void expect_overlap(const Range& found, std::size_t e) {
    for (const RowRanges& reference : references_) EXPECT_TRUE(test::overlap(found, reference.out[e])) << e;
  }

  void public_answers(const AttentionBounds& bounds, const std::vector<ElementFacts>& facts, std::size_t row,
                      std::int64_t dv) {
    for (std::size_t e = 0; e < static_cast<std::size_t>(dv); ++e) {
      const std::size_t at = row * static_cast<std::size_t>(dv) + e;
      expect_overlap({Mpfr(facts[at].exact.lower), Mpfr(facts[at].exact.upper)}, e);
      const ElementBound& bound = bounds.elements[at];
      if (bounds.rows[row].excuse == Excuse::none) expect_overlap(around(bound.value, bound.certificate), e);
    }
    const RowBound& bound = bounds.rows[row];
    if (bound.excuse != Excuse::none) return;
    for (const RowRanges& reference : references_)
      EXPECT_TRUE(test::overlap(around(bound.lse, bound.lse_certificate), reference.lse));
  }

  void levels(const Head& head, std::int64_t i, const Profile& profile) {
    ++counts_.rows;
    RowOracle oracle;
    if (oracle.start(head, i, profile, true, true, 4096) != Excuse::none) {
      ++counts_.excused;
      return;
    }
    ASSERT_TRUE(oracle.certain());
    if (oracle.level() == 1) level(oracle);
    if (oracle.level() == 2 || (oracle.level() == 1 && oracle.evaluate_double_double())) {
      ASSERT_EQ(oracle.level(), 2);
      level(oracle);
    }
    const long first = std::max(oracle.precision(), first_precision(oracle.terms().largest_score));
    for (const long bits : {first, 2 * first}) {
      ASSERT_TRUE(oracle.evaluate_balls(bits, 4096));
      level(oracle);
      // The balls themselves: as doubles they are wider.
      const BallRow& balls = oracle.balls();
      for (std::size_t e = 0; e < most_v_.size(); ++e)
        expect_overlap(test::range_of(balls.o[static_cast<slong>(e)], balls.precision), e);
      for (const RowRanges& reference : references_)
        EXPECT_TRUE(test::overlap(test::range_of(balls.lse[0], balls.precision), reference.lse));
    }
  }

  void level(const RowOracle& oracle) {
    SCOPED_TRACE("level " + std::to_string(oracle.level()));
    ++counts_.levels[oracle.level()];
    for (std::size_t e = 0; e < most_v_.size(); ++e) {
      const auto k = static_cast<std::int64_t>(e);
      const double value = oracle.value(k), certificate = oracle.certificate(k);
      expect_overlap(around(value, certificate), e);
      EXPECT_LE(certificate, 0x1p-20 * most_v_[e] + 0x1p-1050) << "a certificate of nothing";
      // The verdict's own question: how far is the exact answer from what was found?
      for (const double found :
           {value, value * (1 + 0x1p-50), value + 2 * certificate, 0.0, 0.75 * most_v_[e], -3.0, 1e300}) {
        double lower = 0, upper = 0;
        oracle.distance(k, found, lower, upper);
        for (const RowRanges& reference : references_)
          EXPECT_TRUE(test::overlap({Mpfr(lower), Mpfr(upper)}, distances(reference.out[e], found)))
              << e << ", " << found;
      }
    }
    for (const RowRanges& reference : references_) {
      EXPECT_TRUE(test::overlap(around(oracle.lse(), oracle.lse_certificate()), reference.lse));
      for (const double found : {oracle.lse(), oracle.lse() + 1e-9, 0.0}) {
        double lower = 0, upper = 0;
        oracle.lse_distance(found, lower, upper);
        EXPECT_TRUE(test::overlap({Mpfr(lower), Mpfr(upper)}, distances(reference.lse, found))) << "lse, " << found;
      }
    }
  }

  const Case& c_;
  Counts& counts_;
  std::vector<RowRanges> references_;
  std::vector<double> most_v_;
};

void check(const Case& c, Counts& counts) {
  validate(c);
  References(c, counts).check();
}

class EveryRegime : public ::testing::TestWithParam<fleet::Regime> {};

TEST_P(EveryRegime, OverlapsAtEveryLevel) {
  const fleet::Regime regime = GetParam();
  constexpr fleet::Size sizes[] = {{2, 1, 1, 1}, {1, 2, 1, 3}, {2, 7, 5, 2}, {3, 24, 8, 3}, {1, 40, 16, 5}};
  Counts counts;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const fleet::Size& size : sizes) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        SCOPED_TRACE(std::string(name_of(dtype)) + " N " + std::to_string(size.N) + " seed " + std::to_string(seed));
        check(fleet::draw(regime, dtype, size, seed), counts);
      }
    }
  }
  EXPECT_LE(counts.excused, counts.rows / 10);
  const int judged = counts.rows - counts.excused;
  // Of the largest scores double knows too little, in the formats that have them.
  EXPECT_GE(counts.levels[1],
            regime == fleet::Regime::huge || regime == fleet::Regime::sinks ? judged / 2 : judged * 9 / 10);
  EXPECT_GE(counts.levels[2], judged * 9 / 10);
  EXPECT_EQ(counts.levels[3], 2 * judged);
}

std::vector<fleet::Regime> all_regimes() {
  std::vector<fleet::Regime> regimes;
  for (int r = 0; r <= static_cast<int>(fleet::Regime::stagnation); ++r)
    regimes.push_back(static_cast<fleet::Regime>(r));
  return regimes;
}
INSTANTIATE_TEST_SUITE_P(OracleReference, EveryRegime, ::testing::ValuesIn(all_regimes()),
                         [](const auto& spec) { return test::name_of_test(std::string(fleet::name_of(spec.param))); });

/// Cases by hand.
struct Shapes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, M = 3, N = 6, dk = 4, dv = 3;
};

class OracleReference : public ::testing::Test {
 protected:
  std::mt19937_64 random_{17};
  Counts counts_;

  std::vector<double> numbers(std::int64_t count, double size) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& x : values) x = size * std::normal_distribution<double>()(random_);
    return values;
  }
  Tensor tensor(DType dtype, const Shape& shape, double size) {
    return Tensor(dtype, shape, numbers(shape.elements(), size));
  }
  Case make(DType dtype, const Shapes& s, double q_size = 1, double k_size = 1, double v_size = 1) {
    Case c;
    c[Slot::q] = tensor(dtype, {s.batch, s.heads, s.M, s.dk}, q_size);
    c[Slot::k] = tensor(dtype, {s.batch, s.kv_heads, s.N, s.dk}, k_size);
    c[Slot::v] = tensor(dtype, {s.batch, s.kv_heads, s.N, s.dv}, v_size);
    c.scale = 1 / std::sqrt(static_cast<double>(s.dk));
    return c;
  }
};

TEST_F(OracleReference, MasksInBothConventionsBroadcastAndGrouped) {
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale})
    for (const Causal causal : {Causal::none, Causal::top_left, Causal::bottom_right})
      for (const bool whole : {false, true}) {
        Case c = make(DType::f32, {.batch = 2, .heads = 4, .kv_heads = 2});
        c.mask_convention = convention;
        c.causal = causal;
        Tensor mask = tensor(DType::f32, {whole ? 2 : 1, whole ? 4 : 1, 3, 6}, 3);
        for (std::int64_t e = 0; e < mask.elements(); e += 4) mask.set(e, -infinity);
        // A row that sees nothing.
        for (std::int64_t j = 0; j < 6; ++j) mask.set(6 + j, -infinity);
        c[Slot::mask] = mask;
        check(c, counts_);
        Tensor allowed(DType::boolean, {1, 4, 3, 6});
        for (std::int64_t e = 0; e < allowed.elements(); ++e) allowed.set(e, static_cast<double>(random_() % 2));
        c[Slot::mask] = allowed;
        check(c, counts_);
        c[Slot::mask] = Tensor();
        check(c, counts_);
      }
  EXPECT_GT(counts_.levels[1], 400);
  EXPECT_EQ(counts_.excused, 0);
}

TEST_F(OracleReference, CausalRowsBeyondTheKeysSeeNothing) {
  Case c = make(DType::f64, {.M = 5, .N = 3});
  c.causal = Causal::bottom_right;
  check(c, counts_);
  EXPECT_EQ(counts_.rows, 3);
}

TEST_F(OracleReference, FiniteMasksAsLowAsTheyGo) {
  for (const double low : {-1e9, -float_max, -1e300, -std::numeric_limits<double>::max()})
    for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale})
      for (const bool all : {false, true})
        for (const std::int64_t dk : {1, 4}) {
          Case c = make(DType::f64, {.dk = dk});
          Tensor mask(DType::f64, {1, 1, 3, 6});
          for (std::int64_t e = 0; e < mask.elements(); ++e)
            if (all || random_() % 2) mask.set(e, low);
          c[Slot::mask] = mask;
          c.mask_convention = convention;
          check(c, counts_);
        }
  EXPECT_GT(counts_.levels[2], 40);
  EXPECT_GT(counts_.levels[3], 150);
}

TEST_F(OracleReference, NumbersUpToTheEndsOfTheRange) {
  struct Sizes {
    double q, k, v;
  };
  for (const Sizes& s : {Sizes{1e150, 1e150, 1},
                         {1e300, 1e-300, 1e300},
                         {1, 1, 1e300},
                         {1e-300, 1e300, 1e-300},
                         {1, 1, 5e-324},
                         {1e-160, 1e-160, 1e-310},
                         {1e7, 1e7, 1},
                         {1e-310, 1e2, 1e5}})
    for (int round = 0; round < 6; ++round) check(make(DType::f64, {}, s.q, s.k, s.v), counts_);
  EXPECT_LE(counts_.excused, counts_.rows / 4);
}

TEST_F(OracleReference, WeightsAtTheEdgeOfUnderflow) {
  for (const double depth : {-690.0, -707.5, -708.5, -725.0, -744.0, -745.5, -760.0})
    for (int round = 0; round < 4; ++round) {
      Case c = make(DType::f64, {.dk = 1}, 1, 0.2, 1e200);
      c.scale = 1;
      Tensor mask(DType::f64, {1, 1, 3, 6});
      for (std::int64_t e = 0; e < mask.elements(); ++e)
        if (e % 6 != 2) mask.set(e, depth);
      c[Slot::mask] = mask;
      // Nothing but the vanishing weights counts.
      for (std::int64_t k = 0; k < 3; ++k) c[Slot::v].set(2 * 3 + k, 0);
      check(c, counts_);
    }
  EXPECT_GT(counts_.levels[1], 80);
}

/// A number near 2^10 and a bias whose score, in double, errs by nearly the most it can: product, scale and sum each by
/// half an ulp of a number just above a power of two, all in the direction of `sign`.
struct Worst {
  double k = 0, b = 0, error = 0;
};
Worst worst_score(std::mt19937_64& random, double q, double scale, double sign) {
  Worst worst;
  for (int i = 0; i < 30000; ++i) {
    const double k = 1024 + std::ldexp(static_cast<double>(random() % (1 << 22)), -42);
    const double b = std::ldexp(static_cast<double>(random() % (1 << 30)), -42);
    const double x = q * k, t = scale * x, s = t + b, rest = b - (s - t);
    const double error = sign * -(std::fma(q, k, -x) * scale + std::fma(scale, x, -t) + rest);
    if (!(error <= worst.error)) worst = {k, b, error};
  }
  return worst;
}

// Sharp as well as sure: on this row the double level errs by more than half of what it certifies.
TEST_F(OracleReference, ACertificateThatIsNearlyUsedUp) {
  const double q = 1024.1, scale = 1.0001;
  const Worst up = worst_score(random_, q, scale, 1), down = worst_score(random_, q, scale, -1);
  Case c = test::one_query(DType::f64, {q}, {up.k, down.k}, {1, -1}, {up.b, down.b});
  c.scale = scale;
  check(c, counts_);
  EXPECT_EQ(counts_.levels[1], 1);
  Head head;
  head.load(c, sequence_of(c, 0), 0, false);
  const Profile profile = loose_profile(head, c);
  RowOracle oracle;
  ASSERT_EQ(oracle.start(head, 0, profile, true, true, 4096), Excuse::none);
  ASSERT_EQ(oracle.level(), 1);
  const RowRanges exact = test::by_arb(test::VisibleRow(c, 0, 0, 0), 500);
  const PrecisionScope<Mpfr> scope(150);
  const double error = distances(exact.out[0], oracle.value(0)).lower.convert_to<double>();
  EXPECT_GT(error, 0.5 * oracle.certificate(0));
  EXPECT_LE(error, oracle.certificate(0));
}

}  // namespace
}  // namespace attest::detail
