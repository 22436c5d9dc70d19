// Boost's cpp_bin_float with 50 and 100 decimal digits (168 and 334 bits) as scalars of the core; no expression
// templates, so that one operation is one rounding in a stated order.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/eigen.hpp>

#include "core/scalars/number.h"

namespace attest {

using BinFloat50 =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float_50::backend_type, boost::multiprecision::et_off>;
using BinFloat100 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_100::backend_type,
                                                  boost::multiprecision::et_off>;

/// Boost's exp reduces x with its own ln 2 (2|x| + 1 units), sums at most bits/4 terms of e^r - 1 and squares at most
/// bits/4 times, each with an addition and a product whose errors reach the result once or a little more; e^r - 1 is at
/// most half of the result (cpp_bin_float/transcendental.hpp of Boost 1.74 to 1.81). So bits/2 + 6 units.
template <class T>
struct BinFloatTraits : NumberTraits<T> {
  [[nodiscard]] static bool is_minus_infinity(const T& x) {
    return x.backend().exponent() == T::backend_type::exponent_infinity && x.backend().sign();
  }
  [[nodiscard]] static WideRounding rounding() {
    WideRounding rounding = NumberTraits<T>::rounding();
    rounding.exp_units = std::numeric_limits<T>::digits / 2.0 + 6;
    rounding.tanh_units = rounding.exp_units / 2 + 6;  // as NumberTraits::tanh has it
    return rounding;
  }
};

template <>
struct ScalarTraits<BinFloat50> : BinFloatTraits<BinFloat50> {
  static constexpr std::string_view name = "cpp_bin_float_50";
  static constexpr std::string_view summary = "the definition in 50 decimal digits, rounded once";
};
template <>
struct ScalarTraits<BinFloat100> : BinFloatTraits<BinFloat100> {
  static constexpr std::string_view name = "cpp_bin_float_100";
  static constexpr std::string_view summary = "the definition in 100 decimal digits, rounded once";
};

}  // namespace attest
