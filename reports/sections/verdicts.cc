#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/results/coverage.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// In a property, or on shapes that its manifest offers.
bool is_hardly_tested(const KernelSummary& kernel) {
  return !kernel.left_out.empty() || std::ranges::any_of(kernel.properties, &PropertySummary::hardly_tested);
}

TableCell verdict_cell(const KernelSummary& kernel) {
  return Text{leading(anchor_of(kernel), badge(kernel.verdict)), " ",
              Piece(worst_share_text(kernel), Piece::Kind::soft)};
}

Table strip_of(const std::vector<std::string>& dtypes) {
  // The corner says what the cells hold, for the strip has no room for a line about it.
  Table table{"Verdict and worst share by kernel and dtype",
              {Column{.name = "verdict, worst share", .about = "kernel"}},
              "strip",
              /*sorts=*/false};
  for (const std::string& dtype : dtypes)
    table.columns.push_back({.name = {theirs(dtype)}, .about = "verdict in a dtype"});
  return table;
}

/// Kernels down, the worst first; dtypes across. Of many kernels the later ones are folded, so that what is wrong with
/// the first ones is still seen.
Blocks strips(const Summary& summary) {
  constexpr std::size_t most = 6, shown = 5;
  const std::vector<std::string> dtypes = dtypes_of(summary);
  std::vector<std::string> ids;
  std::map<std::string, Outcome> verdicts;
  std::map<std::pair<std::string, std::string>, const KernelSummary*> cells;
  for (const KernelSummary& kernel : summary.kernels) {
    if (verdicts.try_emplace(kernel.id, kernel.verdict).second) ids.push_back(kernel.id);
    verdicts[kernel.id] = worse(verdicts[kernel.id], kernel.verdict);
    cells[{kernel.id, kernel.dtype}] = &kernel;
  }
  Table first = strip_of(dtypes), further = first;
  std::map<Outcome, std::size_t> folded;
  std::size_t rows = 0;
  const auto add = [&](Outcome verdict) -> TableRow& {
    const bool fits = ids.size() <= most || rows < shown;
    if (!fits) ++folded[verdict];
    ++rows;
    return (fits ? first : further).rows.emplace_back();
  };
  const auto add_kernel = [&](const std::string& id, Outcome verdict) {
    const auto named = std::ranges::find(summary.kernels, id, &KernelSummary::id);
    // "builtin:flash" says its name.
    const bool says_name = id == named->name || id.ends_with(":" + named->name);
    const std::string label = says_name ? id : fmt::format("{} ({})", named->name, id);
    TableRow& row = add(verdict);
    row.cells = {theirs(label)};
    row.tags.kernel = label;
    for (const std::string& dtype : dtypes) {
      const auto cell = cells.find({id, dtype});
      row.cells.push_back(cell == cells.end() ? TableCell("not offered", "none") : verdict_cell(*cell->second));
    }
  };
  for (const Outcome verdict : {Outcome::violated, Outcome::inconclusive, Outcome::held, Outcome::skipped})
    for (const std::string& id : ids)
      if (verdicts[id] == verdict) add_kernel(id, verdict);
  for (const KernelRecord& kernel : summary.not_started) {
    TableCell cell{Text{badge(Outcome::skipped), " ", theirs(kernel.not_started)}};
    cell.span = std::max<std::size_t>(dtypes.size(), 1);
    first.rows.push_back({{theirs(kernel.id), std::move(cell)}});
  }
  if (further.rows.empty()) return {std::move(first)};
  Text title = "Further kernels:";
  for (const auto& [verdict, count] : folded)
    title = {title, " ", badge(verdict, fmt::format("{} {}", count, name_of(verdict)))};
  return {std::move(first), Group{Group::Kind::folded, std::move(title), {std::move(further)}}};
}

}  // namespace

