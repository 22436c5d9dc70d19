// Level 2 of the oracle: a row in double-double arithmetic, each number the unevaluated sum of two doubles.
#pragma once

#include <vector>

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// Unit of the level: what is proved of the double evaluation (element_bounds, key_terms) with unit 2^-53 holds of this
/// one with unit 2^-89, so that certificates shrink by the quotient of the two.
inline constexpr double double_double_unit = 0x1p-89;
/// What is proved here is proved of sums of no more terms.
inline constexpr std::int64_t most_terms_in_pairs = 100000;

/// Low parts of q, of k as Head::panels and of v as Head::v, of inputs that are double-doubles themselves.
struct LowParts {
  const double *q = nullptr, *panels = nullptr, *v = nullptr;
};

/// A row in double-double. Arrays as in RowKeys, and high and low parts of the values.
struct DoubleDoubleRow {
  std::vector<double> s, t, capped, la, alpha;
  std::vector<double> o, o_low;
  DoubleDouble reference, lse;

  /// Evaluates the visible keys of a row that was evaluated in double. False, and nothing is certain, where a number
  /// leaves the range of the error-free transformations or the row is longer than the proof covers. With `low` no more
  /// is read of the row than its keys, their mask and q; there is no sink.
  [[nodiscard]] bool evaluate(const Head& head, const Row& row, const LowParts* low = nullptr);
  /// Points `keys` and `values` at these arrays.
  void attach(RowKeys& keys, RowValues& values);

 private:
  /// Scaled products s, s_low_ of n keys, on which nothing has been added yet, as the cap makes them.
  void cap_scores(double cap, std::int64_t n);
  /// Adds what low parts have in q.k of `count` panels from number `front` on.
  void add_low_products(const Head& head, const Row& row, const LowParts& low, std::int64_t front, std::int64_t count);
  /// The same in the sums of weights times values.
  void add_low_values(const Head& head, const Row& row, const LowParts& low);

  DoubleDouble sum_;
  std::vector<double> x_, x_low_, s_low_, w_, w_low_, part_;
};

}  // namespace attest::detail
