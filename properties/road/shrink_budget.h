// How much a finding may cost to be made smaller.
#pragma once

#include "core/measure/verdict.h"

namespace attest {

/// Whether the call brought no output that could be judged: it failed, refused a valid case, died, hung, or answered
/// with another shape or dtype.
[[nodiscard]] inline bool is_without_answer(Violation violation) {
  switch (violation) {
    case Violation::rejected:
    case Violation::failed:
    case Violation::died:
    case Violation::timed_out:
    case Violation::malformed:
      return true;
    default:
      return false;
  }
}

/// Cases that shrinking may check. A hang costs a whole time limit each, a death the start of a process; where there is
/// no answer, numbers seldom matter, and the smallest case of all is tried first.
[[nodiscard]] inline int shrink_budget(Violation violation) {
  switch (violation) {
    case Violation::timed_out:
      return 0;
    case Violation::died:
    case Violation::malformed:
      return 24;
    case Violation::rejected:
    case Violation::failed:
      return 100;
    default:
      return 1000;
  }
}

}  // namespace attest
