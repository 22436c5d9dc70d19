#include <fmt/format.h>

#include "compare.h"
#include "html_elements.h"

namespace attest {

std::string changes_html(const Comparison& comparison, const std::string& baseline) {
  std::string html = fmt::format(
      "<p>{} worse, {} better than <code>{}</code>, of {} properties by kernel and dtype that both runs have.</p>",
      comparison.count(Direction::worse), comparison.count(Direction::better), escaped(baseline), comparison.subjects);
  if (comparison.differences.empty())
    return html + "<p>Nothing lies beyond the noise between two runs of one kernel.</p>";
  html +=
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">change</th><th scope=\"col\">kernel</th><th "
      "scope=\"col\">dtype</th><th scope=\"col\">property</th><th scope=\"col\">in words</th></tr></thead><tbody>";
  for (const Difference& one : comparison.differences) {
    // A sign beside the colour, as for verdicts.
    const bool worse = one.direction == Direction::worse, better = one.direction == Direction::better;
    html += fmt::format(
        "<tr><td><span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span></td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>",
        worse    ? "violated"
        : better ? "held"
                 : "skipped",
        worse    ? "✗"
        : better ? "✓"
                 : "–",
        name_of(one.direction), escaped(one.kernel), escaped(one.dtype), escaped(one.property), escaped(one.words));
  }
  return html + "</tbody></table></div>";
}

}  // namespace attest
