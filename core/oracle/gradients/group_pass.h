// The gradients of the heads that share one head of k and v, in double, with certificates and bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/bound/error_alarm.h"
#include "core/bound/gradient_alarm.h"
#include "core/bound/gradient_terms.h"
#include "core/oracle/gradients/gradient_sums.h"
#include "core/oracle/gradients/gradients.h"
#include "core/oracle/gradients/kept_rows.h"
#include "core/oracle/rows/head.h"
#include "core/problem/sequences.h"

namespace attest::detail {

/// A case's inputs, and what kernels of it declare.
struct GradientTask {
  const Problem& c;
  const BackwardInputs& given;
  const Arithmetic& forward;
  const BackwardArithmetic& backward;
  GradientOptions options;
};

/// run(sequence, key-value head) of every group of heads.
template <class Run>
void for_each_group(const Problem& c, Run&& run) {
  for (const Sequence& s : sequences_of(c))
    for (std::int64_t kv = 0; kv < c.k().shape()[1]; ++kv) run(s, kv);
}

/// Of a sequence's query i or key j the row of q, or of k and v, that it is: [batch, heads, row] as one index.
[[nodiscard]] inline std::int64_t row_of_query(const Problem& c, const Sequence& s, std::int64_t h, std::int64_t i) {
  return (s.entry * c.q().shape()[1] + h) * c.q().shape()[2] + s.first_query + i;
}
[[nodiscard]] inline std::int64_t row_of_key(const Problem& c, const Sequence& s, std::int64_t kv, std::int64_t j) {
  return (s.entry * c.k().shape()[1] + kv) * c.k().shape()[2] + s.first_key + j;
}

/// One thread's; memory is kept between groups.
class GroupPass {
 public:
  /// Key-value head `kv` of a sequence, and the heads that read it. Adds their part to `shared`.
  void run(const GradientTask& task, const Sequence& s, std::int64_t kv, SharedGradients& shared);
  /// The gradients by q alone, of so many rows of each head (sampled_rows.h): all of them where it has no more.
  void run_rows(const GradientTask& task, const Sequence& s, std::int64_t kv, const std::vector<std::int64_t>& counts);

  [[nodiscard]] std::int64_t first_head() const { return first_head_; }
  [[nodiscard]] std::int64_t heads() const { return heads_; }
  [[nodiscard]] const Head& head() const { return head_; }
  /// Those of the group's head number h of which the gradient by q is known, ascending.
  [[nodiscard]] const std::vector<std::int64_t>& rows(std::int64_t h) const {
    return taken_[static_cast<std::size_t>(h)];
  }
  /// Are those of k and v?
  [[nodiscard]] bool has_keys() const { return has_keys_; }
  /// The element of dq of row i and column c of the group's head number h, of dk or dv of key j.
  [[nodiscard]] ElementBound query(std::int64_t h, std::int64_t i, std::int64_t c) const;
  [[nodiscard]] ElementBound key(std::int64_t j, std::int64_t c) const;
  [[nodiscard]] ElementBound value(std::int64_t j, std::int64_t c) const;
  /// The probabilistic bound of such an element, where GradientOptions::alarm_probability asks for it.
  [[nodiscard]] ElementAlarm alarm(Gradient of, std::int64_t row, std::int64_t h, std::int64_t c);
  /// The sizes of the terms of such an element, summed up.
  [[nodiscard]] double size(Gradient of, std::int64_t row, std::int64_t h, std::int64_t c) const;
  /// Is something added to a score; is a key hidden?
  [[nodiscard]] bool adds() const { return adds_; }
  [[nodiscard]] bool hides() const { return hides_; }

