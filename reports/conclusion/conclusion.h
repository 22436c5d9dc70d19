// Conclusion: what a run comes to. Its exit status, and what the terminal, JUnit, SARIF, Markdown and the page say of
// the whole, are decided here and nowhere else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/conclusion/compare.h"
#include "reports/conclusion/known.h"
#include "reports/results/coverage.h"
#include "reports/results/summary.h"

namespace attest {

/// Heads all that is said where no case was judged: exit status 3.
inline constexpr std::string_view nothing_tested = "NOTHING WAS TESTED";

/// What a run is held against beside the laws.
struct Expectations {
  bool inconclusive_held = false;          ///< --inconclusive held
  std::optional<KnownComparison> known{};  ///< what the file of known findings makes of the run
  std::optional<Comparison> changes{};     ///< the comparison with a baseline
};

/// What the verdict of a subject counts as.
enum class Counted {
  held,  ///< or undecided, where that counts as held
  violated,
  expected,  ///< violated, as the file of known findings has it
  undecided,
  unreached,  ///< an interruption left it without a case
  skipped
};

/// Why a run is not whole.
struct RunFault {
  std::string_view type;   ///< "interrupted", "unfinished" or "nothing"
  std::string_view words;  ///< "the run was interrupted"
};

struct Conclusion {
  /// Of a check (kernel-interface.md, section 4): 1 violated, or another problem; 3 nothing could be checked; 4
  /// inconclusive, or passed over; 130 interrupted; 0 held. A subject that an interruption left without a case counts
  /// for neither 3 nor 4.
  int exit_status = 0;
  Outcome sign = Outcome::skipped;  ///< that the headline stands under
  std::string headline;             ///< "held", "held, and worse than the baseline"; nothing_tested
  std::map<Subject, Counted> subjects;
  std::string coverage;    ///< how much of what concerns its kernels was judged, as coverage_text says
  std::string quick_look;  ///< as coverage.h's
  std::vector<RunFault> faults;
  /// What was asked for by name and judged in no case, a line each, beside a run that else held.
  std::vector<std::string> passed_over;
  /// What makes the exit status another than the verdicts do, a line each.
  std::vector<std::string> problems;
  std::optional<KnownComparison> known;
  std::optional<Comparison> changes;

  [[nodiscard]] Counted of(const KernelSummary& kernel, const PropertySummary& property) const;
  /// What the shapes count as that the kernel was hardly judged on; nothing where it was not so.
  [[nodiscard]] std::optional<Counted> of_shapes(const KernelSummary& kernel) const;
};

[[nodiscard]] Conclusion conclude(const Summary& summary, Expectations expectations = {});

}  // namespace attest
