#include "reports/formats/summary_markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "reports/results/reach_text.h"
#include "reports/results/tolerance.h"
#include "reports/run/run_folder.h"
#include "reports/run/text.h"
#include "reports/sections/html_sections.h"

namespace attest {
namespace {

/// The longest text of others that is shown; a line to replay is never cut.
constexpr std::size_t longest_text = 400;

std::size_t longest_run_of_backticks(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  return longest;
}

/// What a line of a code block may hold.
std::string block_line(std::string_view text) {
  return one_line(cut_short(text, longest_text));
}

std::string_view sign_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::held:
      return "✅";
    case Outcome::violated:
      return "❌";
    case Outcome::inconclusive:
      return "❔";
    case Outcome::skipped:
    case Outcome::excused:
      return "➖";
  }
  return "";
}

/// Sections that share the limit: what one leaves of its share, the next ones have.
class Page {
 public:
  /// Entries stand or fall whole. `shares` bytes come to what was left over; `what` names the entries where some are
  /// cut. A section without entries is left out.
  void section(std::string_view heading, std::size_t share, std::string_view what, std::string_view before,
               const std::vector<std::string>& entries, std::string_view after = "") {
    allowance_ += share;
    if (entries.empty()) return;
    // The longest that a cut line can be.
    constexpr std::size_t cut_line = 160;
    std::string text = (heading.empty() ? "" : fmt::format("\n### {}\n\n", heading)) + std::string(before);
    std::size_t shown = 0;
    for (; shown < entries.size(); ++shown) {
      if (text.size() + entries[shown].size() + after.size() + cut_line > allowance_) break;
      text += entries[shown];
    }
    text += after;
    if (shown < entries.size())
      text += fmt::format("\n_Cut here: {} of {} {}; the report has them all._\n", entries.size() - shown,
                          entries.size(), what);
    allowance_ -= std::min(allowance_, text.size());
    text_ += text;
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t allowance_ = 0;
};

// Together below markdown_limit.
constexpr std::size_t share_of_verdict = 2500, share_of_changes = 5500, share_of_kernels = 14000,
                      share_of_findings = 20500, share_of_worst = 7000, share_of_scarce = 5000, share_of_notes = 5000,
                      share_of_uncovered = 6000;
static_assert(share_of_verdict + share_of_changes + share_of_kernels + share_of_findings + share_of_worst +
                  share_of_scarce + share_of_notes + share_of_uncovered <=
              markdown_limit);

std::string fenced(std::string_view lines) {
  const std::string fence(std::max<std::size_t>(3, longest_run_of_backticks(lines) + 1), '`');
  return fmt::format("{}sh\n{}\n{}\n", fence, lines, fence);
}

std::string name_in(const KernelSummary& kernel, bool in_table = false) {
  return fmt::format("{}{}{}", code_span(kernel.name, in_table), in_table ? " | " : " in ",
                     code_span(kernel.dtype, in_table));
}

void add_verdict(Page& page, const Summary& summary, const Journal& journal, const Conclusion& conclusion) {
  std::int64_t judged = 0, excused = 0;
  for (const KernelSummary& kernel : summary.kernels) judged += kernel.judged(), excused += kernel.excused();
  std::vector<std::string> lines{
      fmt::format("## {} Attest: {}\n\n", sign_of(conclusion.sign), conclusion.headline),
      fmt::format("{} of {} cases judged, {} excused, on {}; seed {}.\n", judged, summary.cases(), excused,
                  kernels_text(summary.kernels.size()), summary.seed)};
  if (summary.kernels.empty()) lines.emplace_back("\nNo kernel was checked.\n");
  if (!summary.against.empty())
    lines.push_back(
        fmt::format("\nCompared with {} on the same cases, to within both bounds.\n", code_span(summary.against)));
  if (summary.interrupted)
    lines.emplace_back("\n**Interrupted**: the figures are of the batches that were finished.\n");
  if (summary.unfinished)
    lines.emplace_back("\n**Not at its end**: the figures are of the batches that were finished.\n");
  if (summary.alarm > 0) {
    const Alarm all = summary.alarms();
    lines.push_back(fmt::format(
        "\n{} of {} elements beyond the probabilistic bound, where at most {} are expected of right kernels: worth a "
        "look and no verdict.\n",
        all.beyond, all.elements, short_number(summary.false_alarms_expected())));
  }
  if (!journal.proofs.empty()) {
    std::set<std::string_view> proved;
    for (const ProofRecord& proof : journal.proofs) proved.insert(proof.property);
    lines.push_back(fmt::format("\nWhat is proved of {} properties stands in the report.\n", proved.size()));
  }
  page.section("", share_of_verdict, "lines", "", lines);
}

void add_changes(Page& page, const Comparison& changes) {
  const ChangesInWords said = in_words(changes);
  std::vector<std::string> lines;
  lines.reserve(changes.differences.size());
  for (const Difference& one : changes.differences) {
    const std::string_view sign = one.direction == Direction::worse    ? "❌"
                                  : one.direction == Direction::better ? "✅"
                                                                       : "➖";
    lines.push_back(fmt::format("- {} {}: {}{} in {}: {}\n", sign, name_of(one.direction),
                                one.property.empty() ? "" : code_span(one.property) + " by ", code_span(one.kernel),
                                code_span(one.dtype), code_span(one.words)));
  }
  // Of no differences, the words on noise are the line.
  const std::string before = fmt::format("Against {}: {}.\n\n", code_span(changes.baseline), said.counts);
  if (lines.empty())
    page.section("What changed", share_of_changes, "lines", before, {said.noise + '\n'});
  else
    page.section("What changed", share_of_changes, "changes", before + said.noise + "\n\n", lines);
}

void add_kernels(Page& page, const Summary& summary, const Journal& journal) {
  std::map<std::pair<std::string, std::string>, ToleranceRow> tolerances;
  for (ToleranceRow& row : rows_for_suites(tolerance_rows(summary, journal)))
    tolerances.try_emplace({row.kernel, row.dtype}, std::move(row));
  std::vector<const KernelSummary*> sorted;
  sorted.reserve(summary.kernels.size());
  // The worst first: what is cut is what matters least.
  for (const Outcome outcome : {Outcome::violated, Outcome::inconclusive, Outcome::held, Outcome::skipped}) {
    for (const KernelSummary& kernel : summary.kernels)
      if (kernel.verdict == outcome) sorted.push_back(&kernel);
  }
  std::vector<std::string> rows;
  for (const KernelSummary* kernel : sorted) {
    const PropertySummary* worst = kernel->worst();
    const auto tolerance = tolerances.find({kernel->id, kernel->dtype});
    // Of a kernel that is wrong they would be what its mistakes leave.
    const bool measured = tolerance != tolerances.end() && kernel->verdict != Outcome::violated;
    const std::string reach = reach_text(*kernel);
    const char* const few = measured && !tolerance->second.caution().empty() ? " ?" : "";
    rows.push_back(fmt::format("| {} | {} {} | {} | {} | {} | {} | {} | {} | {} |\n",
                               name_in(*kernel, /*in_table=*/true), sign_of(kernel->verdict), name_of(kernel->verdict),
                               kernel->judged(), kernel->excused(),
                               worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation),
                               worst == nullptr ? "" : code_span(worst->name, true), reach.empty() ? "–" : reach,
                               measured ? short_number(tolerance->second.tolerance.atol) + few : "–",
                               measured ? short_number(tolerance->second.tolerance.rtol) + few : "–"));
  }
  page.section(
      "Kernels", share_of_kernels, "rows",
      "Worst: the largest error as a share of the proved bound; at most 1 is held. atol and rtol: twice what would "
      "have accepted every right answer of this run to ordinary inputs; ? where these were too few to rely on. "
      "Reach: " +
          std::string(reach_explained) +
          ".\n\n| kernel | dtype | verdict | judged | excused | worst | of | reach | atol | rtol |\n"
          "|---|---|---|--:|--:|--:|---|---|--:|--:|\n",
      rows);
}

