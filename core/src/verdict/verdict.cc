#include "attest/verdict.h"

namespace attest {

std::string_view name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::held:
      return "held";
    case Outcome::violated:
      return "violated";
    case Outcome::skipped:
      return "skipped";
    case Outcome::excused:
      return "excused";
    case Outcome::inconclusive:
      return "inconclusive";
  }
  return "?";
}

}  // namespace attest
