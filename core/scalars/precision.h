// The precision of scalars that have one as they run, of a thread; and how wide scalars round.
#pragma once

namespace attest {

/// Decimal digits of core:mpfr, core:mpfi and core:arb where nobody asks for others: about 200 bits. The products of
/// doubles are exact from 32 digits on.
inline constexpr unsigned run_time_digits = 61;

/// Bits that hold so many decimal digits, as Boost gives them to MPFR.
[[nodiscard]] constexpr long bits_of_digits(unsigned digits) {
  return static_cast<long>(digits) * 1000 / 301 + (static_cast<long>(digits) * 1000 % 301 != 0 ? 2 : 1);
}

/// While it lives, the core's scalars with a precision at run time have at least so many decimal digits on this thread.
class AskedPrecision {
 public:
  explicit AskedPrecision(unsigned digits) : before_(digits_) { digits_ = digits; }
  ~AskedPrecision() { digits_ = before_; }
  AskedPrecision(const AskedPrecision&) = delete;
  AskedPrecision& operator=(const AskedPrecision&) = delete;

  [[nodiscard]] static unsigned digits() { return digits_; }
  [[nodiscard]] static long bits() { return bits_of_digits(digits_); }

 private:
  inline static thread_local unsigned digits_ = run_time_digits;
  unsigned before_;
};

/// How a scalar wider than every dtype computes (error-bounds.md, 1.8). Its errors are of more digits than the
/// exponents of a double reach to.
struct WideRounding {
  /// +, -, * and / err relatively by at most this; 0: intervals, which enclose the exact value.
  long double unit = 0;
  /// exp(x) errs relatively by at most (exp_units + exp_growth |x|) unit.
  double exp_units = 1, exp_growth = 0;
  /// tanh(x) errs by at most so many units, absolutely.
  double tanh_units = 1;
  /// A double is a number of the scalar, and so is a power of two times one; else a double becomes one with an error of
  /// one unit at most.
  bool exact_inputs = true;
  /// log2 of what an operation may lose to underflow beside that, and of the least number that may be one too many.
  double least = -0x1p29, largest = 0x1p29;
};

}  // namespace attest
