// MPFR with a precision chosen at run time as a scalar of the core.
#pragma once

#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfr.hpp>

#include "core/definition/scalar.h"
#include "core/scalars/wide.h"

namespace attest {

/// A number made in a PrecisionScope has that scope's precision; results have the larger one of their operands'.
using Mpfr = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<0>, boost::multiprecision::et_off>;

/// Precision of the Mpfr and Interval numbers that this thread makes while the scope lives: decimal digits, at least 20
/// so that every double is exact.
template <class T>
class PrecisionScope {
 public:
  explicit PrecisionScope(unsigned digits) : before_(T::thread_default_precision()) {
    T::thread_default_precision(digits);
  }
  ~PrecisionScope() { T::thread_default_precision(before_); }
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  unsigned before_;
};

template <>
struct ScalarTraits<Mpfr> {
  static constexpr std::string_view name = "mpfr";
  static constexpr std::string_view summary = "the definition in MPFR with 61 decimal digits, or @DIGITS, rounded once";
  struct Call {
    PrecisionScope<Mpfr> numbers{AskedPrecision::digits()};
  };
  [[nodiscard]] static Mpfr from_double(double value) { return Mpfr(value); }
  [[nodiscard]] static double to_double(const Mpfr& x) { return mpfr_get_d(x.backend().data(), MPFR_RNDN); }
  [[nodiscard]] static float to_float(const Mpfr& x) { return mpfr_get_flt(x.backend().data(), MPFR_RNDN); }
  [[nodiscard]] static Mpfr minus_infinity() { return Mpfr(-std::numeric_limits<double>::infinity()); }
  [[nodiscard]] static bool is_minus_infinity(const Mpfr& x) {
    return mpfr_inf_p(x.backend().data()) != 0 && mpfr_signbit(x.backend().data()) != 0;
  }
  [[nodiscard]] static Mpfr undefined() { return Mpfr(std::numeric_limits<double>::quiet_NaN()); }
  [[nodiscard]] static Mpfr exp(const Mpfr& x) { return boost::multiprecision::exp(x); }
  [[nodiscard]] static Mpfr log(const Mpfr& x) { return boost::multiprecision::log(x); }
  [[nodiscard]] static Mpfr tanh(const Mpfr& x) { return boost::multiprecision::tanh(x); }
  [[nodiscard]] static Mpfr reference_point(std::span<const Mpfr> row) { return largest_of(row); }
  [[nodiscard]] static WideInterval enclosure(const Mpfr& x) {
    const Wide exact(x.backend().data());
    return {exact, exact};
  }
  /// Every operation is rounded correctly, exp too. Boost's run-time precision is in digits, and MPFR's in bits at
  /// least as many as they need.
  [[nodiscard]] static WideRounding rounding() {
    const auto bits = static_cast<int>(mpfr_get_prec(Mpfr(0).backend().data()));
    return {.unit = std::ldexp(1.0L, -bits),
            .least = static_cast<double>(mpfr_get_emin()),
            .largest = static_cast<double>(mpfr_get_emax())};
  }
};

}  // namespace attest
