// Verdict: what was found out about one case, and the statistics that merge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attest {

/// Worst first when verdicts are combined: violated, inconclusive, held, skipped (excused cases are counted apart).
enum class Outcome {
  held,
  violated,
  skipped,      ///< the manifest rules the case out, or the kernel answered `unsupported`
  excused,      ///< outside the domain of definition, or an infinite or vacuous bound; never counted as held
  inconclusive  ///< the oracle could not decide
};
[[nodiscard]] std::string_view name_of(Outcome) noexcept;

/// Verdict of one property on one case.
struct Verdict {
  Outcome outcome = Outcome::held;
  double utilisation = 0.0;   ///< worst error / allowed over the judged elements; 0 when both are 0; inf for NaN found
  double error = 0.0;         ///< absolute error at that element, an upper end of its enclosure
  double allowed = 0.0;       ///< the bound there
  std::int64_t element = -1;  ///< flat row-major index into out of that element; -1: none
  int level = 0;              ///< deepest oracle level used: 0 none, 1 double, 2 double-double, 3 balls
  std::string reason{};       ///< one line for anything but held: index, found, interval that would have been accepted
};

}  // namespace attest
