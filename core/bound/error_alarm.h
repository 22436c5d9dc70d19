// The probabilistic bound: how far a kernel of the declared arithmetic strays from the exact answer but once in 1/p
// elements, if the rounding errors of its sums behave like independent random numbers of mean 0 (error-bounds.md 1.4).
// An alarm, never a verdict: what lies beyond it deserves a look; only the proved bound (error_bound.h) condemns.
//
// Derivation. All other roundings (weights, stored scores, q*scale, constants, exponents, exp, normalisation, output)
// and underflow stay as the proved bound has them: they are the same for many keys, or follow from few bits.
// - A sum errs by exactly sum_nodes d_node y_node, y_node what its tree holds there before rounding. With d mean-
//   independent and |d| <= u that is a martingale of steps at most u(1+g) sum of |leaves|, g the proved growth, and in
//   a tree of depth h the squares of those sums add up to at most h (sum of |leaves|)^2, each leaf standing in at most
//   h of them. The errors of all scores, taken first, and of both sums over keys, taken next, are one martingale, to
//   which Azuma's inequality applies with p/2.
// - HM: a product of m factors 1 + d is off 1 by at most exp(L sqrt(m) u + m u^2/(1-u)) - 1, except with probability
//   2 exp(-L^2 (1-u)^2 / 2) (Higham and Mary 2019). A row is n(n_s + 2) such products: n_s for each score, one each
//   for both sums over keys. L is chosen so that all of them hold with p/2.
// - Additions whose errors have a reason to lean to one side count in full in both, min(u sum, |summand|) each: of
//   summands below 8u of the sum (most of which the rounding swallows, in q.k as over keys), and of crowded keys, whose
//   weights lie so close together that their last bits, at the scale of the sum's, are the same.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/problem/problem.h"

namespace attest {

/// p: how probable it is that a correct kernel exceeds the bound of an element.
inline constexpr double alarm_probability = 1e-9;

struct ElementAlarm {
  double hm = 0;       ///< by Higham and Mary's constants alone; at most the proved bound
  double allowed = 0;  ///< at most hm; inf where nothing is proved either (excused)
  /// false: the assumption is known to fail and `allowed` is the proved bound. Sums are truncated, or two visible keys
  /// of some weight share their weight, or q.k up to sign and a power of two: equal summands and equal roundings.
  bool covered = false;
};

/// Of every element of out of a valid attention case, row-major. `ignores_dead_values` as in attention_bounds.
[[nodiscard]] std::vector<ElementAlarm> alarm_bounds(const Problem& c, const Arithmetic& arithmetic,
                                                     double probability = alarm_probability,
                                                     bool ignores_dead_values = false);

}  // namespace attest
