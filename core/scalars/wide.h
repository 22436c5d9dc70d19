// Numbers of scalars that no dtype holds: multiprecision numbers and intervals.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "core/scalars/precision.h"

namespace attest {

/// A binary floating-point number of any precision. From a double and from a scalar it is exact; a sum, difference or
/// product is rounded once, to 332 bits more than this thread's AskedPrecision (532 or more), or to the precision of
/// the wider operand where that has more. So it holds every number of the core's scalars, and what the sums and
/// products of a few of them lose is far below any bound.
class Wide {
 public:
  Wide() : Wide(0.0) {}
  // NOLINTBEGIN(google-explicit-constructor): exact, as every conversion to a wider type
  Wide(double value) : Wide(value, std::numeric_limits<double>::digits) {}
  Wide(int value) : Wide(static_cast<double>(value)) {}
  Wide(long double value) {
    mpfr_init2(x_, std::numeric_limits<long double>::digits);
    mpfr_set_ld(x_, value, MPFR_RNDN);
  }
  // NOLINTEND(google-explicit-constructor)
  /// Exact, of the same precision.
  explicit Wide(mpfr_srcptr value) {
    mpfr_init2(x_, mpfr_get_prec(value));
    mpfr_set(x_, value, MPFR_RNDN);
  }
  /// Rounded to so many bits.
  Wide(double value, mpfr_prec_t bits) {
    mpfr_init2(x_, bits);
    mpfr_set_d(x_, value, MPFR_RNDN);
  }
  Wide(const Wide& other) : Wide(static_cast<mpfr_srcptr>(other.x_)) {}
  Wide(Wide&& other) noexcept {
    mpfr_init2(x_, MPFR_PREC_MIN);
    mpfr_swap(x_, other.x_);
  }
  Wide& operator=(const Wide& other) {
    if (this == &other) return *this;
    mpfr_set_prec(x_, mpfr_get_prec(other.x_));
    mpfr_set(x_, other.x_, MPFR_RNDN);
    return *this;
  }
  Wide& operator=(Wide&& other) noexcept {
    mpfr_swap(x_, other.x_);
    return *this;
  }
  ~Wide() { mpfr_clear(x_); }

  /// Bits that a result has where neither operand has more.
  [[nodiscard]] static mpfr_prec_t bits() { return std::max<mpfr_prec_t>(AskedPrecision::bits(), 200) + 332; }

  [[nodiscard]] mpfr_srcptr data() const { return x_; }
  [[nodiscard]] mpfr_ptr data() { return x_; }
  /// Rounded once. A `long double` has the exponents that an error of many digits needs.
  explicit operator double() const { return mpfr_get_d(x_, MPFR_RNDN); }
  explicit operator long double() const { return mpfr_get_ld(x_, MPFR_RNDN); }
  [[nodiscard]] int sign() const { return mpfr_sgn(x_); }
  /// So many significant decimal digits.
  [[nodiscard]] std::string str(int digits) const {
    char* text = nullptr;
    mpfr_asprintf(&text, "%.*Rg", digits, x_);
    std::string copy(text);
    mpfr_free_str(text);
    return copy;
  }

  friend Wide operator+(const Wide& a, const Wide& b) { return of(mpfr_add, a, b); }
  friend Wide operator-(const Wide& a, const Wide& b) { return of(mpfr_sub, a, b); }
  friend Wide operator*(const Wide& a, const Wide& b) { return of(mpfr_mul, a, b); }
  friend Wide operator-(const Wide& a) {
    Wide negative(a);
    mpfr_neg(negative.x_, negative.x_, MPFR_RNDN);
    return negative;
  }
  Wide& operator+=(const Wide& b) { return *this = *this + b; }
  Wide& operator-=(const Wide& b) { return *this = *this - b; }
  friend Wide abs(const Wide& a) { return mpfr_signbit(a.x_) != 0 ? -a : a; }
  friend Wide ldexp(const Wide& a, long exponent) {
    Wide scaled(a);
    mpfr_mul_2si(scaled.x_, scaled.x_, exponent, MPFR_RNDN);
    return scaled;
  }

  // As of doubles: -0 is 0, and NaN is neither equal to, below nor above anything.
  friend bool operator==(const Wide& a, const Wide& b) { return mpfr_equal_p(a.x_, b.x_) != 0; }
  friend bool operator<(const Wide& a, const Wide& b) { return mpfr_less_p(a.x_, b.x_) != 0; }
  friend bool operator>(const Wide& a, const Wide& b) { return b < a; }
  friend bool operator<=(const Wide& a, const Wide& b) { return mpfr_lessequal_p(a.x_, b.x_) != 0; }
  friend bool operator>=(const Wide& a, const Wide& b) { return b <= a; }
  friend bool isnan(const Wide& a) { return mpfr_nan_p(a.x_) != 0; }
  friend bool isinf(const Wide& a) { return mpfr_inf_p(a.x_) != 0; }
  friend bool isfinite(const Wide& a) { return mpfr_number_p(a.x_) != 0; }
  friend bool signbit(const Wide& a) { return mpfr_signbit(a.x_) != 0; }

 private:
  static Wide of(int (*operation)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t), const Wide& a, const Wide& b) {
    Wide result(0.0, std::max({mpfr_get_prec(a.x_), mpfr_get_prec(b.x_), bits()}));
    operation(result.x_, a.x_, b.x_, MPFR_RNDN);
    return result;
  }

  mpfr_t x_;
};

/// [lower, upper]; one number where the two are equal. NaN in both: undefined.
struct WideInterval {
  Wide lower = 0, upper = 0;
};

[[nodiscard]] inline double middle_of(const WideInterval& x) {
  return static_cast<double>(ldexp(x.lower + x.upper, -1));
}
[[nodiscard]] inline bool is_nan(const WideInterval& x) {
  return isnan(x.lower) || isnan(x.upper);
}
inline constexpr std::string_view why_loose = "the enclosure of an output is too loose to be rounded to one number";
/// Wider than 2^-55 of its largest number: its middle says nothing of the number in it. An undefined one is not. Huge
/// scores make such ones, whose exponentials no run-time precision holds.
[[nodiscard]] inline bool is_loose(const WideInterval& x) {
  if (is_nan(x) || x.lower == x.upper) return false;
  const Wide width = x.upper - x.lower, below = abs(x.lower), above = abs(x.upper);
  return !isfinite(width) || width > ldexp(below < above ? above : below, -55);
}

}  // namespace attest