std::string finding_entry(const KernelSummary& kernel, const PropertySummary& property, const std::string& folder) {
  const bool violated = property.verdict == Outcome::violated;
  std::string entry = fmt::format("{} {} {} {}, {} of {} cases: {}\n\n", sign_of(property.verdict), name_in(kernel),
                                  violated ? "violates" : "is undecided for", code_span(property.name),
                                  violated ? property.tally.violated : property.tally.inconclusive,
                                  property.tally.cases(), code_span(property.reason));
  std::string lines;
  for (const FindingRecord& finding : property.findings)
    lines += (lines.empty() ? "" : "\n") + replay_line(folder, finding.case_file);
  if (!lines.empty()) entry += fenced(lines) + '\n';
  return entry;
}

void add_findings(Page& page, const Summary& summary, const std::string& folder) {
  std::vector<std::string> entries;
  for (const Outcome outcome : {Outcome::violated, Outcome::inconclusive}) {
    for (const KernelSummary& kernel : summary.kernels) {
      for (const PropertySummary& property : kernel.properties) {
        // Of what no case was reached, there is nothing to show.
        if (property.verdict == outcome && (outcome == Outcome::violated || !property.findings.empty()))
          entries.push_back(finding_entry(kernel, property, folder));
      }
    }
    for (const KernelSummary& kernel : summary.kernels) {
      if (outcome != Outcome::violated) break;
      for (const KernelExplanation& one : kernel.explanations)
        entries.push_back(fmt::format("Explained, {}: {}\n\n", name_in(kernel), code_span(one.text)));
    }
  }
  page.section("Findings", share_of_findings, "findings", "", entries);
}

