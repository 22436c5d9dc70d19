// Level 2 of the oracle: a row in double-double arithmetic, each number the unevaluated sum of two doubles.
#pragma once

#include <vector>

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// Unit of the level: what is proved of the double evaluation (element_bounds, key_terms) with unit 2^-53 holds of this
/// one with unit 2^-89, so that certificates shrink by the quotient of the two.
inline constexpr double double_double_unit = 0x1p-89;

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
