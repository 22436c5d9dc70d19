// What 001's module returns beside its output: the weights of each head.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// multihead.returned-weights: they are the softmax rows of the scores, each within its bound of the exact weight and 0
/// where the key is hidden, and [alpha_1 V_1 | … | alpha_h V_h] W_o + b_o is the output. Of a case without an appended
/// key. Skipped for a kernel that returns none.
[[nodiscard]] Verdict returned_weights_law(Kernel& kernel, const Case& c);

}  // namespace attest
