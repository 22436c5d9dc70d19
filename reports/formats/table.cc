#include "reports/formats/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "properties/language/skip_reasons.h"
#include "reports/page/print.h"
#include "reports/results/summary_words.h"
#include "reports/run/progress.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// The first lines, and how many more there are: a kernel that fails everywhere must not push the table off the screen.
std::string first_lines(const std::vector<std::string>& lines) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) text += lines[i];
  if (lines.size() > most) text += fmt::format("and {} more lines like these in the report\n", lines.size() - most);
  return text;
}

/// Where a finding, which is shrunk, is farther from its bound than any case of its kernel as it was drawn: that the
/// table's figure is another. Empty where there is none.
std::string drawn_text(const Summary& summary) {
  double table = 0, saved = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.worst() == nullptr) continue;
    const double worst = kernel.worst()->tally.worst_utilisation;
    for (const PropertySummary& property : kernel.properties) {
      for (const FindingRecord& finding : property.findings) {
        const double found = finding.verdict.utilisation;
        if (!property.statistical && found > worst && found > saved) saved = found, table = worst;
      }
    }
  }
  if (saved == 0) return {};
  return fmt::format(
      "worst is of the cases as they were drawn; a finding is shrunk, and what is saved may be worse: {} where the "
      "table has {}\n",
      short_number(saved), short_number(table));
}

/// A line for those properties of a kernel in a dtype, with the reason of the first; none where there are none.
template <class Concerns>
void add_properties(std::vector<std::string>& lines, const KernelSummary& kernel, std::string_view verdict,
                    Concerns concerns) {
  std::set<std::string> names;
  const PropertySummary* first = nullptr;
  for (const PropertySummary& property : kernel.properties) {
    if (!concerns(property)) continue;
    names.insert(property.name);
    if (first == nullptr) first = &property;
  }
  if (first == nullptr) return;
  lines.push_back(fmt::format("{} {} by {} in {}: {}{}\n", verdict, some_of(names), one_line(kernel.name),
                              one_line(kernel.dtype), one_line(first->reason),
                              names.size() > 1 ? fmt::format(" ({})", one_line(first->name)) : ""));
}

/// What was hardly tested of a kernel in a dtype, and what its manifest hardly offers.
void add_hardly_tested(std::vector<std::string>& lines, const KernelSummary& kernel) {
  add_properties(lines, kernel, "inconclusive", [](const PropertySummary& one) { return one.hardly_tested; });
  if (!kernel.left_out.empty())
    lines.push_back(fmt::format("inconclusive {} in {}: {}\n", one_line(kernel.name), one_line(kernel.dtype),
                                one_line(kernel.left_out)));
  add_properties(lines, kernel, "skipped",
                 [](const PropertySummary& one) { return one.verdict == Outcome::skipped && one.tally.judged() > 0; });
}

}  // namespace

std::string table_of(const Summary& summary) {
  Table table{"", columns_of("kernel|dtype|verdict|#judged|#excused|#bitwise|#worst|of")};
  // What is violated first: of many lines the last ones are left to the report.
  std::vector<std::string> notes, undecided;
  for (const KernelSummary& kernel : summary.kernels) {
    const PropertySummary* worst = kernel.worst();
    table.rows.push_back(
        {{cut_short(one_line(kernel.name), 44, "..."), theirs(kernel.dtype), name_of(kernel.verdict), kernel.judged(),
          kernel.excused(),
          kernel.bits_compared() == 0 ? "-" : fmt::format("{} of {}", kernel.bits_satisfied(), kernel.bits_compared()),
          worst == nullptr ? "-" : short_number(worst->tally.worst_utilisation),
          theirs(worst == nullptr ? "" : worst->name)}});
    for (const KernelExplanation& one : kernel.explanations)
      notes.push_back(
          fmt::format("explained {} in {}: {}\n", one_line(kernel.name), one_line(kernel.dtype), one_line(one.text)));
    for (const PropertySummary& property : kernel.properties) {
      if (property.verdict != Outcome::violated && property.verdict != Outcome::inconclusive) continue;
      const std::string count =
          property.tally.violated == 0
              ? ""
              : fmt::format(" in {} of {} judged cases", property.tally.violated, property.tally.judged());
      std::vector<std::string>& lines = property.verdict == Outcome::violated ? notes : undecided;
      if (!property.hardly_tested)
        lines.push_back(fmt::format("{} {} by {} in {}{}: {}\n", name_of(property.verdict), one_line(property.name),
                                    one_line(kernel.name), one_line(kernel.dtype), count, one_line(property.reason)));
    }
    add_hardly_tested(undecided, kernel);
  }
  notes.insert(notes.end(), undecided.begin(), undecided.end());
  for (const KernelRecord& kernel : summary.not_started)
    notes.push_back(fmt::format("skipped {}: {}\n", one_line(kernel.id), one_line(kernel.not_started)));
  if (table.rows.empty())
    return "nothing was checked: no kernel, property and dtype of those asked for go together\n" + first_lines(notes);
  const std::string title = summary.against.empty() ? "" : fmt::format("against {}\n", one_line(summary.against));
  return title + terminal_text(table) + first_lines(reach_lines(summary)) + drawn_text(summary) +
         (notes.empty() ? "" : "\n") + first_lines(notes);
}

