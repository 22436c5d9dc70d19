#include "reports/results/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "properties/catalogue/property.h"
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
    }
  }
  Table table{
      "Verdicts, and the cases behind them that the kernels' manifests offer", {Column{""}}, "counts", /*sorts=*/false};
  TableRow of_asked{{"properties × kernels × dtypes"}}, of_cases{{"cases"}};
  // What a manifest rules out is no shortcoming, and there may be a million of it.
  for (const Outcome outcome : {Outcome::held, Outcome::violated, Outcome::inconclusive, Outcome::excused}) {
    table.columns.push_back({badge(outcome)});
    of_asked.cells.push_back({outcome == Outcome::excused ? "–" : std::to_string(asked[outcome]), "number"});
    of_cases.cells.push_back({std::to_string(cases[outcome]), "number"});
  }
  table.rows = {std::move(of_asked), std::move(of_cases)};
  return table;
}

/// How much was covered, in a sentence.
Blocks covered(const Summary& summary) {
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
           "{}. Covered: {} of the catalogue's {} properties were asked; a case was judged for {} of the {} properties "
           "× kernels × dtypes that the manifests offer, and {} of the cases. ",
           applies_text(applies_in(summary)),
           std::ranges::count_if(catalogue(), [&](const Property* one) { return properties.contains(one->name); }),
           catalogue().size(), reached, asked, cases == 0 ? "none" : share_text(summary.judged(), cases)),
       leading("not-covered", "What was not covered"), "."}}};
}

}  // namespace

Blocks coverage_page(const Reported& run) {
  Blocks blocks{counts(run.summary)};
  for (const Blocks& more : {covered(run.summary), audit_page(std::filesystem::path(run.folder))})
    blocks.insert(blocks.end(), more.begin(), more.end());
  return blocks;
}

}  // namespace attest
