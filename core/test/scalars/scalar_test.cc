#include "core/definition/scalar.h"

#include <cmath>

#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
using EveryScalar = OnEveryScalar<T>;
TYPED_TEST_SUITE(EveryScalar, AllScalars, ScalarNames);

TYPED_TEST(EveryScalar, KeepsInfinitiesAndTellsMinusInfinityFromTheRest) {
  using Traits = ScalarTraits<TypeParam>;
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Traits::is_minus_infinity(Traits::minus_infinity()));
  EXPECT_TRUE(Traits::is_minus_infinity(Traits::from_double(-inf)));
  for (const double x : {inf, -1.0, 0.0, -3e4}) EXPECT_FALSE(Traits::is_minus_infinity(Traits::from_double(x))) << x;
  EXPECT_FALSE(Traits::is_minus_infinity(Traits::undefined()));
  EXPECT_TRUE(std::isnan(Traits::to_double(Traits::undefined())));
}

/// Accepted errors of exp and log in unit roundoffs. Boost's cpp_bin_float reduces the argument of exp in its working
/// precision, so that the relative error grows with |x| (measured: 10 u for |x| <= 8, 61000 u at 50000), and its log is
/// a series of 16 u (measured); all others are within an ulp, which is two units.
template <class T>
double accepted_units(double exp_argument) {
  const bool bin_float = std::is_same_v<T, BinFloat50> || std::is_same_v<T, BinFloat100>;
  return bin_float ? 32 + 2 * std::abs(exp_argument) : 2;
}

TYPED_TEST(EveryScalar, HasExpAndLogAccurateToItsFormat) {
  using Traits = ScalarTraits<TypeParam>;
  // MPFR is the reference here and not the plain formula's scalar, whose own exp is under test.
  const auto error = [](const TypeParam& found, double x, int (*function)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) {
    const PrecisionScope<Mpfr> precision(150);
    Mpfr exact(x), value(wide(found).str(/*digits=*/120, std::ios_base::scientific));
    function(exact.backend().data(), exact.backend().data(), MPFR_RNDN);
    return static_cast<double>(abs(value - exact) / abs(exact) * ldexp(Mpfr(1), -unit_exponent<TypeParam>));
  };
  for (const double x : {-0.5, 1.0, -2.75, 0.015625, -7.5})
    EXPECT_LE(error(Traits::exp(scalar<TypeParam>(x)), x, mpfr_exp), accepted_units<TypeParam>(x)) << x;
  for (const double x : {1.5, 2.0, 7.0, 100.0})
    EXPECT_LE(error(Traits::log(scalar<TypeParam>(x)), x, mpfr_log), accepted_units<TypeParam>(0)) << x;
  EXPECT_TRUE(wide(Traits::exp(scalar<TypeParam>(0))) == 1);
  EXPECT_TRUE(wide(Traits::log(scalar<TypeParam>(1))) == 0);
  // What max-subtraction meets: far below any format's range the answer is 0, not a NaN and not an endless series.
  for (const double x : {-1e5, -1e9, -1.6e9, -1e10, -3e38})
    EXPECT_TRUE(std::abs(Traits::to_double(Traits::exp(scalar<TypeParam>(x)))) <= 1e-300) << x;
}

TYPED_TEST(EveryScalar, TakesTheLargestScoreAsReferencePoint) {
  const std::vector<TypeParam> row{scalar<TypeParam>(-1), scalar<TypeParam>(3), scalar<TypeParam>(2.5)};
  EXPECT_TRUE(same_bits(ScalarTraits<TypeParam>::reference_point(std::span<const TypeParam>(row)), row[1]));
}

// 1 + 2^-11 + 2^-30 rounds up in binary16; through float it becomes the tie 1 + 2^-11 and goes down to 1.
TEST(HalfScalars, AreRoundedOnceFromDouble) {
  EXPECT_EQ(static_cast<float>(ScalarTraits<Eigen::half>::from_double(1.0 + 0x1p-11 + 0x1p-40)), 1.0F + 0x1p-10F);
  EXPECT_EQ(static_cast<float>(Eigen::half(1.0 + 0x1p-11 + 0x1p-40)), 1.0F);
  EXPECT_EQ(static_cast<float>(ScalarTraits<Eigen::bfloat16>::from_double(1.0 + 0x1p-8 + 0x1p-40)), 1.0F + 0x1p-7F);
}

