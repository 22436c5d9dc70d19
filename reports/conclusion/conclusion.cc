#include "reports/conclusion/conclusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/names.h"

namespace attest {
namespace {

/// Under which the shapes that a kernel was hardly judged on are counted: of no property.
Subject subject_of_shapes(const KernelSummary& kernel) {
  return {"", kernel.id, kernel.dtype};
}

Counted counted(const Subject& subject, const PropertySummary& property, bool interrupted,
                const Expectations& expectations) {
  switch (property.verdict) {
    case Outcome::held:
      return Counted::held;
    case Outcome::violated:
      return expectations.known && expectations.known->expected.contains(subject) ? Counted::expected
                                                                                  : Counted::violated;
    case Outcome::inconclusive:
      if (interrupted && property.tally.cases() == 0) return Counted::unreached;
      return expectations.inconclusive_held ? Counted::held : Counted::undecided;
    case Outcome::skipped:
    case Outcome::excused:
      break;
  }
  return Counted::skipped;
}

/// Whether any subject with a case was more than skipped. One without a case was not checked, whatever it is called,
/// and neither was one all of whose cases were refused.
bool checked_any(const Summary& summary, const Conclusion& conclusion) {
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties)
      if (property.tally.cases() > 0 && verdict_of(property.tally) != Outcome::skipped &&
          conclusion.of(kernel, property) != Counted::skipped)
        return true;
  return false;
}

int status_of_verdicts(const Conclusion& conclusion, bool checked, bool interrupted) {
  const auto any = [&](Counted what) {
    return std::ranges::any_of(conclusion.subjects, [&](const auto& one) { return one.second == what; });
  };
  if (any(Counted::violated)) return 1;
  if (!checked) return interrupted ? 130 : 3;
  if (any(Counted::undecided)) return 4;
  return interrupted ? 130 : 0;
}

/// A kernel that was judged by no property, a property that no kernel was judged by: beside others that held they would
/// pass unseen.
std::vector<std::string> passed_over(const Summary& summary) {
  std::vector<std::string> lines;
  for (const Asked& asked : summary.asked) {
    const bool kernels = asked.option == "--kernel";
    const auto answers = [&](const KernelSummary& kernel) {
      return std::ranges::any_of(kernel.properties, [&](const PropertySummary& property) {
        return property.tally.judged() > 0 && property.verdict != Outcome::skipped &&
               asked.answers.contains(kernels ? kernel.id : property.name);
      });
    };
    if (std::ranges::any_of(summary.kernels, answers)) continue;
    lines.push_back(fmt::format("{} {}: judged {}, so that the run says nothing of it", asked.option,
                                in_quotes(asked.name), kernels ? "in no case" : "on no kernel"));
  }
  return lines;
}

std::vector<RunFault> faults_of(const Summary& summary, bool checked) {
  std::vector<RunFault> faults;
  if (summary.interrupted) faults.push_back({"interrupted", "the run was interrupted"});
  if (summary.unfinished) faults.push_back({"unfinished", "the run has not come to its end"});
  if (!checked && !summary.interrupted) faults.push_back({"nothing", "nothing was checked"});
  return faults;
}

std::vector<std::string> worse_lines(const std::optional<Comparison>& changes) {
  std::vector<std::string> lines;
  for (const Difference& one : changes ? changes->differences : std::vector<Difference>())
    if (one.direction == Direction::worse) lines.push_back("WORSE " + line_of(one));
  return lines;
}

}  // namespace

Counted Conclusion::of(const KernelSummary& kernel, const PropertySummary& property) const {
  return subjects.at({property.name, kernel.id, kernel.dtype});
}

std::optional<Counted> Conclusion::of_shapes(const KernelSummary& kernel) const {
  const auto found = subjects.find(subject_of_shapes(kernel));
  return found == subjects.end() ? std::nullopt : std::optional(found->second);
}

Conclusion conclude(const Summary& summary, Expectations expectations) {
  Conclusion result;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      const Subject subject{property.name, kernel.id, kernel.dtype};
      result.subjects[subject] = counted(subject, property, summary.interrupted, expectations);
    }
    if (!kernel.left_out.empty())
      result.subjects[subject_of_shapes(kernel)] = expectations.inconclusive_held ? Counted::held : Counted::undecided;
  }
  result.coverage = coverage_text(summary);
  result.quick_look = quick_look(summary);
  const bool checked = checked_any(summary, result);
  result.faults = faults_of(summary, checked);
  result.exit_status = status_of_verdicts(result, checked, summary.interrupted);
  result.sign = summary.verdict;
  const std::vector<std::string> unexpected =
      expectations.known ? expectations.known->problems : std::vector<std::string>();
  const std::vector<std::string> worsened = worse_lines(expectations.changes);
  // Where nothing at all could be checked, or something was violated, that is what is to be said.
  if (result.exit_status == 0 && unexpected.empty()) result.passed_over = passed_over(summary);
  const bool passed = !result.passed_over.empty() && !expectations.inconclusive_held;
  if (passed) {
    result.exit_status = 4;
    result.sign = worse(result.sign, Outcome::inconclusive);
  }
  result.headline = result.exit_status == 3 ? nothing_tested : name_of(result.sign);
  if (result.sign == Outcome::violated && result.exit_status != 1 && unexpected.empty())
    result.headline += ", as is known";
  if (!worsened.empty())
    result.headline += ", and worse than the baseline";
  else if (!unexpected.empty() && result.sign != Outcome::violated)
    result.headline += ", and a known violation is gone";
  if (!worsened.empty() || !unexpected.empty()) {
    result.exit_status = 1;
    result.sign = Outcome::violated;
  }
  // Nothing looks less like a pass than what was not tested.
  if (result.exit_status == 3) result.sign = Outcome::violated;
  for (const auto& lines : {unexpected, worsened, passed ? result.passed_over : std::vector<std::string>()})
    result.problems.insert(result.problems.end(), lines.begin(), lines.end());
  result.known = std::move(expectations.known);
  result.changes = std::move(expectations.changes);
  return result;
}

}  // namespace attest
