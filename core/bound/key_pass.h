// The steps of key_terms, for whoever knows the keys of a row in another form than its arrays (prefix_bound.h).
#pragma once

#include <cstdint>

#include "core/bound/loops/key_loops.h"
#include "core/bound/row_bound.h"

namespace attest::detail {

/// A row on its way through the sources of error, each of which leaves here what the next ones need.
struct KeyPass {
  KeyPass(const Profile& profile, const RowKeys& of, BoundScratch& w);

  const Profile& p;
  const RowKeys& row;
  std::int64_t n;
  double count;      ///< n
  double log_count;  ///< ln n + 1, and T more: by so much the logarithm of a sum may be from 0 (C44)
  KeyArrays keys;
  double *kap, *of_tanh;  ///< BoundScratch's
  KeyConstants c;
  ScoreRange range;
  ErrorRange most;
  double z = 0;  ///< log sum exp(la - E), where some E of a key that carries weight is not small; else 0

 private:
  void take_slopes(BoundScratch& w);
};

/// a and tm of every key, and the range of the scores with them. Constants act on all keys alike, so only their effect
/// relative to a common shift counts (P1): any common reference serves. `centre`: one of the scores, and of the part of
/// them that is scaled; nullptr: the weighted means, which are the best.
void find_score_errors(KeyPass& x, const double* centre);
/// What multiplies the parts of E, into x.c.
void set_exponent_constants(KeyPass& x);

// From x.range, x.most and x.c alone.
/// What no weight exceeds, of the keys that carry weight and of those that do not.
void find_weight_gains(const KeyPass& x, KeyTerms& out);
/// The errors of the sum of weights; `least_weights` is sum min(u_a, pp_j).
void find_denominator(const KeyPass& x, double least_weights, KeyTerms& out);
/// The bound of the log-sum-exp (1.6 with C25), where the sum of the weights errs by e to `delta` by its exponents.
[[nodiscard]] double lse_bound(const KeyPass& x, const KeyTerms& terms, double delta);
/// D1 where no key is large enough to ask whether it vanishes.
[[nodiscard]] bool sizes_stay_in_range(const KeyPass& x);
/// Weights and their sum: D2 for the keys that carry weight (any other vanishes with all its errors, unless
/// vanished_gain leaves the range), D5, and D6 of a kernel without a maximum.
[[nodiscard]] bool weights_stay_in_range(const KeyPass& x, const KeyTerms& terms);
/// D1b: the scale is a normal number in every format it may be kept in, and what it makes of q does not overflow.
[[nodiscard]] bool scale_stays_in_range(const KeyPass& x, const double* q);

}  // namespace attest::detail
