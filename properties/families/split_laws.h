// Laws of log-sum-exps that more than one family states.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// Attention over the keys is the merge of that over up to three blocks of them, weighted by e^lse; a sink is in
/// exactly one of these, of the case's own choice.
[[nodiscard]] Verdict split_merge(Kernel& kernel, const Case& c);

/// In a proof: e^lse_i is the sum of e^s_ij over the visible keys, and of e^sink. Each term is positive and at most the
/// largest, which is what the two bounds of a log-sum-exp say.
[[nodiscard]] Verdict formally_in_lse_range(Kernel& kernel, const Case& c);

}  // namespace attest
