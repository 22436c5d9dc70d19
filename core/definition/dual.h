// Dual numbers: a number of any scalar with its derivative along one direction, so that the core's forward pass
// computes gradients without a formula for them (Wengert 1964).
#pragma once

#include <algorithm>
#include <vector>

#include "core/definition/scalar.h"

namespace attest {

/// value + slope e with e^2 = 0.
template <Scalar T>
struct Dual {
  T value{}, slope{};

  friend Dual operator+(const Dual& a, const Dual& b) { return {T(a.value + b.value), T(a.slope + b.slope)}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {T(a.value - b.value), T(a.slope - b.slope)}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {T(a.value * b.value), T(a.slope * b.value + a.value * b.slope)};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const T quotient = a.value / b.value;
    return {quotient, T((a.slope - quotient * b.slope) / b.value)};
  }
};

/// A constant has slope 0, and so has the reference point that a row's scores are taken from: whichever it is, nothing
/// changes with it.
template <Scalar T>
struct ScalarTraits<Dual<T>> {
  using Traits = ScalarTraits<T>;
  static constexpr std::string_view name = "dual";
  [[nodiscard]] static Dual<T> constant(const T& value) { return {value, Traits::from_double(0.0)}; }
  [[nodiscard]] static Dual<T> from_double(double value) { return constant(Traits::from_double(value)); }
  [[nodiscard]] static Dual<T> minus_infinity() { return constant(Traits::minus_infinity()); }
  [[nodiscard]] static bool is_minus_infinity(const Dual<T>& x) { return Traits::is_minus_infinity(x.value); }
  [[nodiscard]] static Dual<T> undefined() { return {Traits::undefined(), Traits::undefined()}; }
  [[nodiscard]] static Dual<T> exp(const Dual<T>& x) {
    const T e = Traits::exp(x.value);
    return {e, T(e * x.slope)};
  }
  [[nodiscard]] static Dual<T> log(const Dual<T>& x) { return {Traits::log(x.value), T(x.slope / x.value)}; }
  [[nodiscard]] static Dual<T> tanh(const Dual<T>& x) {
    const T y = tanh_of(x.value);
    return {y, T((Traits::from_double(1.0) - y * y) * x.slope)};
  }
  [[nodiscard]] static Dual<T> reference_point(std::span<const Dual<T>> row) {
    std::vector<T> values;
    values.reserve(row.size());
    for (const Dual<T>& x : row) values.push_back(x.value);
    return constant(Traits::reference_point(std::span<const T>(values)));
  }
};

}  // namespace attest
