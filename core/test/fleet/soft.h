// Soft: arithmetic in a format, one rounding per operation, as a machine without that format would have to imitate it.
#pragma once

#include <cmath>

#include "core/value/dtype.h"

namespace attest::fleet {

/// Operations on numbers of `format`, held in double. A truncating one rounds sums toward zero, a flushing one turns
/// subnormal results into zeros. f64 does not truncate.
class Soft {
 public:
  Soft(DType format, bool truncates, bool flushes)
      : format_(format), truncates_(truncates), least_(flushes ? format_of(format).min_normal : 0.0) {}

  [[nodiscard]] DType format() const { return format_; }
  /// Rounded to nearest, whatever the sums do.
  [[nodiscard]] double round(double x) const {
    if (format_ == DType::f64) return flush(x);
    if (format_ == DType::f32) return flush(static_cast<double>(static_cast<float>(x)));
    return flush(round_to(format_, x));
  }
  // Products, differences and quotients of two numbers of at most 24 bits round to the format as if the double had been
  // exact: it has more than twice the bits and two (Figueroa 1995).
  [[nodiscard]] double mul(double a, double b) const { return round(a * b); }
  [[nodiscard]] double sub(double a, double b) const { return round(a - b); }
  [[nodiscard]] double div(double a, double b) const { return round(a / b); }
  [[nodiscard]] double add(double a, double b) const { return truncates_ ? truncated_sum(a, b) : round(a + b); }
  /// a*b + c in one rounding.
  [[nodiscard]] double fma(double a, double b, double c) const {
    if (format_ == DType::f64) return flush(std::fma(a, b, c));
    if (truncates_) return truncated_sum(a * b, c);
    if (format_ == DType::f32) {
      return flush(static_cast<double>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))));
    }
    return round(std::fma(a, b, c));
  }

 private:
  [[nodiscard]] double flush(double x) const { return std::fabs(x) < least_ ? std::copysign(0.0, x) : x; }
  /// The double sum may itself have been rounded up to a number of the format: its error decides.
  [[nodiscard]] double truncated_sum(double a, double b) const {
    const double sum = a + b;
    if (!std::isfinite(sum)) return sum;
    const double b_part = sum - a;
    const double error = (a - (sum - b_part)) + (b - b_part);
    double kept = truncate_to(format_, sum);
    if (kept == sum && error != 0 && (error < 0) == (sum > 0)) {
      kept = truncate_to(format_, std::nextafter(sum, 0.0));
    }
    return flush(kept);
  }

  DType format_;
  bool truncates_;
  double least_;
};

}  // namespace attest::fleet
