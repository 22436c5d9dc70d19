// The balls' own rules: what they enclose, what is undefined, what says nothing.
#include "core/scalars/arb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/scalars/mpfi.h"
#include "core/test/scalars/contains.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Arb>;
constexpr double infinity = std::numeric_limits<double>::infinity();

Arb ball(double middle, double radius) {
  Arb x(middle);
  mag_set_d(arb_radref(x.ball()), radius);
  return x;
}

bool is_whole_line(const Arb& x) {
  return !x.is_undefined() && mag_is_inf(arb_radref(x.ball())) != 0;
}

TEST(Arb, TellsWhatIsUndefinedFromWhatIsLoose) {
  const Arb zero(0), one(1), plus(infinity), minus(-infinity), around = ball(0.5, 1);
  // NOLINTNEXTLINE(misc-redundant-expression): inf - inf is what is asked
  for (const Arb& x : {plus - plus, minus + plus, zero * plus, minus * zero, plus / plus, Arb(), Arb(std::nan("")),
                       Arb() + one, Arb() * zero, Arb() / around, one / Arb(), exp(Arb()), log(Arb())}) {
    EXPECT_TRUE(x.is_undefined());
    EXPECT_TRUE(std::isnan(Traits::to_double(x)));
    EXPECT_TRUE(std::isnan(Traits::to_float(x)));
  }
  for (const Arb& x : {one / around, one / zero, log(around), log(ball(-3, 1)), around * plus, one / (one / around)})
    EXPECT_TRUE(is_whole_line(x));
  EXPECT_TRUE(is_whole_line(exp(one / around)));
  EXPECT_TRUE(is_whole_line(one / around - one));
}

TEST(Arb, AddsMinusInfinityExactly) {
  EXPECT_TRUE(Traits::is_minus_infinity(ball(3, 1) + Traits::minus_infinity()));
  EXPECT_TRUE(Traits::is_minus_infinity(Traits::minus_infinity() * Arb(0.3)));
  EXPECT_TRUE(Traits::is_minus_infinity(ball(3, 1) + Traits::minus_infinity() - Arb(7)));
  EXPECT_FALSE(Traits::is_minus_infinity(ball(-1e300, 1e300)));
  EXPECT_FALSE(Traits::is_minus_infinity(Arb(1) / Arb(0)));
  EXPECT_EQ(Traits::to_double(exp(Traits::minus_infinity())), 0);
}

// Operands with widths: every point of the operands has its result inside; and MPFI's interval of the same overlaps.
TEST(Arb, HoldsTheResultOfEveryPoint) {
  const PrecisionScope<Mpfr> numbers(80);
  const PrecisionScope<Arb> balls(20);
  std::mt19937_64 random(3);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11U) * 0x1p-53;
  };
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const double x = between(-30, 30), y = between(0.5, 30), r = std::ldexp(1.0, -static_cast<int>(random() % 60)) / 4;
    const Arb a = ball(x, r), b = ball(y, r);
    for (const double s : {-1.0, 0.0, 0.7, 1.0}) {
      for (const double t : {-1.0, 0.3, 1.0}) {
        const Mpfr p = Mpfr(x) + Mpfr(s) * Mpfr(r), q = Mpfr(y) + Mpfr(t) * Mpfr(r);
        EXPECT_TRUE(test::contains(a + b, Mpfr(p + q)));
        EXPECT_TRUE(test::contains(a - b, Mpfr(p - q)));
        EXPECT_TRUE(test::contains(a * b, Mpfr(p * q)));
        EXPECT_TRUE(test::contains(a / b, Mpfr(p / q)));
        EXPECT_TRUE(test::contains(exp(a), Mpfr(exp(p))));
        EXPECT_TRUE(test::contains(log(b), Mpfr(log(q))));
      }
    }
    // Not everything is inside.
    EXPECT_FALSE(test::contains(a + b, Mpfr(Mpfr(x) + Mpfr(y) + Mpfr(3 * r))));
    EXPECT_FALSE(test::contains(exp(Arb(x)), Mpfr(exp(Mpfr(x)) * (1 + ldexp(Mpfr(1), -40)))));
  }
}

TEST(Arb, IsLeftAloneByZeroAndScaledExactlyByPowersOfTwo) {
  const PrecisionScope<Arb> balls(20);
  const Arb x = exp(ball(1, 0.1)) / Arb(3), zero(0), one(1);
  for (const Arb& same : {x + zero, zero + x, x - zero, x * one, one * x, x * one + Arb(7) * zero})
    EXPECT_TRUE(arb_equal(same.ball(), x.ball()));
  for (const double power : {-1.0, 0x1p-1074, -0x1p1000, 4.0}) {
    for (const Arb& y : {Arb(power) * x, x * Arb(power)}) {
      EXPECT_TRUE(mag_equal(arb_radref((y / Arb(power)).ball()), arb_radref((x / one).ball()))) << power;
      EXPECT_TRUE(arf_equal(arb_midref((y * Arb(1 / power)).ball()), arb_midref(x.ball())) || power == 0x1p-1074);
      EXPECT_EQ(arf_sgn(arb_midref(y.ball())), power < 0 ? -1 : 1);
    }
  }
  EXPECT_FALSE(arb_equal((x * Arb(3)).ball(), x.ball()));
  EXPECT_TRUE((Arb() * Arb(2)).is_undefined());
  EXPECT_TRUE(is_whole_line(one / ball(0, 1) * Arb(-2)));
  EXPECT_EQ(Traits::to_double(Arb(infinity) * Arb(-2)), -infinity);
  EXPECT_TRUE((Arb() + zero).is_undefined());
  EXPECT_TRUE((one * Arb()).is_undefined());
  EXPECT_TRUE((zero * Arb()).is_undefined());
}

TEST(Arb, HasThePrecisionOfItsScope) {
  const auto width = [](unsigned digits) {
    const PrecisionScope<Arb> scope(digits);
    const Arb third = Arb(1) / Arb(3);
    return mag_get_d_log2_approx(arb_radref(third.ball()));
  };
  EXPECT_LE(width(30), -30 / std::log10(2.0));
  EXPECT_GE(width(30), -40 / std::log10(2.0));
  EXPECT_LE(width(90), -90 / std::log10(2.0));
  EXPECT_EQ(Arb::thread_default_precision(), 50U);
}

TEST(Arb, TakesOnePointForReference) {
  const std::vector<Arb> row{ball(1, 11), ball(0.5, 0.5), ball(1.25, 0.75)};
  const Arb reference = Traits::reference_point(row);
  EXPECT_EQ(Traits::to_double(reference), 1.25);
  EXPECT_TRUE(mag_is_zero(arb_radref(reference.ball())));
}

TEST(Arb, CopiesAndMoves) {
  Arb a = ball(2, 0.5), b = a, c(std::move(b));
  EXPECT_TRUE(arb_equal(a.ball(), c.ball()));
  a = c;
  const Arb& itself = a;
  a = itself;
  EXPECT_TRUE(arb_equal(a.ball(), c.ball()));
  b = std::move(c);
  EXPECT_TRUE(arb_equal(a.ball(), b.ball()));
}

TEST(Arb, IsRoundedOnceToFloat) {
  // 1 + 2^-24 + 2^-60 lies above a tie of float that double rounds it to.
  const Arb x = Arb(1) + Arb(0x1p-24) + Arb(0x1p-60);
  EXPECT_EQ(Traits::to_float(x), 1.0F + 0x1p-23F);
  EXPECT_EQ(Traits::to_double(x), 1.0 + 0x1p-24);
}

}  // namespace
}  // namespace attest
