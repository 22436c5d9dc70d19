// MPFI intervals with a precision chosen at run time as a scalar of the core: every result encloses what exact
// arithmetic would give on any numbers inside the operands, so an output encloses the exact attention of its inputs.
#pragma once

#include <boost/multiprecision/eigen.hpp>
#include <boost/multiprecision/mpfi.hpp>
#include <boost/multiprecision/mpfr.hpp>

#include "core/definition/scalar.h"
#include "core/scalars/mpfr.h"

namespace attest {

/// Never compare two of them: Boost throws through a noexcept function where they overlap, which ends the process.
using Interval =
    boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<0>, boost::multiprecision::et_off>;

template <>
struct ScalarTraits<Interval> {
  static constexpr std::string_view name = "mpfi";
  static constexpr std::string_view summary =
      "the definition in MPFI intervals of 61 digits, or @DIGITS, their midpoints rounded once";
  struct Call {
    PrecisionScope<Mpfr> middles{AskedPrecision::digits()};
    PrecisionScope<Interval> intervals{AskedPrecision::digits()};
  };
  [[nodiscard]] static Interval from_double(double value) { return Interval(value); }
  [[nodiscard]] static double to_double(const Interval& x) { return mpfr_get_d(middle(x).backend().data(), MPFR_RNDN); }
  [[nodiscard]] static float to_float(const Interval& x) { return mpfr_get_flt(middle(x).backend().data(), MPFR_RNDN); }
  [[nodiscard]] static Interval minus_infinity() { return Interval(-std::numeric_limits<double>::infinity()); }
  [[nodiscard]] static bool is_minus_infinity(const Interval& x) {
    const auto& ends = *x.backend().data();
    return mpfr_inf_p(&ends.left) != 0 && mpfr_signbit(&ends.left) != 0 && mpfr_inf_p(&ends.right) != 0 &&
           mpfr_signbit(&ends.right) != 0;
  }
  [[nodiscard]] static Interval undefined() { return Interval(std::numeric_limits<double>::quiet_NaN()); }
  [[nodiscard]] static Interval exp(const Interval& x) { return boost::multiprecision::exp(x); }
  [[nodiscard]] static Interval log(const Interval& x) { return boost::multiprecision::log(x); }
  [[nodiscard]] static Interval tanh(const Interval& x) { return boost::multiprecision::tanh(x); }
  /// The largest midpoint, as an interval of one point: any real number serves, if it is the same for the whole row.
  [[nodiscard]] static Interval reference_point(std::span<const Interval> row) {
    Mpfr largest = middle(row[0]);
    for (const Interval& x : row.subspan(1)) {
      const Mpfr m = middle(x);
      if (largest < m) largest = m;
    }
    Interval point = row[0];
    mpfi_set_fr(point.backend().data(), largest.backend().data());
    return point;
  }

  [[nodiscard]] static WideInterval enclosure(const Interval& x) {
    return {Wide(&x.backend().data()->left), Wide(&x.backend().data()->right)};
  }
  [[nodiscard]] static WideRounding rounding() { return {.unit = 0}; }

  /// The midpoint, rounded to the interval's precision.
  [[nodiscard]] static Mpfr middle(const Interval& x) {
    Mpfr m;
    mpfr_set_prec(m.backend().data(), mpfi_get_prec(x.backend().data()));
    mpfi_mid(m.backend().data(), x.backend().data());
    return m;
  }
};

}  // namespace attest
