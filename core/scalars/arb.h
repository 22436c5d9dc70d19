// Arb balls (Johansson 2017) with a precision chosen at run time as a scalar of the core: every result encloses what
// exact arithmetic would give on any numbers inside the operands, exp and log being the real ones, so an output
// encloses the exact attention of its inputs. It shares no arithmetic with MPFI, the core's other intervals.
#pragma once

#include <Eigen/Core>
#include <limits>

#include "core/definition/scalar.h"
#include "core/scalars/arb_header.h"
#include "core/scalars/mpfr.h"
#include "core/support/flint_caches.h"

namespace attest {

class Arb;
[[nodiscard]] Arb exp(const Arb& a);
[[nodiscard]] Arb log(const Arb& a);
[[nodiscard]] Arb tanh(const Arb& a);

/// A ball, midpoint and radius. Its kinds: a finite midpoint with any radius, an infinite radius being the whole line
/// and saying nothing; an infinity; or undefined (a NaN midpoint), which every operation passes on and which comes of
/// undefined operands and of exact ones that have no result (inf - inf, 0 * inf, log -1). What Arb answers with NaN
/// where the operands merely reach such a case (a divisor that may be 0) is the whole line here. There is no -0. Never
/// compared.
class Arb {
 public:
  /// Undefined, so that an entry nothing was written to is poison.
  Arb() {
    arb_init(x_);
    arf_nan(arb_midref(x_));
  }
  explicit Arb(double value) {
    arb_init(x_);
    arb_set_d(x_, value);
  }
  Arb(const Arb& other) {
    arb_init(x_);
    arb_set(x_, other.x_);
  }
  Arb(Arb&& other) noexcept {
    arb_init(x_);
    arb_swap(x_, other.x_);
  }
  Arb& operator=(const Arb& other) {
    if (this != &other) arb_set(x_, other.x_);
    return *this;
  }
  Arb& operator=(Arb&& other) noexcept {
    arb_swap(x_, other.x_);
    return *this;
  }
  ~Arb() { arb_clear(x_); }

  [[nodiscard]] arb_srcptr ball() const { return x_; }
  [[nodiscard]] arb_ptr ball() { return x_; }
  [[nodiscard]] bool is_undefined() const { return arf_is_nan(arb_midref(x_)) != 0; }

  // Arb rounds radii up even where nothing is to be done. Adding 0 and multiplying by ±2^k are exact here, so that a
  // product with the identity gives back the same balls, and 2^k times the values 2^k times the output.
  friend Arb operator+(const Arb& a, const Arb& b) {
    if (arb_is_zero(b.x_) != 0) return a;
    return arb_is_zero(a.x_) != 0 ? b : of(arb_add, a, b);
  }
  friend Arb operator-(const Arb& a, const Arb& b) { return arb_is_zero(b.x_) != 0 ? a : of(arb_sub, a, b); }
  friend Arb operator*(const Arb& a, const Arb& b) {
    if (b.is_power_of_two()) return scaled(a, b);
    return a.is_power_of_two() ? scaled(b, a) : of(arb_mul, a, b);
  }
  friend Arb operator/(const Arb& a, const Arb& b) {
    Arb quotient = of(arb_div, a, b);
    if (arb_contains_zero(b.x_) != 0 && !a.is_undefined() && !b.is_undefined()) arb_zero_pm_inf(quotient.x_);
    return quotient;
  }
  friend Arb exp(const Arb& a) {
    Arb e;
    arb_exp(e.x_, a.x_, bits());
    e.settle(a.is_undefined(), a.is_exact());
    return e;
  }
  friend Arb log(const Arb& a) {
    Arb l;
    arb_log(l.x_, a.x_, bits());
    l.settle(a.is_undefined(), a.is_exact());
    return l;
  }
  friend Arb tanh(const Arb& a) {
    Arb t;
    arb_tanh(t.x_, a.x_, bits());
    t.settle(a.is_undefined(), a.is_exact());
    return t;
  }

  /// Decimal digits that results have on this thread, as PrecisionScope<Arb> sets them.
  [[nodiscard]] static unsigned thread_default_precision() { return digits_; }
  static void thread_default_precision(unsigned digits) { digits_ = digits; }

 private:
  /// At least `digits_` decimal digits: 10/3 > log2(10).
  [[nodiscard]] static slong bits() { return static_cast<slong>(digits_) * 10 / 3 + 1; }

