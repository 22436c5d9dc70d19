// Level 2 of the oracle: a row in double-double arithmetic, each number the unevaluated sum of two doubles.
#pragma once

#include <cmath>
#include <vector>

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// Unit of the level: what is proved of the double evaluation (element_bounds, key_terms) with unit 2^-53 holds of this
/// one with unit 2^-89, so that certificates shrink by the quotient of the two.
inline constexpr double double_double_unit = 0x1p-89;

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

/// |found - value| to a relative error below 2^-51. Where `found` is so near that the low part counts the difference to
/// the high part is exact.
[[nodiscard]] inline double distance_to(const DoubleDouble& value, double found) {
  return std::fabs((found - value.high) - value.low);
}

/// A row in double-double. Arrays as in RowKeys, and high and low parts of the values.
struct DoubleDoubleRow {
  std::vector<double> s, t, capped, la, alpha;
  std::vector<double> o, o_low;
  DoubleDouble reference, lse;

  /// Evaluates the visible keys of a row that was evaluated in double. False, and nothing is certain, where a number
  /// leaves the range of the error-free transformations or the row is longer than the proof covers.
  [[nodiscard]] bool evaluate(const Head& head, const Row& row);
  /// Points `keys` and `values` at these arrays.
  void attach(RowKeys& keys, RowValues& values);

 private:
  /// Scaled products s, s_low_ of n keys, on which nothing has been added yet, as the cap makes them.
  void cap_scores(double cap, std::int64_t n);

  DoubleDouble sum_;
  std::vector<double> x_, x_low_, s_low_, w_, w_low_;
};

}  // namespace attest::detail