/// 16-bit operations are correctly rounded: against the exact result in double, rounded once.
template <class T, class Bits, class Round>
void expect_correct_rounding(Bits from_bits, Round round) {
  std::mt19937_64 random(5);
  const auto same = [](T found, double wanted) {
    return std::isnan(wanted) ? std::isnan(static_cast<float>(found)) : static_cast<float>(found) == wanted;
  };
  for (int repeat = 0; repeat < 200000; ++repeat) {
    const T a = from_bits(static_cast<std::uint16_t>(random())), b = from_bits(static_cast<std::uint16_t>(random()));
    const double x = static_cast<float>(a), y = static_cast<float>(b);
    // x*y of 11-bit numbers is exact in double; x+y and x/y are not always, but 53 >= 2*11 + 2 makes double rounding
    // harmless there.
    ASSERT_TRUE(same(a * b, round(x * y))) << x << " * " << y;
    ASSERT_TRUE(same(a + b, round(x + y))) << x << " + " << y;
    ASSERT_TRUE(same(a - b, round(x - y))) << x << " - " << y;
    ASSERT_TRUE(same(a / b, round(x / y))) << x << " / " << y;
  }
}
TEST(HalfScalars, RoundEveryOperationOnce) {
  expect_correct_rounding<Eigen::half>([](std::uint16_t bits) { return Eigen::half_impl::raw_uint16_to_half(bits); },
                                       [](double x) { return round_to(DType::f16, x); });
  expect_correct_rounding<Eigen::bfloat16>(
      [](std::uint16_t bits) { return Eigen::bfloat16_impl::raw_uint16_to_bfloat16(bits); },
      [](double x) { return round_to(DType::bf16, x); });
}

// Wider scalars reach float and double in one rounding each: MPFR's own conversions are the reference. The values lie
// close to ties, and in and below the subnormal ranges.
TEST(WideScalars, AreRoundedOnceToFloatAndDouble) {
  const PrecisionScope<Mpfr> precision(60);
  std::mt19937_64 random(7);
  EXPECT_EQ(ScalarTraits<BinFloat50>::to_float(BinFloat50(1.0) + ldexp(BinFloat50(1), -24) + ldexp(BinFloat50(1), -60)),
            1.0F + 0x1p-23F);
  for (int repeat = 0; repeat < 40000; ++repeat) {
    const double high =
        std::ldexp(1.0 + static_cast<double>(random() % 4096) / 4096.0, static_cast<int>(random() % 40));
    const double low = std::ldexp(random() % 2 == 0 ? 1.0 : -1.0, -static_cast<int>(random() % 100));
    const int exponent = -static_cast<int>(random() % 1120);
    const BinFloat50 x = ldexp(BinFloat50(high) + BinFloat50(low), exponent);
    const Mpfr y = ldexp(Mpfr(high) + Mpfr(low), exponent);
    ASSERT_EQ(ScalarTraits<BinFloat50>::to_double(x), ScalarTraits<Mpfr>::to_double(y)) << x;
    ASSERT_EQ(ScalarTraits<BinFloat50>::to_float(x), ScalarTraits<Mpfr>::to_float(y)) << x;
  }
}

TEST(Mpfr, HasThePrecisionOfItsScope) {
  const PrecisionScope<Mpfr> outer(30);
  const Mpfr third = Mpfr(1) / Mpfr(3);
  {
    const PrecisionScope<Mpfr> inner(80);
    EXPECT_GE((Mpfr(1) / Mpfr(3)).precision(), 80U);
    EXPECT_TRUE(Mpfr(Mpfr(1) / Mpfr(3)) != third);
  }
  EXPECT_TRUE(Mpfr(1) / Mpfr(3) == third);
}

TEST(Interval, ReferencePointIsOnePointEvenWhereScoresOverlap) {
  const PrecisionScope<Mpfr> numbers(50);
  const PrecisionScope<Interval> intervals(50);
  using Traits = ScalarTraits<Interval>;
  Interval wide_one, low, high;
  mpfi_interv_d(wide_one.backend().data(), -10.0, 12.0);
  mpfi_interv_d(low.backend().data(), 0.0, 1.0);
  mpfi_interv_d(high.backend().data(), 0.5, 2.0);
  const Interval row[] = {wide_one, low, high};
  const Interval reference = Traits::reference_point(row);
  EXPECT_TRUE(same_bits(reference, Interval(1.25)));
}

}  // namespace
}  // namespace attest
