// The backward passes of built-in kernels: two families, each in every format.
#pragma once

#include <attest/kernel.h>

#include <string>

#include "core/kernel/manifest.h"

namespace attest {

/// What their backward passes do not have.
[[nodiscard]] inline std::vector<Feature> without_gradients() {
  return {Feature::lengths, Feature::packed,  Feature::left_pad, Feature::sink,
          Feature::softcap, Feature::dropout, Feature::alibi};
}

/// One family.
struct BuiltinBackward {
  int (*run)(const attest_backward_problem& problem, attest_gradients& gradients, std::string& message) = nullptr;
  BackwardTerms terms{};
  BackwardArithmetic (*arithmetic)(DType) = nullptr;
};

/// Weights again from the log-sum-exp and D from the output; P and dS are rounded to the format before they multiply,
/// each head's dk and dv before they are added up over its group (Dao 2023, algorithm 2 for one row).
[[nodiscard]] BuiltinBackward backward_from_lse();
/// The forward pass's weights once more, normalised and rounded, D from them, and dP and dS as written to memory.
[[nodiscard]] BuiltinBackward backward_from_weights();

}  // namespace attest
