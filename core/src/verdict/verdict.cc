#include "attest/verdict.h"

#include <array>
#include <cstddef>

namespace attest {
namespace {

constexpr std::array<std::string_view, 11> violation_names{
    "none", "bound", "non-finite", "lse", "bits", "shape", "rejected", "failed", "died", "timed-out", "malformed"};

}  // namespace

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

std::string_view name_of(Violation violation) noexcept {
  return violation_names[static_cast<std::size_t>(violation)];
}

std::optional<Violation> violation_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < violation_names.size(); ++i) {
    if (violation_names[i] == name) return static_cast<Violation>(i);
  }
  return std::nullopt;
}

}  // namespace attest
