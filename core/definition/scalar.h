// Scalar: what the core asks of a number. Everything in the core is a template over a scalar and uses +, -, *, / and
// the functions of ScalarTraits, nothing else; in particular it never compares two scalars.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <string_view>

#include "core/value/dtype.h"

namespace attest {

/// What a scalar T must say about itself, as static members:
/// - `name`: the word after "core:" on the command line.
/// - `from_double(d)`: d rounded once to T; exact wherever T is at least as wide as double; infinities are kept.
/// - `to_double(x)`: x rounded once to double (an interval: its midpoint). `to_float(x)` likewise, not through double.
/// - `minus_infinity()`: the score of a key that a mask hides.
/// - `is_minus_infinity(x)`: whether x is exactly that; a NaN or an interval that merely reaches it is not.
/// - `undefined()`: the answer where the documents define none (NaN; an interval without endpoints).
/// - `exp(x)`, `log(x)`: log is asked for the log-sum-exp only, of sums that are at least the exponential of 0.
/// - `reference_point(x)`: the value subtracted from a row of scores before exp; x is not empty and holds no hidden
///   score. Mathematically any value will do (softmax.shift-invariance); floating formats give the largest score. It is
///   asked of the scalar because not every scalar is ordered: overlapping intervals cannot be compared, and in a proof
///   it is an indeterminate.
///
/// It may say more:
/// - `tanh(x)`: where 1 - 2/(e^(2x) + 1) will not do, which overflows before it is 1 and cancels near 0.
///
/// One with a row in core/scalars/every_scalar.h, which makes it a kernel, says more:
/// - `summary`: what `attest list` says of the kernel.
/// - `dtype`: the number format that T is. Without it T is wider than double, in inputs and outputs of f64 and f32, and
///   says more again:
/// - `enclosure(x)`: the number as a WideInterval (core/scalars/wide.h), exactly or between two close numbers; of an
///   interval the interval.
/// - `rounding()`: how its operations round, a WideRounding (core/scalars/precision.h), at this thread's precision.
/// - `Call`, if its precision is chosen as it runs: sets AskedPrecision's. `commutes`: false if a b may not be b a, or
/// a. NumberTraits (core/scalars/number.h) says all but the name for a class that has std::numeric_limits.
///
/// A row's reference point and the scale reach the core as values of T, so that a symbolic scalar can name them.
template <class T>
struct ScalarTraits;

template <class T>
concept Scalar = requires(const T& a, const T& b, std::span<const T> row) {
  { a + b } -> std::convertible_to<T>;
  { a - b } -> std::convertible_to<T>;
  { a* b } -> std::convertible_to<T>;
  { a / b } -> std::convertible_to<T>;
  { ScalarTraits<T>::name } -> std::convertible_to<std::string_view>;
  { ScalarTraits<T>::from_double(0.0) } -> std::same_as<T>;
  { ScalarTraits<T>::minus_infinity() } -> std::same_as<T>;
  { ScalarTraits<T>::is_minus_infinity(a) } -> std::same_as<bool>;
  { ScalarTraits<T>::undefined() } -> std::same_as<T>;
  { ScalarTraits<T>::exp(a) } -> std::same_as<T>;
  { ScalarTraits<T>::log(a) } -> std::same_as<T>;
  { ScalarTraits<T>::reference_point(row) } -> std::same_as<T>;
};

/// tanh of a scalar.
template <Scalar T>
[[nodiscard]] T tanh_of(const T& x) {
  using Traits = ScalarTraits<T>;
  if constexpr (requires { Traits::tanh(x); }) {
    return Traits::tanh(x);
  } else {
    const T one = Traits::from_double(1.0), two = Traits::from_double(2.0);
    return one - two / (Traits::exp(two * x) + one);
  }
}

/// The largest of a non-empty row of an ordered scalar. A NaN anywhere gives NaN outputs whatever is returned here.
template <class T>
[[nodiscard]] T largest_of(std::span<const T> row) {
  T largest = row[0];
  for (const T& x : row.subspan(1))
    if (largest < x) largest = x;
  return largest;
}

/// float and double: the C library's exp and log (glibc: below 1 ulp), and tanh (glibc: below 2.5 ulp, Zimmermann and
/// others 2024, "Accuracy of Mathematical Functions").
template <class T>
struct HardwareTraits {
  [[nodiscard]] static T from_double(double value) { return static_cast<T>(value); }
  [[nodiscard]] static double to_double(T x) { return static_cast<double>(x); }
  [[nodiscard]] static float to_float(T x) { return static_cast<float>(x); }
  [[nodiscard]] static T minus_infinity() { return -std::numeric_limits<T>::infinity(); }
  [[nodiscard]] static bool is_minus_infinity(T x) { return x == minus_infinity(); }
  [[nodiscard]] static T undefined() { return std::numeric_limits<T>::quiet_NaN(); }
  [[nodiscard]] static T exp(T x) { return std::exp(x); }
  [[nodiscard]] static T log(T x) { return std::log(x); }
  [[nodiscard]] static T tanh(T x) { return std::tanh(x); }
  [[nodiscard]] static T reference_point(std::span<const T> row) { return largest_of(row); }
};

template <>
struct ScalarTraits<float> : HardwareTraits<float> {
  static constexpr std::string_view name = "float";
  static constexpr std::string_view summary = "the definition in float";
  static constexpr DType dtype = DType::f32;
};
template <>
struct ScalarTraits<double> : HardwareTraits<double> {
  static constexpr std::string_view name = "double";
  static constexpr std::string_view summary = "the definition in double, f32 output rounded once";
  static constexpr DType dtype = DType::f64;
};

}  // namespace attest
