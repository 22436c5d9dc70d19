// Level 2 of the oracle for rows whose q, k and v are not numbers of a case but known as double-doubles, each to within
// a radius: those of heads of multi-head attention, which are sums of products themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/bound/row_bound.h"
#include "core/oracle/rows/double_double_row.h"
#include "core/oracle/rows/head.h"

namespace attest::detail {

/// A matrix of such numbers, row-major: each is within its radius of middle + low.
struct EnclosedMatrix {
  std::int64_t columns = 0;
  const double *middle = nullptr, *low = nullptr, *radius = nullptr;
};

/// The keys and values of one head.
class EnclosedHead {
 public:
  /// Columns [of_k, of_k + dk) of k and [of_v, of_v + dv) of v, of as many keys.
  void load(const EnclosedMatrix& k, std::int64_t of_k, std::int64_t dk, const EnclosedMatrix& v, std::int64_t of_v,
            std::int64_t dv, std::int64_t keys, double scale, MaskConvention convention);
  [[nodiscard]] const Head& head() const { return head_; }

 private:
  friend class EnclosedRow;
  Head head_;
  std::vector<double> k_low_, v_low_, low_panels_;
  double most_k_radius_ = 0, most_k1_ = 0;
  std::vector<double> v_radius_;  ///< the largest of each column
};

/// One row: arrays as in RowKeys and BallRow, and the values as pairs.
class EnclosedRow {
 public:
  /// The row of q from element `at` on, its visible keys in ascending order and their mask (empty: none). False, and
  /// nothing is certain, where double-doubles do not tell its weights to 2^-39.
  [[nodiscard]] bool evaluate(const EnclosedHead& head, const EnclosedMatrix& q, std::size_t at,
                              std::span<const std::int64_t> visible, std::span<const double> mask);
  /// Points `keys` and `values` at these arrays; their scores and distances are those of doubles.
  void attach(RowKeys& keys, RowValues& values) const;

  /// Is the bound of every element that was made of these distances within a relative 2^-20 of that of the exact ones?
  /// An error of a score lets weights grow without end in the bound, and what the distances owe to radii with them.
  [[nodiscard]] bool sharp(const EnclosedHead& head, const KeyTerms& terms,
                           const std::vector<ElementTerms>& elements) const;

  [[nodiscard]] const std::vector<double>& alpha() const { return pairs_.alpha; }
  /// The values are within `radius` of high + low; within `to_value` of high.
  [[nodiscard]] const std::vector<double>& high() const { return pairs_.o; }
  [[nodiscard]] const std::vector<double>& low() const { return pairs_.o_low; }
  std::vector<double> radius, to_value;

 private:
  /// The most that a score of a key whose weight counts errs by, or infinity.
  [[nodiscard]] double score_error(const EnclosedHead& head, const EnclosedMatrix& q, std::size_t at) const;
  void take_radii(const EnclosedHead& head, double of_scores);

  DoubleDoubleRow pairs_;
  Row row_;
  RowKeys keys_;
  RowValues values_;
  std::vector<double> apart_;  ///< [keys][stride], of each value from that of the row
};

}  // namespace attest::detail
