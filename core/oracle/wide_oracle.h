// The oracle for scalars wider than every dtype: their own numbers against balls of their own precision, and the bound
// that is proved of the definition on such a scalar (error-bounds.md, 1.8).
#pragma once

#include <vector>

#include "core/bound/error_bound.h"
#include "core/kernel/values.h"
#include "core/measure/verdict.h"
#include "core/problem/problem.h"

namespace attest {

/// What the proof says about one element of an output of the core on a wide scalar.
struct WideBound {
  double value = 0, certificate = 0;  ///< the exact answer, to within `certificate`
  long double allowed = 0;            ///< inf: there is no bound
  long double hull = 0;               ///< how far the element may leave the range of the visible values; inf: unknown
  /// none; vacuous: the bound accepts every mean of the visible values because the scores are not known; else why
  /// nothing is said of the element. Whatever it is but fully_masked, not_finite and overflow, a number is required.
  Excuse excuse = Excuse::none;
};
/// Of every element of a valid case of either operation, in the order of its output. Hidden keys and values do not
/// matter, whatever they hold: the core does not look at them.
[[nodiscard]] std::vector<WideBound> wide_bounds(const Problem& c, const WideRounding& rounding);

/// Judges an output of the core, element by element: held where its error is certainly within the bound, violated where
/// it certainly is not, an interval where it does not meet the ball of the exact answer. Where the balls are too wide
/// to tell, they are computed with twice as many bits, three times at most: then the element is inconclusive. Otherwise
/// as judge_attention; errors below the doubles are 0 in the verdict, and its utilisation and its reason are what they
/// are.
[[nodiscard]] Verdict judge_wide(const Problem& c, const Enclosures& out);

}  // namespace attest
