#include <fmt/format.h>

#include "reports/page/html_elements.h"
#include "reports/results/compare.h"

namespace attest {

std::string changes_html(const Comparison& comparison) {
  const ChangesInWords said = in_words(comparison);
  std::string html = fmt::format("<p>Against <code>{}</code>: {}.</p><p class=\"note\">{}</p>",
                                 escaped(comparison.baseline), escaped(said.counts), escaped(said.noise));
  if (comparison.differences.empty()) return html;
  std::string rows;
  for (const Difference& one : comparison.differences) {
    // A sign beside the colour, as for verdicts.
    const bool worse = one.direction == Direction::worse, better = one.direction == Direction::better;
    rows += fmt::format(
        "<tr{}><td><span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span></td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>",
        tags(one.kernel + ' ' + one.dtype, one.property, ""),
        worse    ? "violated"
        : better ? "held"
                 : "skipped",
        worse    ? "✗"
        : better ? "✓"
                 : "–",
        name_of(one.direction), escaped(one.kernel), escaped(one.dtype), escaped(one.property), escaped(one.words));
  }
  return html + table_html("What is worse, better or otherwise than in the baseline",
                           {{"change"}, {"kernel"}, {"dtype"}, {"property"}, {"in words"}}, rows);
}

}  // namespace attest
