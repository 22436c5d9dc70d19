// What of a wrong case may be taken away so that the kernel answers it right: where its mistake begins.
#pragma once

#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Of a case of attention that the kernel answers wrong, cases beside it that it answers right, in words that follow
/// "right with": "N=64", "the wrong head alone", "no mask". Each is the case but for one thing: a batch entry, a head
/// or a query alone (those of the worst element), one extent less by one, no mask, no causal form, no window, no
/// chunks, no softcap, no dropout, or a dropout_p of 0, no slopes, no factors, or none of blocks, the scale 1/sqrt(dk).
/// Right is what the exact answer and the proved bound of that case say, of the output and of the log-sum-exp where the
/// kernel has one. Empty where the kernel answers the case itself right, late or in another shape; of a call that fails
/// or ends the process nothing is tried alone. What its manifest rules out is not asked. The kernel is called some ten
/// times.
[[nodiscard]] std::vector<std::string> right_nearby(Kernel& kernel, const Case& wrong);

}  // namespace attest
