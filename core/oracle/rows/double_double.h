// A number as the unevaluated sum of two doubles.
#pragma once

#include <cmath>

namespace attest::detail {

struct DoubleDouble {
  double high = 0, low = 0;
};

/// s + e = a + b (Knuth 1969), unless the sum overflows.
[[nodiscard]] inline DoubleDouble two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// p + e = a b (Dekker 1971), unless something overflows, to within 2^-1071 where the error underflows.
[[nodiscard]] inline DoubleDouble two_product(double a, double b) {
  const double p = a * b, ca = 134217729.0 * a, cb = 134217729.0 * b;
  const double ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/// a b and a/b, to within 2^-100 of themselves, unless something leaves the range of doubles.
[[nodiscard]] inline DoubleDouble product_of(const DoubleDouble& a, const DoubleDouble& b) {
  const DoubleDouble p = two_product(a.high, b.high);
  return two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
[[nodiscard]] inline DoubleDouble quotient_of(const DoubleDouble& a, const DoubleDouble& b) {
  // Dekker's halves of a quotient that is itself a double would overflow from 2^996 on.
  const double unit = std::fabs(a.high / b.high) > 0x1p900 ? 0x1p-200 : 1.0, high = a.high * unit, low = a.low * unit;
  const double quotient = high / b.high;
  const DoubleDouble back = two_product(quotient, b.high);
  const double remainder = ((high - back.high) - back.low) + (low - quotient * b.low);
  const DoubleDouble exact = two_sum(quotient, remainder / b.high);
  return {exact.high / unit, exact.low / unit};
}

/// |found - value| to a relative error below 2^-51. Where `found` is so near that the low part counts the difference to
/// the high part is exact.
[[nodiscard]] inline double distance_to(const DoubleDouble& value, double found) {
  return std::fabs((found - value.high) - value.low);
}

}  // namespace attest::detail
