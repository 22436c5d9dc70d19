// The stage that a violation comes from: scores, weights, sums or output, found by feeding the kernel cases in which
// all stages before one are exact.
#pragma once

#include <optional>
#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/error_statistics.h"

namespace attest {

struct StageFound {
  /// scores (q.k, scale, cap, bias), weights (exponentials, their rescaling and rounding), sums (over keys, of weights
  /// and of weights times values) or output (normalisation and rounding); nothing: not determined.
  std::optional<Stage> stage;
  std::string evidence;  ///< one line: which cases were fed and how they came out, or why nothing is determined
};

/// The stage at which the output of an attention case goes wrong. The worst row is taken alone, with the keys that it
/// sees; while it is still wrong, these are put to the kernel in turn:
/// - equal scores and values whose sums are exact, where the sums are wider than the output: only the output is
///   rounded;
/// - the row with q = 0 and no bias, and so many keys of such a row, with values of every bit, that no 16-bit format
///   counts them: scores are 0 and exponentials 1, what is wrong is a sum;
/// - a single column of q and k, 1 and a score, and scale 1: the scores are exact. With one-hot values the output is
///   the weights. Those of simple scores s, if they are wrong, are exp(c s) of one c, so that the scores are; or wrong
///   by one common factor, so that their sum is; or else they themselves are. Then the difference of two that are
///   nearly equal, those of the row's own scores; and if they are right and the row's own values still come out wrong
///   it is the weights too, for sums of exact ones came out right: they are rounded as the output would be;
/// - if all are right by far, the scores are left. Of a row with a softcap, exact products and the cap are put to the
///   kernel then, so that the evidence can say that the cap is at fault.
/// Of a row that drops weights it is asked first whether it is wrong without dropout, too, and then that row is looked
/// at: none of these stages is dropout's, and of a kernel that is wrong about that alone none is named. What slopes add
/// to the scores of a row is a mask of the row that stands alone, and its factors have multiplied q, k and v there, so
/// that of a kernel that is wrong about slopes or factors alone none is named either.
/// Every judgement is by the proved bound of the fed case itself. A row that is right when it stands alone is wrong
/// because of masks, other rows or heads, lengths or memory: nothing is determined then, nor where the manifest rules
/// out what would have to be fed, nor of the weights of a row that sees more than 2048 keys.
[[nodiscard]] StageFound stage_of(Kernel& kernel, const Case& c);

}  // namespace attest
