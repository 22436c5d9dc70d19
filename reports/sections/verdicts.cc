#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "properties/catalogue/property.h"
#include "reports/results/summary_words.h"
#include "reports/sections/audit_score.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Counts by outcome, of what was asked and of single cases.
Table counts(const Summary& summary) {
  std::map<Outcome, std::int64_t> asked, cases;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      ++asked[property.verdict];
      const Tally& tally = property.tally;
      cases[Outcome::held] += tally.held, cases[Outcome::violated] += tally.violated;
      cases[Outcome::inconclusive] += tally.inconclusive, cases[Outcome::excused] += tally.excused;
      // What a manifest rules out is no shortcoming, and there may be a million of it.
      cases[Outcome::skipped] += property.offered - tally.judged() - tally.inconclusive - tally.excused;
    }
  }
  Table table{
      "Verdicts, and the cases behind them that the kernels' manifests offer", {Column{""}}, "counts", /*sorts=*/false};
  TableRow of_asked{{"properties × kernels × dtypes"}}, of_cases{{"cases"}};
  for (const Outcome outcome :
       {Outcome::held, Outcome::violated, Outcome::inconclusive, Outcome::skipped, Outcome::excused}) {
    table.columns.push_back({badge(outcome)});
    of_asked.cells.push_back({outcome == Outcome::excused ? "–" : std::to_string(asked[outcome]), "number"});
    of_cases.cells.push_back({std::to_string(cases[outcome]), "number"});
  }
  table.rows = {std::move(of_asked), std::move(of_cases)};
  return table;
}

/// In a property, or on shapes that its manifest offers.
bool is_hardly_tested(const KernelSummary& kernel) {
  return !kernel.left_out.empty() || std::ranges::any_of(kernel.properties, &PropertySummary::hardly_tested);
}

/// How much was covered, in a sentence.
Blocks coverage(const Summary& summary) {
  std::int64_t asked = 0, reached = 0;
  std::set<std::string_view> properties;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      properties.insert(property.name);
      if (property.offered > 0) ++asked, reached += property.tally.judged() > 0 ? 1 : 0;
    }
  }
  if (asked == 0) return {};
  const std::int64_t cases = summary.offered();
  return {Paragraph{
      {fmt::format(
           "Covered: {} of the catalogue's {} properties were asked; a case was judged for {} of the {} properties "
           "× kernels × dtypes that the manifests offer, and {} of the cases. ",
           std::ranges::count_if(catalogue(), [&](const Property* one) { return properties.contains(one->name); }),
           catalogue().size(), reached, asked, cases == 0 ? "none" : share_text(summary.judged(), cases)),
       leading("not-covered", "What was not covered"), "."}}};
}

TableCell verdict_cell(const KernelSummary& kernel) {
  const PropertySummary* worst = kernel.worst();
  Text text{leading(anchor_of(kernel), badge(kernel.verdict)), " ",
            Piece(worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation), Piece::Kind::soft)};
  const std::string reach = reach_text(kernel);
  return kernel.judged() == 0 ? text : Text{text, Piece(reach.empty() ? "–" : reach, Piece::Kind::below)};
}

/// Kernels down, dtypes across.
Table strip(const Summary& summary) {
  const std::vector<std::string> dtypes = dtypes_of(summary);
  std::vector<std::string> ids;
  std::map<std::pair<std::string, std::string>, const KernelSummary*> cells;
  for (const KernelSummary& kernel : summary.kernels) {
    if (std::ranges::find(ids, kernel.id) == ids.end()) ids.push_back(kernel.id);
    cells[{kernel.id, kernel.dtype}] = &kernel;
  }
  Table table{fmt::format("Verdict by kernel and dtype; beside it the worst utilisation of the cases as drawn, error "
                          "over the proved allowed error, which is held up to 1; below it {}",
                          reach_explained),
              columns_of("kernel"), "strip",
              /*sorts=*/false};
  for (const std::string& dtype : dtypes) table.columns.push_back({theirs(dtype)});
  for (const std::string& id : ids) {
    const auto named = std::ranges::find(summary.kernels, id, &KernelSummary::id);
    // "builtin:flash" says its name.
    const bool says_name = id == named->name || id.ends_with(":" + named->name);
    const std::string label = says_name ? id : fmt::format("{} ({})", named->name, id);
    TableRow& row = table.rows.emplace_back(TableRow{{theirs(label)}, {label}});
    for (const std::string& dtype : dtypes) {
      const auto cell = cells.find({id, dtype});
      row.cells.push_back(cell == cells.end() ? TableCell("not offered", "none") : verdict_cell(*cell->second));
    }
  }
  for (const KernelRecord& kernel : summary.not_started) {
    TableCell cell{Text{badge(Outcome::skipped), " ", theirs(kernel.not_started)}};
    cell.span = std::max<std::size_t>(dtypes.size(), 1);
    table.rows.push_back({{theirs(kernel.id), std::move(cell)}});
  }
  return table;
}

}  // namespace

Blocks headline_page(const Reported& run) {
  const Summary& summary = run.summary;
  if (holds_proofs_alone(summary, run.journal)) return {Paragraph{proofs_alone(run.journal), "headline"}};
  Blocks blocks{Paragraph{{badge(run.conclusion.sign, run.conclusion.headline),
                           fmt::format(" {}; {} excused, on {}.", run.conclusion.coverage,
                                       with_commas(summary.excused()), kernels_text(summary.kernels.size()))},
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
  Blocks blocks{strip(run.summary)};
  for (const Blocks& more : {shapes_pictures(run), Blocks{counts(run.summary)}, coverage(run.summary),
                             audit_page(std::filesystem::path(run.folder))})
    blocks.insert(blocks.end(), more.begin(), more.end());
  return blocks;
}

}  // namespace attest