std::string skipped_text(const Summary& summary) {
  std::vector<std::string> lines;
  for (const KernelSummary& kernel : summary.kernels) {
    std::int64_t count = 0;
    std::map<std::string_view, std::int64_t> reasons;
    for (const PropertySummary& property : kernel.properties) {
      for (const auto& [reason, cases] : property.tally.reasons) {
        if (reason.outcome != Outcome::skipped || is_not_about_the_kernel(reason.why)) continue;
        reasons[reason.why] += cases;
        count += cases;
      }
    }
    if (reasons.empty()) continue;
    const auto& [reason, cases] = *std::ranges::max_element(reasons, {}, [](const auto& one) { return one.second; });
    lines.push_back(fmt::format("skipped: {} cases of {} in {}; {}: {}\n", count, one_line(kernel.name),
                                one_line(kernel.dtype), cases == count ? "all" : fmt::format("most often ({})", cases),
                                one_line(reason)));
  }
  return lines.empty() ? "" : '\n' + first_lines(lines);
}

std::string unjudged_text(const Summary& summary) {
  const std::vector<std::string> none = summary.judged_by_none();
  if (none.empty()) return {};
  return fmt::format("\njudged on no kernel: {}\n", terminal_text(first_of(none, /*most=*/4)));
}

std::string warning_text(const Summary& summary) {
  return first_lines(warning_lines(summary.scarce));
}

std::string note_text(const Summary& summary) {
  std::vector<std::string> lines;
  lines.reserve(summary.notes.size());
  for (const KernelNote& note : summary.notes)
    lines.push_back(fmt::format("note on {}: {}\n", one_line(note.kernel), one_line(note.text)));
  return first_lines(lines);
}

std::string alarm_text(const Summary& summary) {
  if (!(summary.alarm > 0)) return {};
  const Alarm all = summary.alarms();
  std::vector<std::string> lines;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.alarm || property.tally.alarm->all.beyond == 0) continue;
      const AlarmTally& alarm = *property.tally.alarm;
      lines.push_back(fmt::format("alarm {} by {} in {}: {} of {} elements in {} cases, worst {} times the bound\n",
                                  one_line(property.name), one_line(kernel.name), one_line(kernel.dtype),
                                  alarm.all.beyond, alarm.all.elements, alarm.cases, short_number(alarm.all.worst)));
    }
  }
  return fmt::format(
             "\nalarm: {} of {} elements beyond the probabilistic bound (p = {}: at most {} expected of correct "
             "kernels), {} not covered; no verdict\n",
             all.beyond, all.elements, short_number(summary.alarm), short_number(summary.false_alarms_expected()),
             all.uncovered) +
         first_lines(lines);
}

std::string closing_line(const Conclusion& conclusion, Ending ending, double seconds) {
  std::string text = fmt::format("{}: {}; {}", conclusion.headline, conclusion.coverage, duration_text(seconds));
  switch (ending) {
    case Ending::complete:
      break;
    case Ending::interrupted:
      text += "; interrupted: the journal is complete to the last batch, --resume goes on";
      break;
    case Ending::out_of_time:
      text += "; the time is over";
      break;
    case Ending::failed_fast:
      text += "; stopped at the first violation";
      break;
  }
  if (!conclusion.quick_look.empty()) text += '\n' + conclusion.quick_look;
  return text;
}

std::string expectations_text(const Conclusion& conclusion, bool quiet) {
  std::string text;
  if (conclusion.changes) {
    // What became worse is printed even where nothing else is.
    text += changes_text(*conclusion.changes,
                         quiet ? std::array<std::size_t, 3>{20, 0, 0} : std::array<std::size_t, 3>{20, 20, 20});
    const ChangesInWords said = in_words(*conclusion.changes);
    if (!quiet) text += fmt::format("baseline: {} ({})\n{}\n", said.counts, conclusion.changes->baseline, said.noise);
  }
  if (conclusion.known) {
    const KnownComparison& known = *conclusion.known;
    for (const std::string& problem : known.problems) text += one_line(problem) + '\n';
    if (!quiet)
      text += fmt::format("known: {} expected, {} new or gone ({})\n", known.expected.size(), known.problems.size(),
                          known.source);
  }
  return text;
}

std::string passed_over_text(const Conclusion& conclusion, bool quiet) {
  std::string text;
  if (conclusion.known && !quiet)
    for (const std::string& remark : conclusion.known->remarks) text += fmt::format("note: {}\n", one_line(remark));
  for (const std::string& line : conclusion.passed_over) text += fmt::format("attest: {}\n", one_line(line));
  return text;
}

}  // namespace attest
