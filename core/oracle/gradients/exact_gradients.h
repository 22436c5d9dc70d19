// The gradients of the heads that share one head of k and v as balls: the definition on Arb's arithmetic.
#pragma once

#include <vector>

#include "core/definition/gradients.h"
#include "core/oracle/gradients/group_pass.h"
#include "core/scalars/arb.h"

namespace attest::detail {

/// Pages of the heads in order; those of k and v are in the first. At least `bits` of precision.
[[nodiscard]] std::vector<Gradients<Arb>> exact_gradients(const GradientTask& task, const Sequence& s, std::int64_t kv,
                                                          long bits);

/// Those by arguments that heads and sequences may share, row-major; empty where the problem has no such argument.
struct ExactSharedGradients {
  std::vector<Arb> mask, sink;
};
[[nodiscard]] ExactSharedGradients exact_shared_gradients(const GradientTask& task, long bits);

}  // namespace attest::detail
