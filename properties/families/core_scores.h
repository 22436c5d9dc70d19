// Laws about the core's score matrices, X(W_Q W_K^T)X^T, which no kernel shows.
#pragma once

#include "core/kernels/core_functions.h"
#include "core/measure/verdict.h"

namespace attest {

/// self.bilinear-score: score(i,j) = x_i^T (W_Q W_K^T) x_j / sqrt(dh), without biases. Self-attention.
[[nodiscard]] Verdict bilinear_score(const CoreFunctions& core, const Case& c);
/// self.scores-symmetric, a false statement: held with a counterexample. Self-attention of two tokens and two columns
/// or more, with separate W_q and W_k.
[[nodiscard]] Verdict scores_symmetric(const CoreFunctions& core, const Case& c);

}  // namespace attest
