// Probes of the sums of a kernel, of q.k and over keys.
#pragma once

#include "properties/diagnosis/arithmetic/arithmetic_questions.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

namespace attest {

/// Formats of both sums, how they round, and their order.
void ask_sums(ArithmeticQuestions& ask, ProbedArithmetic& probed);

/// The widest format of at most so many bits; f16 below any.
[[nodiscard]] DType format_of_bits(int bits);
/// The one with the larger unit roundoff.
[[nodiscard]] DType coarser(DType a, DType b);

}  // namespace attest