Blocks headline_page(const Reported& run) {
  const Summary& summary = run.summary;
  if (holds_proofs_alone(summary, run.journal)) return {Paragraph{proofs_alone(run.journal), "headline"}};
  Blocks blocks{
      Paragraph{{badge(run.conclusion.sign, run.conclusion.headline),
                 fmt::format(" {}; {} excused, on {}. {}.", run.conclusion.coverage, with_commas(summary.excused()),
                             kernels_text(summary.kernels.size()), applies_text(applies_in(summary)))},
                "headline"}};
  if (!summary.against.empty()) {
    constexpr std::string_view meaning =
        " on the same cases: violated is where they differ by more than both are allowed. "
        "Which of the two is wrong, a run without ";
    blocks.emplace_back(
        Paragraph{{"Every kernel is compared with ", code(summary.against), meaning, code("--against"), " tells."}});
  }
  const auto warn = [&](Text text) { blocks.emplace_back(Paragraph{std::move(text), "warning"}); };
  // What is as it was asked for, and what a kernel is, is nothing to be warned of.
  const auto remark = [&](Text text) { blocks.emplace_back(Paragraph{std::move(text), "note"}); };
  if (!run.conclusion.quick_look.empty()) remark(sentence(run.conclusion.quick_look));
  if (std::ranges::any_of(summary.kernels, &is_hardly_tested))
    warn({"Some of what the manifests offer was hardly tested, and is inconclusive for that: see ",
          leading("not-covered", "what was not covered"), "."});
  // What the manifest rules out is no shortcoming of the run; it stands with what was not covered.
  if (!std::ranges::all_of(summary.scarce, &Scarce::ruled_out)) {
    warn({"Some properties were judged on too few cases of the kind that they are about: see ",
          leading("drawn", "what was drawn"), "."});
  }
  for (const KernelNote& note : summary.notes) remark({"Note on ", theirs(note.kernel), ": ", theirs(note.text), "."});
  if (summary.interrupted) warn("This run was interrupted: the figures are of the batches that were finished.");
  if (summary.unfinished) warn("This run has not come to its end: the figures are of the batches that were finished.");
  return blocks;
}

Brief headline_brief(const Reported& run) {
  const Summary& summary = run.summary;
  Brief brief{"", "lines", {}, {}};
  if (holds_proofs_alone(summary, run.journal)) {
    brief.before = {Heading{2, "Attest: proofs"}};
    brief.entries = {Paragraph{proofs_alone(run.journal)}};
    return brief;
  }
  brief.before = {Heading{2, {sign(run.conclusion.sign), " Attest: ", run.conclusion.headline}}};
  const auto say = [&](Text text) { brief.entries.emplace_back(Paragraph{std::move(text)}); };
  say(fmt::format("{} of {} cases judged, {} excused, on {}; seed {}.", with_commas(summary.judged()),
                  with_commas(summary.offered()), with_commas(summary.excused()), kernels_text(summary.kernels.size()),
                  summary.seed));
  if (!summary.kernels.empty()) say(sentence(run.conclusion.coverage));
  if (!run.conclusion.quick_look.empty()) say(sentence(run.conclusion.quick_look));
  if (summary.kernels.empty()) say("No kernel was checked.");
  if (!summary.against.empty())
    say({"Compared with ", theirs(summary.against), " on the same cases, to within both bounds."});
  if (summary.interrupted) say({strong("Interrupted"), ": the figures are of the batches that were finished."});
  if (summary.unfinished) say({strong("Not at its end"), ": the figures are of the batches that were finished."});
  if (summary.alarm > 0) {
    const Alarm all = summary.alarms();
    say(
        fmt::format("{} of {} elements beyond the probabilistic bound, where at most {} are expected of right kernels: "
                    "worth a look and no verdict.",
                    all.beyond, all.elements, short_number(summary.false_alarms_expected())));
  }
  if (!run.journal.proofs.empty()) {
    std::set<std::string_view> proved;
    for (const ProofRecord& proof : run.journal.proofs) proved.insert(proof.property);
    say(fmt::format("What is proved of {} properties stands in the report.", proved.size()));
  }
  return brief;
}

Blocks verdicts_page(const Reported& run) {
  return strips(run.summary);
}

}  // namespace attest
