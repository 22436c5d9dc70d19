// The backward passes of built-in kernels: families of tiles, each in every format.
#pragma once

#include <attest/kernel.h>

#include <string>

#include "core/kernel/manifest.h"
#include "core/kernels/backward/tiled_backward.h"

namespace attest {

/// FlashAttention-2's: weights again from the log-sum-exp, D from the output, dq as atomics add it up, each head's dk
/// and dv rounded before the sum over its group.
[[nodiscard]] constexpr BackwardForm flash_backward(std::int64_t tile) {
  return {.tile = tile, .drawn_order = true, .rounded_heads = true};
}
/// The forward pass's weights once more, normalised and rounded, D from them, and their gradients as written to memory.
[[nodiscard]] constexpr BackwardForm unfused_backward(std::int64_t tile) {
  return {.tile = tile, .weights = WeightsFrom::stored, .delta = DeltaFrom::weights};
}
/// Parts of the keys at once, each with a dq of its own.
[[nodiscard]] constexpr BackwardForm split_backward(std::int64_t tile, std::int64_t splits) {
  return {.tile = tile, .splits = splits};
}
/// Weights from the log-sum-exp, and D from them and not from the output.
[[nodiscard]] constexpr BackwardForm backward_by_weights(std::int64_t tile) {
  return {.tile = tile, .delta = DeltaFrom::weights};
}

/// What a kernel of the form says of itself; and what it declares in a dtype.
[[nodiscard]] BackwardTerms terms_of(const BackwardForm& form);
[[nodiscard]] BackwardArithmetic arithmetic_of(const BackwardForm& form, DType dtype);

/// Does a backward pass of tiles have all variants of the problem? ATTEST_UNSUPPORTED and why, or ATTEST_OK.
[[nodiscard]] int accept_backward(const attest_problem& forward, std::string& message);
/// Runs it on a problem in f64, f32, f16 or bf16; ATTEST_UNSUPPORTED for another dtype and for a variant that it lacks.
[[nodiscard]] int run_backward(const BackwardForm& form, const attest_backward_problem& problem,
                               attest_gradients& gradients, std::string& message);

}  // namespace attest
