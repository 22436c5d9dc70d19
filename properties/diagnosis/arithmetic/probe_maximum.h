// Probes of what a kernel subtracts from its scores: the maximum, how it lags, and after how many keys it may change.
#pragma once

#include "properties/diagnosis/arithmetic/probe_weights.h"

namespace attest {

/// The reference point, the blocks, and whether the maximum is folded into exp2. Of a kernel whose weights are known.
void ask_maximum(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen);

}  // namespace attest
