#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/value/dtype.h"
#include "properties/catalogue/property.h"
#include "reports/page/html_elements.h"
#include "reports/results/drawn.h"
#include "reports/results/reach_text.h"
#include "reports/run/text.h"
#include "reports/sections/audit_html.h"
#include "reports/sections/html_sections.h"

namespace attest {
namespace {

/// Counts by outcome, of what was asked and of single cases.
std::string counts(const Summary& summary) {
  std::map<Outcome, std::int64_t> asked, cases;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      ++asked[property.verdict];
      const Tally& tally = property.tally;
      cases[Outcome::held] += tally.held, cases[Outcome::violated] += tally.violated;
      cases[Outcome::inconclusive] += tally.inconclusive, cases[Outcome::skipped] += tally.skipped;
      cases[Outcome::excused] += tally.excused;
    }
  }
  constexpr std::array shown{Outcome::held, Outcome::violated, Outcome::inconclusive, Outcome::skipped,
                             Outcome::excused};
  std::string html =
      "<table class=\"counts\"><caption>Verdicts, and the cases behind them</caption><thead><tr><td></td>";
  for (const Outcome outcome : shown) html += fmt::format("<th scope=\"col\">{}</th>", badge(outcome));
  html += "</tr></thead><tbody><tr><th scope=\"row\">properties × kernels × dtypes</th>";
  for (const Outcome outcome : shown)
    html += outcome == Outcome::excused ? number_cell("–") : number_cell(asked[outcome]);
  html += "</tr><tr><th scope=\"row\">cases</th>";
  for (const Outcome outcome : shown) html += number_cell(cases[outcome]);
  return html + "</tr></tbody></table>";
}

/// How much was covered, in a sentence.
std::string coverage(const Summary& summary) {
  std::int64_t asked = 0, reached = 0, judged = 0;
  std::set<std::string> properties;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      ++asked, reached += property.tally.judged() > 0 ? 1 : 0, judged += property.tally.judged();
      properties.insert(property.name);
    }
  }
  if (asked == 0) return {};
  const std::int64_t cases = summary.cases();
  return fmt::format(
      "<p>Covered: {} of the catalogue's {} properties were asked; a case was judged for {} of {} properties × kernels "
      "× "
      "dtypes, and {} of all cases. <a href=\"#not-covered\">What was not covered</a>.</p>",
      std::ranges::count_if(catalogue(),
                            [&](const Property* one) { return properties.contains(std::string(one->name)); }),
      catalogue().size(), reached, asked, cases == 0 ? "none" : share_text(judged, cases));
}

/// Kernels down, dtypes across.
std::string strip(const Summary& summary) {
  std::vector<std::string> dtypes, ids;
  std::map<std::pair<std::string, std::string>, const KernelSummary*> cells;
  for (const KernelSummary& kernel : summary.kernels) {
    if (std::ranges::find(dtypes, kernel.dtype) == dtypes.end()) dtypes.push_back(kernel.dtype);
    if (std::ranges::find(ids, kernel.id) == ids.end()) ids.push_back(kernel.id);
    cells[{kernel.id, kernel.dtype}] = &kernel;
  }
  const auto rank = [](const std::string& name) {
    return static_cast<int>(named<DType>(name).value_or(DType::boolean));
  };
  std::ranges::sort(dtypes, {}, rank);
  std::string html =
      "<div class=\"scroll\"><table class=\"strip\"><caption>Verdict by kernel and dtype; beside it the worst "
      "utilisation of the cases as drawn, error over "
      "the proved allowed error, which is held up to 1; below it " +
      std::string(reach_explained) +
      "</caption>"
      "<thead><tr><th scope=\"col\">kernel</th>";
  for (const std::string& dtype : dtypes) html += fmt::format("<th scope=\"col\">{}</th>", escaped(dtype));
  html += "</tr></thead><tbody>";
  for (const std::string& id : ids) {
    const auto named = std::ranges::find(summary.kernels, id, &KernelSummary::id);
    // "builtin:flash" says its name.
    const bool says_name = id == named->name || id.ends_with(":" + named->name);
    const std::string label = says_name ? id : fmt::format("{} ({})", named->name, id);
    html += fmt::format("<tr{}><th scope=\"row\">{}</th>", tags(label, "", ""), escaped(label));
    for (const std::string& dtype : dtypes) {
      const auto cell = cells.find({id, dtype});
      if (cell == cells.end()) {
        html += "<td class=\"none\">not offered</td>";
        continue;
      }
      const KernelSummary& kernel = *cell->second;
      const PropertySummary* worst = kernel.worst();
      const std::string reach = reach_text(kernel);
      html += fmt::format(
          "<td><a href=\"#{}\">{}</a> <span class=\"figure\">{}</span>{}</td>", anchor_of(kernel),
          badge(kernel.verdict), worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation),
          kernel.judged() == 0 ? "" : fmt::format("<br><span class=\"reach\">{}</span>", reach.empty() ? "–" : reach));
    }
    html += "</tr>";
  }
  for (const KernelRecord& kernel : summary.not_started) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td colspan=\"{}\">{} {}</td></tr>", escaped(kernel.id),
                        std::max<std::size_t>(dtypes.size(), 1), badge(Outcome::skipped), escaped(kernel.not_started));
  }
  return html + "</tbody></table></div>";
}

}  // namespace

std::string headline_html(const Summary& summary, const Conclusion& conclusion) {
  std::int64_t judged = 0, excused = 0;
  for (const KernelSummary& kernel : summary.kernels) judged += kernel.judged(), excused += kernel.excused();
  std::string html = fmt::format("<p class=\"headline\">{} {} cases, {} judged, {} excused, on {}.</p>",
                                 badge(conclusion.sign, conclusion.headline), summary.cases(), judged, excused,
                                 kernels_text(summary.kernels.size()));
  if (!summary.against.empty()) {
    html += fmt::format(
        "<p>Every kernel is compared with <code>{}</code> on the same cases: violated is where they differ by more "
        "than "
        "both are allowed. Which of the two is wrong, a run without <code>--against</code> tells.</p>",
        escaped(summary.against));
  }
  // What the manifest rules out is no shortcoming of the run; it stands with what was not covered.
  if (!std::ranges::all_of(summary.scarce, &Scarce::ruled_out)) {
    html +=
        "<p class=\"warning\">Some properties were judged on too few cases of the kind that they are about: see <a "
        "href=\"#drawn\">what was drawn</a>.</p>";
  }
  for (const KernelNote& note : summary.notes)
    html += fmt::format("<p class=\"warning\">Note on {}: {}.</p>", escaped(note.kernel), escaped(note.text));
  if (summary.interrupted)
    html += "<p class=\"warning\">This run was interrupted: the figures are of the batches that were finished.</p>";
  if (summary.unfinished) {
    html +=
        "<p class=\"warning\">This run has not come to its end: the figures are of the batches that were finished.</p>";
  }
  return html;
}

std::string verdicts_html(const Summary& summary, const std::string& folder) {
  return "<div class=\"scroll\">" + counts(summary) + "</div>" + coverage(summary) + audit_html(folder) +
         strip(summary);
}

}  // namespace attest
