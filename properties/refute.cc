#include "refute.h"

#include <fmt/format.h>

#include <cmath>

#include "agree.h"
#include "answer.h"

namespace attest {

Verdict refuted(int budget, const std::function<Attempt(int)>& attempt) {
  for (int n = 0; n < budget; ++n) {
    const Attempt a = attempt(n);
    const Verdict sides = agree({a.left, a.right}, Match::bound);
    // An infinite error is NaN or Inf on one side: a fault, no counterexample.
    if (sides.outcome != Outcome::violated || !std::isfinite(sides.error)) continue;
    Verdict found;
    found.reason = fmt::format("counterexample: {}: {}", a.problem, sides.reason);
    return found;
  }
  return violated(Violation::bound,
                  fmt::format("no counterexample in {} attempts: the kernel obeys a false statement", budget));
}

}  // namespace attest
