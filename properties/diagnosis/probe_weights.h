// Probes of the scores and weights of a kernel: what they are rounded to, exp, the maximum and its blocks.
#pragma once

#include "properties/diagnosis/arithmetic_questions.h"
#include "properties/diagnosis/probe_arithmetic.h"

namespace attest {

/// Formats of scores, weights and of q times scale, the error of exp, exp2, the reference point and the blocks. Of a
/// kernel whose sums are known (ask_sums).
void ask_weights(ArithmeticQuestions& ask, ProbedArithmetic& probed);

}  // namespace attest
