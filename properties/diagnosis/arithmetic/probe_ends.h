// Probes of what a kernel makes of numbers below the smallest normal one, and of its output as it is stored.
#pragma once

#include "properties/diagnosis/arithmetic/arithmetic_questions.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

namespace attest {

/// Of a kernel whose sums and weights are known (ask_sums, ask_weights): a store that cuts widens what is declared.
void ask_ends(ArithmeticQuestions& ask, ProbedArithmetic& probed);

}  // namespace attest