  static Arb of(void (*operation)(arb_t, const arb_t, const arb_t, slong), const Arb& a, const Arb& b) {
    Arb result;
    operation(result.x_, a.x_, b.x_, bits());
    result.settle(a.is_undefined() || b.is_undefined(), a.is_exact() && b.is_exact());
    return result;
  }
  [[nodiscard]] bool is_exact() const { return mag_is_zero(arb_radref(x_)) != 0; }
  /// Exactly ±2^k, k any whole number.
  [[nodiscard]] bool is_power_of_two() const { return is_exact() && arf_bits(arb_midref(x_)) == 1; }
  static Arb scaled(const Arb& a, const Arb& power) {
    Arb result;
    fmpz_t exponent;
    fmpz_init(exponent);
    // Arf's exponents are those of numbers from 1/2 to 1.
    fmpz_sub_ui(exponent, ARF_EXPREF(arb_midref(power.x_)), 1);
    arb_mul_2exp_fmpz(result.x_, a.x_, exponent);
    fmpz_clear(exponent);
    if (arf_sgn(arb_midref(power.x_)) < 0) arb_neg(result.x_, result.x_);
    return result;
  }
  /// Brings a result to one of the kinds of ball.
  void settle(bool undefined_operand, bool exact_operands) {
    const arf_struct* const middle = arb_midref(x_);
    if (undefined_operand || (arf_is_nan(middle) != 0 && exact_operands)) {
      arf_nan(arb_midref(x_));
      mag_zero(arb_radref(x_));
    } else if (arf_is_nan(middle) != 0 || mag_is_inf(arb_radref(x_)) != 0) {
      // Undefined or infinite somewhere inside the operands, and a number elsewhere; or beyond every exponent.
      arb_zero_pm_inf(x_);
    } else if (arf_is_inf(middle) != 0) {
      mag_zero(arb_radref(x_));
    }
  }

  inline static thread_local unsigned digits_ = 50;
  arb_t x_;
};

template <>
struct ScalarTraits<Arb> {
  static constexpr std::string_view name = "arb";
  static constexpr std::string_view summary =
      "the definition in Arb balls of 61 digits, or @DIGITS, their midpoints rounded once";
  struct Call {
    Call() { detail::free_flint_caches_at_thread_end(); }
    PrecisionScope<Arb> balls{AskedPrecision::digits()};
  };
  [[nodiscard]] static Arb from_double(double value) { return Arb(value); }
  /// Of the midpoint.
  [[nodiscard]] static double to_double(const Arb& x) { return arf_get_d(arb_midref(x.ball()), ARF_RND_NEAR); }
  [[nodiscard]] static float to_float(const Arb& x) { return mpfr_get_flt(middle(x).backend().data(), MPFR_RNDN); }
  [[nodiscard]] static Arb minus_infinity() { return Arb(-std::numeric_limits<double>::infinity()); }
  [[nodiscard]] static bool is_minus_infinity(const Arb& x) { return arf_is_neg_inf(arb_midref(x.ball())) != 0; }
  [[nodiscard]] static Arb undefined() { return {}; }
  [[nodiscard]] static Arb exp(const Arb& x) { return attest::exp(x); }
  [[nodiscard]] static Arb log(const Arb& x) { return attest::log(x); }
  [[nodiscard]] static Arb tanh(const Arb& x) { return attest::tanh(x); }
  /// The largest midpoint, as a ball of one point: any real number serves, if it is the same for the whole row.
  [[nodiscard]] static Arb reference_point(std::span<const Arb> row) {
    const Arb* largest = &row[0];
    for (const Arb& x : row.subspan(1))
      if (arf_cmp(arb_midref(x.ball()), arb_midref(largest->ball())) > 0) largest = &x;
    Arb point = *largest;
    mag_zero(arb_radref(point.ball()));
    return point;
  }

  /// Of more digits and exponents than those of MPFR: rounded outward. FLINT writes exponents that are out of MPFR's
  /// range, where MPFR's own functions may do anything.
  [[nodiscard]] static WideInterval enclosure(const Arb& x) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    WideInterval ends{Wide(nan, Wide::bits()), Wide(nan, Wide::bits())};
    if (x.is_undefined()) return ends;
    arb_get_interval_mpfr(ends.lower.data(), ends.upper.data(), x.ball());
    mpfr_check_range(ends.lower.data(), 0, MPFR_RNDD);
    mpfr_check_range(ends.upper.data(), 0, MPFR_RNDU);
    return ends;
  }
  [[nodiscard]] static WideRounding rounding() { return {.unit = 0}; }

  /// The midpoint, exactly.
  [[nodiscard]] static Mpfr middle(const Arb& x) {
    Mpfr m;
    mpfr_set_prec(m.backend().data(), std::max<mpfr_prec_t>(2, arf_bits(arb_midref(x.ball()))));
    arf_get_mpfr(m.backend().data(), arb_midref(x.ball()), MPFR_RNDN);
    return m;
  }
};

}  // namespace attest

template <>
struct Eigen::NumTraits<attest::Arb> : Eigen::GenericNumTraits<double> {
  using Real = attest::Arb;
  using NonInteger = attest::Arb;
  using Nested = attest::Arb;
  using Literal = attest::Arb;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = HugeCost,
    MulCost = HugeCost
  };
};
