// The probabilistic bound of one row (error_alarm.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/bound/error_alarm.h"
#include "core/bound/leaning.h"
#include "core/bound/row_bound.h"

namespace attest::detail {

/// Reusable memory of one thread.
class RowAlarm {
 public:
  /// Of a row that key_terms and element_bounds have just been called for with `terms`, `w`, `elements` and the values
  /// `o`; `keys` is k, [row.index][dk]. Fills out[0 .. values.dv). Relative error of each bound: at most 2^-20.
  void evaluate(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values, const double* q,
                const double* keys, const double* o, const BoundScratch& w, const ElementTerms* elements,
                double probability, ElementAlarm* out);

 private:
  /// Fills equal_dot_ and crowded_. False where keys that carry weight are equal.
  bool compare_keys(const Profile& p, const RowKeys& row, const BoundScratch& w);
  /// Fills plain_, dot_ and square_.
  void weigh_keys(const Profile& p, const RowKeys& row, const double* q, const double* keys, const BoundScratch& w);
  /// Fills the sums per column.
  void sum_columns(const Profile& p, const RowKeys& row, const RowValues& values, const double* o,
                   const BoundScratch& w, const ElementTerms* elements);

  std::vector<Ranked> ranked_;
  std::vector<std::int64_t> weighing_;  ///< the keys that carry weight
  EqualDigits equal_;
  std::vector<unsigned char> equal_dot_;  ///< shares q.k up to sign and a power of two: its score's error is another's
  std::vector<unsigned char> crowded_;    ///< shares its weight, or nearly
  std::vector<double> scaled_q_;
  // Per key, what multiplies |v_jk - o_k|: errors that are not random; q.k at its proved worst; its largest root of a
  // sum of squares.
  std::vector<double> plain_, dot_, square_;
  double sum_plain_ = 0, sum_dot_ = 0, sum_square_ = 0;  ///< the last of squares
  // Per column: the sums of those times |v_jk - o_k|, the last of squares, and what leans to one side.
  std::vector<double> column_plain_, column_dot_, column_square_, leaning_;
  std::vector<double> least_, most_, everything_, distance_;
};

}  // namespace attest::detail
