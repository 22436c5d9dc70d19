// Eigen::half (IEEE binary16) and Eigen::bfloat16 as scalars of the core. Eigen computes each +, -, *, / in float and
// rounds the result, which equals one rounding: 24 >= 2p + 2 for p = 11 and p = 8 (Figueroa 1995). Its exp, log and
// tanh are the float functions rounded, at most 0.501 ulp off. Only its conversion from double is not used: it rounds
// twice.
#pragma once

#include <Eigen/Core>

#include "core/definition/scalar.h"
#include "core/value/dtype.h"

namespace attest {

template <class T>
struct HalfTraits {
  [[nodiscard]] static double to_double(T x) { return static_cast<double>(static_cast<float>(x)); }
  [[nodiscard]] static float to_float(T x) { return static_cast<float>(x); }
  [[nodiscard]] static T minus_infinity() { return -Eigen::NumTraits<T>::infinity(); }
  [[nodiscard]] static bool is_minus_infinity(T x) { return x == minus_infinity(); }
  [[nodiscard]] static T undefined() { return Eigen::NumTraits<T>::quiet_NaN(); }
  [[nodiscard]] static T exp(T x) { return T(std::exp(static_cast<float>(x))); }
  [[nodiscard]] static T log(T x) { return T(std::log(static_cast<float>(x))); }
  [[nodiscard]] static T tanh(T x) { return T(std::tanh(static_cast<float>(x))); }
  [[nodiscard]] static T reference_point(std::span<const T> row) { return largest_of(row); }
};

template <>
struct ScalarTraits<Eigen::half> : HalfTraits<Eigen::half> {
  static constexpr std::string_view name = "half";
  static constexpr std::string_view summary = "the definition with every operation in half";
  static constexpr DType dtype = DType::f16;
  [[nodiscard]] static Eigen::half from_double(double value) {
    return Eigen::half_impl::raw_uint16_to_half(f16_bits(value));
  }
};
template <>
struct ScalarTraits<Eigen::bfloat16> : HalfTraits<Eigen::bfloat16> {
  static constexpr std::string_view name = "bfloat16";
  static constexpr std::string_view summary = "the definition with every operation in bfloat16";
  static constexpr DType dtype = DType::bf16;
  [[nodiscard]] static Eigen::bfloat16 from_double(double value) {
    return Eigen::bfloat16_impl::raw_uint16_to_bfloat16(bf16_bits(value));
  }
};

}  // namespace attest
