#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "attest/dtype.h"
#include "html_elements.h"
#include "html_sections.h"
#include "text.h"

namespace attest {

std::string headline_html(const Summary& summary) {
  std::int64_t judged = 0, excused = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    excused += kernel.excused();
    for (const PropertySummary& property : kernel.properties) judged += property.tally.judged();
  }
  std::string html =
      fmt::format("<p class=\"headline\">{} {} cases, {} judged, {} excused, on {} kernels × dtypes.</p>",
                  badge(summary.verdict), summary.cases(), judged, excused, summary.kernels.size());
  if (!summary.against.empty()) {
    html += fmt::format(
        "<p>Every kernel is compared with <code>{}</code> on the same cases: violated is where they differ by more "
        "than "
        "both are allowed. Which of the two is wrong, a run without <code>--against</code> tells.</p>",
        escaped(summary.against));
  }
  if (!summary.scarce.empty()) {
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

/// Kernels down, dtypes across.
std::string verdicts_html(const Summary& summary) {
  std::vector<std::string> dtypes, ids;
  std::map<std::pair<std::string, std::string>, const KernelSummary*> cells;
  for (const KernelSummary& kernel : summary.kernels) {
    if (std::ranges::find(dtypes, kernel.dtype) == dtypes.end()) dtypes.push_back(kernel.dtype);
    if (std::ranges::find(ids, kernel.id) == ids.end()) ids.push_back(kernel.id);
    cells[{kernel.id, kernel.dtype}] = &kernel;
  }
  const auto rank = [](const std::string& name) {
    return static_cast<int>(dtype_named(name).value_or(DType::boolean));
  };
  std::ranges::sort(dtypes, {}, rank);
  std::string html =
      "<div class=\"scroll\"><table class=\"strip\"><caption>Verdict and worst utilisation by kernel and "
      "dtype</caption>"
      "<thead><tr><th scope=\"col\">kernel</th>";
  for (const std::string& dtype : dtypes) html += fmt::format("<th scope=\"col\">{}</th>", escaped(dtype));
  html += "</tr></thead><tbody>";
  for (const std::string& id : ids) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(id));
    for (const std::string& dtype : dtypes) {
      const auto cell = cells.find({id, dtype});
      if (cell == cells.end()) {
        html += "<td class=\"none\">not offered</td>";
        continue;
      }
      const KernelSummary& kernel = *cell->second;
      const PropertySummary* worst = kernel.worst();
      html += fmt::format("<td><a href=\"#{}\">{}</a><br><span class=\"figure\">{}</span></td>", anchor_of(kernel),
                          badge(kernel.verdict), worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation));
    }
    html += "</tr>";
  }
  for (const KernelRecord& kernel : summary.not_started) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td colspan=\"{}\">{} {}</td></tr>", escaped(kernel.id),
                        std::max<std::size_t>(dtypes.size(), 1), badge(Outcome::skipped), escaped(kernel.not_started));
  }
  return html + "</tbody></table></div>";
}

}  // namespace attest