 private:
  void start(const GradientTask& task, const Sequence& s, std::int64_t kv);
  void load_head(const GradientTask& task, const Sequence& s, std::int64_t h);
  void count_rows(const GradientTask& task, const Sequence& s);
  void take_head(const GradientTask& task, const Sequence& s, std::int64_t h, SharedGradients& shared);
  [[nodiscard]] Excuse take_row(const GradientTask& task, const Sequence& s, std::int64_t h, std::int64_t i,
                                SharedGradients& shared);
  [[nodiscard]] Excuse take_terms(const GradientTask& task, const double* out, std::int64_t at);
  void take_weights(const GradientTask& task, double given_lse);
  void grow();
  void pack_values();
  void take_products();
  void take_slopes();
  [[nodiscard]] bool take_errors(const GradientTask& task, const KeyTerms& terms, const double* out, double given_lse,
                                 double of_lse);
  [[nodiscard]] bool unseen_values_harmless(const double* out) const;
  void add_to_query(std::int64_t slot);
  /// Per key of row_, what its weight errs by here as part of the mean key.
  [[nodiscard]] double mean_error(std::int64_t j) const;
  /// What D's error makes of the mean key in column c of a query's gradient, from above.
  [[nodiscard]] double of_mean_key(std::int64_t c) const;
  void add_to_keys();
  void count_equal_rows(const GradientTask& task, const Sequence& s);
  void take_shares(std::int64_t slot, const double* out);
  void alarm_row(std::int64_t slot);
  void cover_shared(SharedGradients& shared, std::int64_t h) const;
  void excuse_shared(SharedGradients& shared, std::int64_t h, std::int64_t i, Excuse why) const;
  void add_to_mask(ArgumentSums& mask, std::int64_t i);
  void add_to_sink(ArgumentSums& sinks, std::int64_t h);
  [[nodiscard]] ElementSums of_kernel(const GradientSumsHere& sums, std::size_t e, bool grouped, double error,
                                      double constant) const;
  [[nodiscard]] ElementBound finished(const GradientSumsHere& sums, std::int64_t row, std::int64_t c, double scale,
                                      double phi, bool grouped, double constant, Excuse excuse) const;

  std::int64_t first_head_ = 0, heads_ = 0;
  bool adds_ = false, hides_ = false, has_keys_ = true;
  std::vector<std::vector<std::int64_t>> taken_;  ///< rows of each head
  Head head_;
  Row row_;
  Profile profile_;
  BackwardProfile kernel_, here_;
  BoundScratch scratch_;
  RowSizes sizes_, sizes_here_;
  RowErrors errors_, errors_here_;
  RowErrors uncapped_, uncapped_here_;  ///< of a mask, which a cap does not stand before
  Excuse group_ = Excuse::none;         ///< why nothing is said of dk and dv
  std::vector<Excuse> rows_;            ///< of dq
  std::vector<double> row_constant_;
  GradientSumsHere of_q_, of_k_, of_v_, head_k_, head_v_;
  KeptRows kept_rows_;
  HereShare here_k_, here_v_;              ///< of all rows of the head so far
  double most_q_ = 0, most_g_ = 0;         ///< the largest |q_ic| and |g_ic| of them
  std::vector<double> terms_;              ///< of row_, as a KeptRow has them for its own sums
  std::vector<double> parts_k_, parts_v_;  ///< over heads, of |their sums| and their errors
  std::vector<double> constant_k_, constant_v_;
  std::vector<double> rows_of_key_;  ///< how many rows see a key
  std::vector<double> sums_of_key_;  ///< what a kernel's sums over these lose
  // Of a row: its gradients by the output, and per key what RowSizes points at.
  std::vector<double> g_, weight_, la_, most_weight_, exponent_, grown_, of_weight_, most_of_weight_, size_, apart_,
      v1_, E_;
  std::vector<double> delta_scores_;
  std::vector<double> slope_, most_slope_, of_slope_, of_slope_here_;  ///< of a cap: 1 - y^2, from above, its errors
  std::vector<unsigned char> kept_;
  std::vector<double> values_, dots_, sizes_of_all_;  ///< V in panels; products with it and their sizes, of every key
  double delta_ = 0;                                  ///< D - c
  double delta_here_ = 0;                             ///< its error here
  double of_sink_ = 0;                                ///< error of the sink's exponent, in a kernel
  double common_here_ = 0;                            ///< error of the sum of weights, as an exponent
  std::int64_t keys_ = 0;                             ///< visible ones
  std::vector<double> mean_key_;
  // Of the alarm.
  double alarm_probability_ = 0;
  bool alarms_keys_ = false;  ///< of dk and dv, too
  RowShares shares_;
  RandomSum random_sum_;
  std::vector<double> alarm_of_q_;              ///< [slot][dk], errors before the scale
  std::vector<double> all_q_, all_g_;           ///< [dk][slot], [dv][slot], as an element of dk or dv sums over them
  std::vector<unsigned char> same_q_, same_g_;  ///< slots that share theirs with another
  /// Of dS or P the value, its size, and what leaves and enters its error.
  struct Term {
    double value = 0, size = 0, drop = 0, root = 0;
  };
  std::vector<Term> terms_of_k_, terms_of_v_;  ///< [key][slot]
};

}  // namespace attest::detail
