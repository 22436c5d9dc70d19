// The bounds of the first n keys of one query for one n after another, from sums that go on: error-bounds.md 5.1.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/bound/key_pass.h"
#include "core/bound/loops/inner_loops.h"
#include "core/bound/row_bound.h"

namespace attest::detail {

/// Sums over the first n keys, w_j = exp(s_j - some reference).
struct PrefixSums {
  double weight = 0;            ///< of w_j
  double error = 0;             ///< of w_j e_j
  double lse_error = 0;         ///< of w_j f_j
  double small = 0;             ///< of w_j where the key does not count as one of some weight
  std::int64_t big = 0;         ///< the other keys
  std::int64_t rescalings = 0;  ///< how often the reference was another
};

/// What a prefix has to say of all columns.
struct PrefixTerms {
  /// false: nothing is known, its own evaluation may tell more. The other members are then of no use.
  bool usable = false;
  PrefixConstants columns;  ///< for InnerLoops::prefix_columns
  double most_size = 0;     ///< what |o_k| + B_k must not exceed (D4)
  double most_E_here = 0;   ///< as in KeyTerms
  double lse_allowed = 0;
  bool finite_required = true;  ///< false: perhaps not (ElementBound)
};

/// The keys of one query, of which all are visible, and no bias.
class PrefixKeys {
 public:
  /// For prefixes of up to row.n keys: e_j and f_j of these. `centre`: the score that the constants' errors are counted
  /// from; any is valid, the nearer the weighted mean the better. Nothing is taken yet. `p` and what `row` points to
  /// must outlive the prefixes.
  void begin(const Profile& p, const RowKeys& row, double centre, BoundScratch& scratch);
  /// The part of E_j, and of what the log-sum-exp takes in its place, that is the key's own; [row.n].
  [[nodiscard]] const double* own() const { return e_.data(); }
  [[nodiscard]] const double* own_of_lse() const { return f_.data(); }
  /// Goes on to the first n keys, no fewer than before.
  void take(std::int64_t n);
  /// Of the keys taken. `sums`: over these. `most_abs_sum`: the largest sum of |v| of a column.
  [[nodiscard]] PrefixTerms terms(const PrefixSums& sums, double reference, const double* q, double most_abs_sum,
                                  BoundScratch& scratch) const;

 private:
  /// Of the keys taken: what the bound has largest values of.
  struct Most {
    ScoreRange range;
    double s_low = 0, a = 0, e = 0, least_e = 0, f = 0, size_of_s = 0;
  };
  void find_own_errors();
  [[nodiscard]] double common(const Most& most) const;

  const Profile* p_ = nullptr;
  RowKeys row_;
  std::optional<KeyPass> pass_;
  double top_ = 0, least_Mabs_ = 0;  ///< M* and Q* of 5.1
  std::vector<double> e_, f_;
  std::int64_t taken_ = 0;
  Most most_;
};

}  // namespace attest::detail
