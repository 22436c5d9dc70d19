// tanh of the wide number classes, near 0 and where exp overflows too: number.h says by how much it may err.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "core/scalars/every_scalar.h"
#include "core/scalars/mpfr.h"

namespace attest {
namespace {

/// The largest error of tanh, in units of the class and of the result.
template <class T>
double worst_error() {
  const PrecisionScope<Mpfr> digits(700);
  std::mt19937_64 random(1);
  const auto unit = static_cast<double>(ScalarTraits<T>::rounding().unit);
  double worst = 0;
  for (int n = 0; n < 400; ++n) {
    // Few bits, so that it is the same number in every class.
    const double x = std::ldexp(static_cast<double>(random() % 1021) - 510, static_cast<int>(random() % 56) - 50);
    if (x == 0) continue;
    const Mpfr exact = ScalarTraits<Mpfr>::tanh(Mpfr(x));
    const Mpfr found(ScalarTraits<T>::tanh(T(x)).str(0, std::ios_base::scientific));
    worst = std::max(worst, ScalarTraits<Mpfr>::to_double(abs(Mpfr(found / exact) - Mpfr(1))) / unit);
  }
  for (const double far : {1e3, 1e6, 1e300}) {
    EXPECT_EQ(ScalarTraits<T>::tanh(T(far)), T(1));
    EXPECT_EQ(ScalarTraits<T>::tanh(T(-far)), T(-1));
  }
  EXPECT_EQ(ScalarTraits<T>::tanh(T(0)), T(0));
  return worst;
}

TEST(Tanh, OfNumberClassesErrsByAFewUnitsOfItself) {
  EXPECT_LE(worst_error<BinFloat50>(), 24);
  EXPECT_LE(worst_error<BinFloat100>(), 24);
  EXPECT_LE(worst_error<DecFloat<100>>(), 24);
  EXPECT_LE(worst_error<DecFloat<300>>(), 24);
}

}  // namespace
}  // namespace attest
