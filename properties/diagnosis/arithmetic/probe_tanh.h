// Probe of the tanh of a kernel that caps its scores.
#pragma once

#include "properties/diagnosis/arithmetic/arithmetic_questions.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"
#include "properties/diagnosis/arithmetic/probe_weights.h"

namespace attest {

/// The error of tanh, as the weights of capped scores show it, whose own errors hide what is smaller. Of a kernel whose
/// manifest lists softcaps and whose weights are known (ask_weights); of another it asks nothing. What is declared
/// stays as it was where the answers do not contradict it.
void ask_tanh(ArithmeticQuestions& ask, ProbedArithmetic& probed, const SeenWeights& seen);

}  // namespace attest
