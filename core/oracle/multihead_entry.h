// One batch entry of a multihead case, in double-double or in balls: exact outputs, and the bound of
// error-bounds.md 1.5 as corrected by 1.7.
#pragma once

#include <span>
#include <vector>

#include "core/bound/row_bound.h"
#include "core/oracle/oracle.h"
#include "core/oracle/projected.h"
#include "core/oracle/rows/enclosed_row.h"

namespace attest::detail {

/// The precision of an evaluation: double-double, or balls of so many bits.
constexpr long in_pairs = 0;

/// One batch entry at one precision: exact outputs and their bounds.
struct MultiheadEntry {
  long bits = in_pairs;
  Pairs pairs;                  ///< [M, d_o], where bits is in_pairs
  Balls y;                      ///< likewise, where it is not
  std::vector<double> allowed;  ///< likewise
  std::vector<Excuse> excuse;
  std::vector<double> most_E;  ///< [M], over the heads
  bool settled = true;         ///< else more bits are needed; of an unsettled one in pairs nothing else is there

  [[nodiscard]] int level() const { return bits == in_pairs ? 2 : 3; }
  /// [lower, upper] of |found - y_e|.
  void distance(std::int64_t e, double found, double& lower, double& upper) const;
  /// The double next to y_e, and how far y_e may be from it.
  [[nodiscard]] double value(std::int64_t e) const;
  [[nodiscard]] double certificate(std::int64_t e) const;
};

/// What the heads say about one row of a batch entry, columns side by side: all of it but `values` per column.
struct HeadsRow {
  Balls o;  ///< exact, or:
  Pairs pairs;
  std::vector<double> size;        ///< |O| from above
  std::vector<double> error;       ///< dO
  std::vector<double> score;       ///< the part of it that the errors of the scores make up
  std::vector<double> most_value;  ///< largest |X||W_v| + |b_v| of a visible key
  std::vector<Excuse> why;
  std::vector<std::vector<double>> apart;  ///< per head: V_j - O for its visible keys, [keys][dv]

  HeadsRow(std::int64_t heads, std::int64_t dv, bool balls) : why(static_cast<std::size_t>(heads * dv)) {
    if (balls) o = Balls(heads * dv);
    for (auto* column : {&size, &error, &score, &most_value, &pairs.high, &pairs.low, &pairs.radius})
      column->resize(static_cast<std::size_t>(heads * dv));
    apart.resize(static_cast<std::size_t>(heads));
  }
};

class MultiheadProblem {
 public:
  /// The case must outlive the problem.
  MultiheadProblem(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values);
  /// In balls of so many bits, or `in_pairs`.
  [[nodiscard]] MultiheadEntry evaluate(std::int64_t batch, long bits);

 private:
  /// One head of one row: where its numbers lie in the projected matrices.
  struct HeadOfRow {
    std::int64_t batch, h, i;
  };

  /// Q, K and V of a batch entry; false where pairs do not hold them.
  bool project(std::int64_t batch, long bits);
  /// One head's part of a row.
  Excuse head_row(const HeadOfRow& head, long bits, HeadsRow& out, bool& settled);
  /// Exact attention of a head's row on the exact Q, K and V, into row_; false where more bits are needed.
  bool evaluate_row(const HeadOfRow& head, long bits);
  /// Fills visible_ and bias_; why the row has no bound, if it has none.
  Excuse see_keys(const HeadOfRow& head);
  /// The additive mask of key j after the causal form and the kernel's format of masks; -inf where it is hidden.
  [[nodiscard]] double bias_of(const HeadOfRow& head, std::int64_t j) const;
  /// Sum_c |q_c k_c| of the perturbed problem's key j, from above; of any key, visible or not.
  [[nodiscard]] double size_of_score(const HeadOfRow& head, std::int64_t j) const;
  /// The perturbed problem's scores: sizes with the inputs' errors in them, and what the scores owe to those.
  RowKeys perturbed_keys(const HeadOfRow& head);
  RowValues perturbed_values(const HeadOfRow& head);
  /// Y of row i from the heads' outputs.
  ///
  /// Vacuous, of an element of Y (ElementBound): whatever weights each head gave its keys, Y would stay within reach =
  /// sum_h max_j |sum_c W_hc (V_jhc - O_hc)| of the exact one. A bound that accepts all of that because the scores are
  /// not known (they make up half of it or more) tells nothing; nor does one whose other part is as large as the
  /// numbers that Y is summed from. One key, or values that hardly differ, leave the scores no part in the bound.
  void output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, MultiheadEntry& entry);
  /// Y itself, of row i, into the entry, and |Y| of each column from above into output_sizes_.
  void exact_output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, MultiheadEntry& entry);
  /// Is B at least as much as an element of Y with these factors, of the heads' columns from `first` on, moves by
  /// whatever weights every head gives its keys? Nearly always one key tells that it is not.
  [[nodiscard]] bool covers_reach(const HeadsRow& heads, std::int64_t first, std::span<const double> factors,
                                  double B) const;

  /// Where column `column` of visible key j lies.
  [[nodiscard]] std::size_t cell(const Projected& p, std::int64_t j, std::int64_t column) const {
    return static_cast<std::size_t>(visible_[static_cast<std::size_t>(j)] * p.columns + column);
  }
  [[nodiscard]] std::int64_t value_stride() const { return (dv_ + 3) / 4 * 4; }

  /// What an evaluation knows of a head's row: weights per visible key; the values next to the exact ones, and how far
  /// these may be from them.
  struct KnownRow {
    const double *alpha, *value, *radius;
  };

  const Problem& c_;
  bool ignores_dead_ = false, appended_ = false;
  std::int64_t M_ = 0, N_ = 0, heads_ = 1, dk_ = 1, dv_ = 1, keys_ = 0;
  std::vector<double> bias_k_, bias_v_;
  Weights w_q_, w_k_, w_v_, w_o_;
  Projected q_, k_, v_;  ///< of the entry at hand
  double most_E_ = 0, largest_hidden_ = 0;
  Profile profile_;
  ProjectionProfile projections_;
  std::vector<std::int64_t> visible_;
  std::vector<double> bias_;
  KnownRow row_{};
  BallRow balls_;
  EnclosedRow pairs_;
  std::vector<EnclosedHead> enclosed_;  ///< the heads, where they are known as pairs
  BoundScratch scratch_;
  std::vector<double> output_sizes_;
  std::vector<ElementTerms> elements_;
  // Of the head at hand, for its bound.
  std::vector<double> sizes_, input_error_, k1_, scaled_bias_, q_most_, values_, values_error_, low_, high_, abs_sum_;
};

}  // namespace attest::detail
