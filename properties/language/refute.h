// Refutations: rows of theorems.md that are false. Such a row holds for a kernel when a counterexample is found.
#pragma once

#include <functional>
#include <string>

#include "core/measure/verdict.h"
#include "properties/language/result.h"

namespace attest {

/// Both sides of the false statement on one problem, and the problem in words.
struct Attempt {
  Result left, right;
  std::string problem;
};

/// Tries attempt(0), attempt(1), … attempt(budget - 1), the smallest first. Held with the first one whose sides differ
/// by certainly more than both bounds, which `reason` shows. Violated where there is none and the sides agree in one
/// whose exact values are so far apart that those of a right kernel cannot, or where NaN or Inf stands for a number
/// that must be finite. Excused otherwise: attempts outside the domain, and bounds that leave room for both sides, say
/// nothing of the statement.
[[nodiscard]] Verdict refuted(int budget, const std::function<Attempt(int)>& attempt);

}  // namespace attest
