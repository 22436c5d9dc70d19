// Log-sum-exps of the keys alone as those that the contract means, which have the sink.
#pragma once

#include <memory>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// The kernel; where its manifest says of sinks "lse": "without", with ln(e^lse + e^sink) in the place of each lse that
/// it returns for a problem with sinks. The sink adds no error to an lse, and the two logarithms none that counts
/// beside its bound: they are taken in long double, and what comes of them is rounded to double once.
[[nodiscard]] std::unique_ptr<Kernel> with_sinks_in_lse(std::unique_ptr<Kernel> kernel);

}  // namespace attest
