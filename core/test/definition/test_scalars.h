// What the typed tests of the core share: the list of scalars, their unit roundoffs, comparison of bits, random
// matrices and comparison with plain_attention.h.
#pragma once

#include <gtest/gtest.h>

#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/set.hpp>
#include <random>
#include <type_traits>

#include "core/definition/attention.h"
#include "core/definition/matrix.h"
#include "core/problem/case.h"
#include "core/scalars/every_scalar.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/plain_attention.h"
#include "core/test/refusal.h"
#include "core/test/sanitizers.h"

namespace attest::test {

/// Every scalar; where memory is watched, without those whose code is another's with another number of bits (double's,
/// half's, BinFloat50's, DecFloat<100>'s): a third of what these tests take, and a fifth of what their compilation
/// does.
using AllScalars = boost::mp11::mp_set_difference<
    EveryScalar::in<::testing::Types>,
    std::conditional_t<under_address_sanitizer, ::testing::Types<float, Eigen::bfloat16, BinFloat100, DecFloat<300>>,
                       ::testing::Types<>>>;

struct ScalarNames {
  template <class T>
  static std::string GetName(int) {
    return std::string(ScalarTraits<T>::name);
  }
};

/// A fixture that gives MPFR, MPFI and Arb their precision, 50 decimal digits.
template <class T>
class OnEveryScalar : public ::testing::Test {
 protected:
  std::mt19937_64 random{20240607};

 private:
  PrecisionScope<Mpfr> numbers_{50};
  PrecisionScope<Interval> intervals_{50};
  PrecisionScope<Arb> balls_{50};
};

/// log2 of the unit roundoff: of 50 decimal digits, unless it says otherwise.
template <class T>
constexpr int unit_exponent = -166;
template <>
inline constexpr int unit_exponent<float> = -24;
template <>
inline constexpr int unit_exponent<double> = -53;
template <>
inline constexpr int unit_exponent<Eigen::half> = -11;
template <>
inline constexpr int unit_exponent<Eigen::bfloat16> = -8;
template <>
inline constexpr int unit_exponent<BinFloat50> = -168;
// One bit less than it has: the plain formula rounds in the same format.
template <>
inline constexpr int unit_exponent<BinFloat100> = -333;
template <class T>
Precise unit_of() {
  return ldexp(Precise(1), unit_exponent<T>);
}

/// Exact, an interval's midpoint.
template <class T>
Precise wide(const T& x) {
  if constexpr (std::is_same_v<T, Interval> || std::is_same_v<T, Arb>) {
    return Precise(ScalarTraits<T>::middle(x));
  } else if constexpr (std::is_same_v<T, Eigen::half> || std::is_same_v<T, Eigen::bfloat16>) {
    return Precise(static_cast<float>(x));
  } else {
    return Precise(x);
  }
}

/// The same value and sign, or NaN both.
template <class T>
bool same_bits(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Interval>) {
    const auto& x = *a.backend().data();
    const auto& y = *b.backend().data();
    const auto same = [](mpfr_srcptr l, mpfr_srcptr r) {
      if (mpfr_nan_p(l) != 0 || mpfr_nan_p(r) != 0) return mpfr_nan_p(l) != 0 && mpfr_nan_p(r) != 0;
      return mpfr_equal_p(l, r) != 0 && mpfr_signbit(l) == mpfr_signbit(r);
    };
    return same(&x.left, &y.left) && same(&x.right, &y.right);
  } else if constexpr (std::is_same_v<T, Arb>) {
    return a.is_undefined() || b.is_undefined() ? a.is_undefined() && b.is_undefined()
                                                : arb_equal(a.ball(), b.ball()) != 0;
  } else {
    const bool a_nan = !(a == a), b_nan = !(b == b);  // NOLINT(misc-redundant-expression): unequal to itself is NaN
    if (a_nan || b_nan) return a_nan && b_nan;
    using std::signbit;
    if constexpr (std::is_same_v<T, Eigen::half> || std::is_same_v<T, Eigen::bfloat16>) {
      return a == b && signbit(static_cast<float>(a)) == signbit(static_cast<float>(b));
    } else {
      return a == b && signbit(a) == signbit(b);
    }
  }
}
template <class T>
bool is_nan(const T& x) {
  return same_bits(x, ScalarTraits<T>::undefined());
}

template <class T>
void expect_same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      EXPECT_TRUE(same_bits(a(i, j), b(i, j)))
          << "at (" << i << ", " << j << "): " << wide(a(i, j)) << " and " << wide(b(i, j));
    }
  }
}

/// |a - exact| <= factor * u for each entry, u the scalar's unit roundoff: for entries of magnitude at most 1 or so.
template <class T>
void expect_close(const Matrix<T>& a, const Grid& exact, double factor) {
  ASSERT_EQ(a.rows(), static_cast<Index>(exact.size()));
  const Precise allowed = factor * unit_of<T>();
  for (Index i = 0; i < a.rows(); ++i) {
    const WideRow& row = exact[static_cast<std::size_t>(i)];
    ASSERT_EQ(a.cols(), static_cast<Index>(row.size()));
    for (Index j = 0; j < a.cols(); ++j) {
      const Precise& value = row[static_cast<std::size_t>(j)];
      EXPECT_TRUE(abs(wide(a(i, j)) - value) <= allowed)
          << "at (" << i << ", " << j << "): " << wide(a(i, j)) << ", accepted " << Precise(value - allowed) << " .. "
          << Precise(value + allowed);
    }
  }
}
template <class T>
void expect_close(const Vector<T>& a, const WideRow& exact, double factor) {
  expect_close(Matrix<T>(a.transpose()), Grid{exact}, factor);
}

/// Entries are `largest` times multiples of 2^-6 in [-1, 1], `largest` a power of two: exact in every scalar, bfloat16
/// included.
template <class T>
Matrix<T> random_matrix(std::mt19937_64& random, Index rows, Index cols, double largest = 1.0) {
  Matrix<T> a(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j)
      a(i, j) =
          ScalarTraits<T>::from_double(largest * static_cast<double>(static_cast<int>(random() % 129) - 64) / 64.0);
  return a;
}
template <class T>
Vector<T> random_vector(std::mt19937_64& random, Index size, double largest = 1.0) {
  return random_matrix<T>(random, 1, size, largest).row(0).transpose();
}
template <class T>
Grid grid_of(const Matrix<T>& a) {
  return grid_from(to_doubles(a));
}
template <class T>
WideRow row_from(const Vector<T>& a) {
  return grid_of(Matrix<T>(a.transpose()))[0];
}
template <class T>
T scalar(double x) {
  return ScalarTraits<T>::from_double(x);
}

/// Five queries of four numbers and seven keys with values of three, at scale 1/2.
template <class T>
class SmallAttention : public OnEveryScalar<T> {
 protected:
  static constexpr double scale = 0.5;
  /// Roundings of a score, an exponential and two sums over at most 7 terms, for entries up to 1 and scores up to 2.
  static constexpr double factor = 32;

  Matrix<T> q = random_matrix<T>(this->random, 5, 4), k = random_matrix<T>(this->random, 7, 4),
            v = random_matrix<T>(this->random, 7, 3);
  const T tau = scalar<T>(scale);

  PlainResult plain(const Score& score, const Sees& sees = all_keys) {
    return plain_attention(grid_of(q), grid_of(k), grid_of(v), score, sees);
  }
  AttentionResult<T> masked(const Mask<T>& mask) { return mattn_lse(q, k, v, tau, mask); }
  Matrix<T> masked_out(const Mask<T>& mask) { return mattn(q, k, v, tau, mask); }
};

}  // namespace attest::test
