// Probes of the scores and weights of a kernel: what they are rounded to, exp, and exp2.
#pragma once

#include "properties/diagnosis/arithmetic/arithmetic_questions.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

namespace attest {

/// What is known of a kernel's weights, as far as other questions stand on it.
struct SeenWeights {
  bool answered = false;    ///< weights could be read
  double unit = 0;          ///< unit roundoff of the scores
  double noise = 0;         ///< of weights as they are read
  long double error = 0;    ///< largest relative one of weights of small distances
  bool rounded = false;     ///< they are rounded to a narrower format
  bool ambiguous = false;   ///< or exp errs as much
  bool finite = true;       ///< scores near 1000 give numbers
  bool normalised = false;  ///< they are divided by their sum first
};

/// Formats of scores, weights and of q times scale, the error of exp, exp2, and what the denominator sums. Of a kernel
/// whose sums are known (ask_sums).
[[nodiscard]] SeenWeights ask_weights(ArithmeticQuestions& ask, ProbedArithmetic& probed);

/// How far below the largest score weights can be read: those of small numbers need values as large.
[[nodiscard]] double readable_distance(const ArithmeticQuestions& ask, const Arithmetic& a);

}  // namespace attest