void add_worst(Page& page, const Summary& summary, const std::string& folder) {
  // The largest first, of equals as the kernels come.
  std::multimap<double, std::string, std::greater<>> sorted;
  std::string all;
  for (const KernelSummary& kernel : summary.kernels) {
    const PropertySummary* worst = kernel.worst();
    if (worst == nullptr || worst->worst_case.empty() || !(worst->tally.worst_utilisation > 0)) continue;
    const double utilisation = worst->tally.worst_utilisation;
    const std::string entry =
        fmt::format("# {}, {}: {} of what is allowed, {}\n{}\n", block_line(kernel.name), block_line(kernel.dtype),
                    short_number(utilisation), block_line(worst->name), replay_line(folder, worst->worst_case));
    all += entry;
    sorted.emplace(utilisation, entry);
  }
  std::vector<std::string> entries;
  entries.reserve(sorted.size());
  for (const auto& [utilisation, entry] : sorted) entries.push_back(entry);
  const std::string fence(std::max<std::size_t>(3, longest_run_of_backticks(all) + 1), '`');
  page.section("Worst known cases", share_of_worst, "worst cases",
               "The worst that these cases showed: the true worst may be worse.\n\n" + fence + "sh\n", entries,
               fence + "\n");
}

void add_scarce(Page& page, const Summary& summary) {
  std::vector<std::string> entries;
  entries.reserve(summary.scarce.size());
  for (const Scarce& one : summary.scarce) {
    entries.push_back(
        fmt::format("- {} by {} in {}: {} of {} judged cases with {}; {}\n", code_span(one.property),
                    code_span(one.kernel), code_span(one.dtype), one.cases, one.judged, one.what,
                    one.ruled_out ? "the manifest rules them out" : fmt::format("{} would do", one.enough)));
  }
  page.section("Drawn too rarely", share_of_scarce, "entries",
               "That these held says little: few of their cases are of the kind that they are about.\n\n", entries);
}

void add_notes(Page& page, const Summary& summary) {
  std::vector<std::string> entries;
  entries.reserve(summary.notes.size());
  for (const KernelNote& note : summary.notes)
    entries.push_back(fmt::format("- {}: {}\n", code_span(note.kernel), code_span(note.text)));
  page.section("Notes", share_of_notes, "notes", "", entries);
}

/// Properties that were not judged, by kernel and reason, and kernels that did not start.
void add_uncovered(Page& page, const Summary& summary) {
  std::vector<std::string> entries;
  entries.reserve(summary.not_started.size());
  for (const KernelRecord& kernel : summary.not_started)
    entries.push_back(fmt::format("- {} did not start: {}\n", code_span(kernel.id), code_span(kernel.not_started)));
  const std::vector<std::string> none = summary.judged_by_none();
  if (!none.empty()) {
    std::string names;
    for (const std::string& name : std::span(none).first(std::min<std::size_t>(none.size(), 6)))
      names += (names.empty() ? "" : ", ") + code_span(name);
    if (none.size() > 6) names += fmt::format(" and {} more", none.size() - 6);
    entries.push_back(fmt::format("- Judged on no kernel: {}\n", names));
  }
  for (const KernelSummary& kernel : summary.kernels) {
    std::map<std::string, std::vector<std::string_view>> by_reason;
    for (const PropertySummary& property : kernel.properties) {
      if (property.tally.judged() > 0) continue;
      by_reason[property.reason].push_back(property.name);
    }
    for (const auto& [reason, names] : by_reason) {
      constexpr std::size_t shown = 6;
      std::string listed;
      for (const std::string_view name : std::span(names).first(std::min(names.size(), shown)))
        listed += (listed.empty() ? "" : ", ") + code_span(name);
      if (names.size() > shown) listed += fmt::format(" and {} more", names.size() - shown);
      entries.push_back(fmt::format("- {}: {}: {}\n", name_in(kernel), listed, code_span(reason)));
    }
  }
  page.section("Not covered", share_of_uncovered, "entries", "", entries);
}

}  // namespace

std::string code_span(std::string_view text, bool in_table) {
  std::string line = block_line(text);
  if (line.find_first_not_of(' ') == std::string::npos) return "(empty)";
  if (in_table) {
    std::string cell;
    for (const char c : line) cell += c == '|' ? std::string("¦") : std::string(1, c);
    line = std::move(cell);
  }
  const std::string fence(longest_run_of_backticks(line) + 1, '`');
  // One space at both ends is taken away again.
  const bool padded = line.front() == '`' || line.back() == '`' || (line.front() == ' ' && line.back() == ' ');
  return fence + (padded ? " " : "") + line + (padded ? " " : "") + fence;
}

std::string to_markdown(const Summary& summary, const Journal& journal, const std::string& folder,
                        const Conclusion& conclusion) {
  Page page;
  if (holds_proofs_alone(summary, journal)) {
    page.section("", share_of_verdict, "lines", "",
                 {"## Attest: proofs\n\n", fmt::format("{}. No kernel was run.\n", code_span(proofs_text(journal)))});
    return page.text();
  }
  add_verdict(page, summary, journal, conclusion);
  if (conclusion.changes) add_changes(page, *conclusion.changes);
  add_kernels(page, summary, journal);
  add_findings(page, summary, folder);
  add_worst(page, summary, folder);
  add_scarce(page, summary);
  add_notes(page, summary);
  add_uncovered(page, summary);
  return page.text();
}

}  // namespace attest
