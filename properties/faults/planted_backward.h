// Planted backward passes: the loop of the built-in ones (core/kernels/backward/tiled_backward.h), one step of which is
// wrong.
#pragma once

#include <attest/kernel.h>

#include <string>

#include "core/kernels/backward/tiled_backward.h"
#include "properties/faults/make.h"

namespace attest {

/// Runs the form with the slip on a problem in f64, f32, f16 or bf16; ATTEST_UNSUPPORTED for another dtype and for a
/// variant that such backward passes lack.
[[nodiscard]] int run_planted_backward(const BackwardForm& form, Slip slip, const attest_backward_problem& problem,
                                       attest_gradients& gradients, std::string& message);

}  // namespace attest
