// Boost's cpp_bin_float with 50 and 100 decimal digits (168 and 334 bits) as scalars of the core; no expression
// templates, so that one operation is one rounding in a stated order.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/eigen.hpp>

#include "core/definition/scalar.h"

namespace attest {

using BinFloat50 =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float_50::backend_type, boost::multiprecision::et_off>;
using BinFloat100 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_100::backend_type,
                                                  boost::multiprecision::et_off>;

template <class T>
struct BinFloatTraits {
  [[nodiscard]] static T from_double(double value) { return T(value); }
  [[nodiscard]] static double to_double(const T& x) { return x.template convert_to<double>(); }
  [[nodiscard]] static float to_float(const T& x) { return x.template convert_to<float>(); }
  [[nodiscard]] static T minus_infinity() { return -std::numeric_limits<T>::infinity(); }
  [[nodiscard]] static bool is_minus_infinity(const T& x) {
    return x.backend().exponent() == T::backend_type::exponent_infinity && x.backend().sign();
  }
  [[nodiscard]] static T undefined() { return std::numeric_limits<T>::quiet_NaN(); }
  [[nodiscard]] static T exp(const T& x) { return T(boost::multiprecision::exp(x)); }
  [[nodiscard]] static T log(const T& x) { return T(boost::multiprecision::log(x)); }
  [[nodiscard]] static T reference_point(std::span<const T> row) { return largest_of(row); }
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
