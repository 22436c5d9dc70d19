// ScalarTraits of a number class with std::numeric_limits and functions exp, log and tanh, such as those of
// Boost.Multiprecision: all but its name.
#pragma once

#include <algorithm>
#include <cmath>
#include <ios>
#include <limits>

#include "core/definition/scalar.h"
#include "core/scalars/wide.h"

namespace attest {

/// A number of the class as one of Wide: a binary number exactly, a decimal one (with Boost's `str`) between its two
/// neighbours of AskedPrecision.
template <class T>
[[nodiscard]] WideInterval number_as_wide(const T& x) {
  using std::frexp, std::isfinite, std::isnan;
  using Limits = std::numeric_limits<T>;
  if (!isfinite(x)) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    const Wide special = isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x < T(0) ? -infinite : infinite;
    return {special, special};
  }
  if constexpr (Limits::radix == 2) {
    // The significand in pieces that a double holds: x itself may lie below every double.
    int exponent = 0;
    T rest = frexp(x, &exponent);
    Wide value(0.0, Limits::digits);
    while (rest != T(0)) {
      const auto piece = static_cast<double>(rest);
      mpfr_add_d(value.data(), value.data(), piece, MPFR_RNDN);
      rest -= T(piece);
    }
    mpfr_mul_2si(value.data(), value.data(), exponent, MPFR_RNDN);
    return {value, value};
  } else {
    const std::string digits = x.str(0, std::ios_base::scientific);
    WideInterval ends{Wide(0.0, Wide::bits()), Wide(0.0, Wide::bits())};
    mpfr_set_str(ends.lower.data(), digits.c_str(), 10, MPFR_RNDD);
    mpfr_set_str(ends.upper.data(), digits.c_str(), 10, MPFR_RNDU);
    return ends;
  }
}

template <class T>
struct NumberTraits {
  static constexpr std::string_view summary = "the definition on a number class, rounded once";
  /// What the factors' order leaves in a product's last digits may be anything where it is not rounded (cpp_dec_float).
  static constexpr bool commutes = std::numeric_limits<T>::round_style == std::round_to_nearest;
  [[nodiscard]] static T from_double(double value) { return T(value); }
  // Boost's decimal numbers become 0 below the smallest normal number.
  [[nodiscard]] static double to_double(const T& x) {
    if constexpr (std::numeric_limits<T>::radix == 2) return static_cast<double>(x);
    return mpfr_get_d(number_as_wide(x).lower.data(), MPFR_RNDN);
  }
  [[nodiscard]] static float to_float(const T& x) {
    if constexpr (std::numeric_limits<T>::radix == 2) return static_cast<float>(x);
    return mpfr_get_flt(number_as_wide(x).lower.data(), MPFR_RNDN);
  }
  [[nodiscard]] static T minus_infinity() { return -std::numeric_limits<T>::infinity(); }
  [[nodiscard]] static bool is_minus_infinity(const T& x) {
    using std::isinf;
    return isinf(x) && x < T(0);
  }
  [[nodiscard]] static T undefined() { return std::numeric_limits<T>::quiet_NaN(); }
  [[nodiscard]] static T exp(const T& x) {
    using std::exp;
    return T(exp(x));
  }
  [[nodiscard]] static T log(const T& x) {
    using std::log;
    return T(log(x));
  }
  /// Below 1/2 the class's own, which overflows where exp does; above it by exp. Of w = e^(-2x) and 2x, which err by
  /// `rounding` and by a unit, the quotient takes 2w/(1 + w)^2: half of exp's units, and of what grows with x at most
  /// x/cosh(x)^2, 0.45. Its own three operations err by a unit each: 4 + 5*0.45 + 3, below 10 units of 1, and below 24
  /// of itself.
  [[nodiscard]] static T tanh(const T& x) {
    if (x < T(0)) return -tanh(-x);
    if (x < T(0.5)) {
      using std::tanh;
      return T(tanh(x));
    }
    const T w = exp(T(-2) * x);
    return (T(1) - w) / (T(1) + w);
  }
  [[nodiscard]] static T reference_point(std::span<const T> row) { return largest_of(row); }
  [[nodiscard]] static WideInterval enclosure(const T& x) { return number_as_wide(x); }
  /// As numeric_limits has it; where that does not say that it rounds to nearest, twice as much. An exp that errs by up
  /// to 8 units, and an argument that is reduced with the class's own ln 2. Exponents end where those of Wide do, at
  /// the latest: what lies beyond is lost on the way into it.
  [[nodiscard]] static WideRounding rounding() {
    using Limits = std::numeric_limits<T>;
    const bool nearest = Limits::round_style == std::round_to_nearest;
    const double bits_of_exponent = Limits::radix == 2 ? 1.0 : std::log2(static_cast<double>(Limits::radix));
    return {.unit = static_cast<long double>(Limits::epsilon()) / (nearest ? 2 : 1),
            .exp_units = 8,
            .exp_growth = 4,
            .tanh_units = 10,
            .exact_inputs = Limits::radix == 2 && Limits::digits >= std::numeric_limits<double>::digits,
            .least = std::max(bits_of_exponent * (static_cast<double>(Limits::min_exponent) - 1),
                              static_cast<double>(mpfr_get_emin())),
            .largest = std::min(bits_of_exponent * static_cast<double>(Limits::max_exponent),
                                static_cast<double>(mpfr_get_emax()))};
  }
};

}  // namespace attest
