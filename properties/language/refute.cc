#include "properties/language/refute.h"

#include <fmt/format.h>

#include <cmath>

#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

/// Are the exact values of some element further apart than twice what both sides are allowed? A right kernel then
/// answers two numbers that differ by certainly more than both bounds: no less than that distance without one of them.
bool must_differ(const Result& left, const Result& right) {
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    const AllowedError a = left.run().bound(left.origin(e)), b = right.run().bound(right.origin(e));
    const auto judged = [](const AllowedError& x) { return x.excuse == Excuse::none || x.excuse == Excuse::vacuous; };
    if (!judged(a) || !judged(b)) continue;
    // 2^-17 for what agree() leaves to the bounds' own rounding.
    const double apart = std::fabs(a.value - b.value) - a.certificate - b.certificate;
    if (apart > (2 + 0x1p-17) * (a.allowed + b.allowed)) return true;
  }
  return false;
}

}  // namespace

Verdict refuted(int budget, const std::function<Attempt(int)>& attempt) {
  int obeyed = 0;
  Verdict excused{.outcome = Outcome::excused, .reason = "the bounds of every attempt leave room for both sides"};
  Verdict faulty;
  for (int n = 0; n < budget; ++n) {
    const Attempt a = attempt(n);
    const Verdict sides = agree({a.left, a.right}, Match::bound);
    if (sides.outcome == Outcome::violated && std::isfinite(sides.error)) {
      Verdict found;
      found.reason = fmt::format("counterexample: {}: {}", a.problem, sides.reason);
      return found;
    }
    // An infinite error is NaN or Inf on one side: a fault, no counterexample.
    if (sides.outcome == Outcome::violated) faulty = sides;
    if (sides.outcome == Outcome::excused) excused.reason = sides.reason;
    if (sides.outcome != Outcome::held) continue;
    // Formulas have no bounds: what is identical obeys.
    if (a.left.run().out().is<Expressions>() || must_differ(a.left, a.right)) ++obeyed;
  }
  if (obeyed > 0) {
    return violated(Violation::bound, fmt::format("no counterexample in {} attempts, and both sides agree in {} that "
                                                  "are one: the kernel obeys a false statement",
                                                  budget, obeyed));
  }
  return faulty.outcome == Outcome::violated ? faulty : excused;
}

}  // namespace attest
