// Which claims a kernel keeps, whether it makes them or not.
#pragma once

#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"

namespace attest {

struct ProbedClaim {
  Claim claim;
  Outcome verdict = Outcome::inconclusive;  ///< held, violated, or inconclusive: too few cases could tell
  std::string words;                        ///< "held in 200 cases", or the first case that breaks it
};

/// Every claim, by a few hundred cases of the properties that hold bits to it. `manifest`: what the kernel is known to
/// do, its own claims aside.
[[nodiscard]] std::vector<ProbedClaim> probe_claims(Kernel& kernel, const Manifest& manifest, DType dtype);

}  // namespace attest
