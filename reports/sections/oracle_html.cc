#include <fmt/format.h>

#include <string_view>

#include "reports/page/html_elements.h"
#include "reports/sections/html_sections.h"

namespace attest {

std::string oracle_html(const Summary& summary) {
  Tally all;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) all.merge(property.tally);
  }
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">deepest level</th><th scope=\"col\" "
      "class=\"number\">cases</th></tr></thead><tbody>";
  constexpr std::string_view names[] = {"none: no number was judged", "double with a certificate", "double-double",
                                        "Arb balls"};
  for (std::size_t level = 0; level < all.level.size(); ++level) {
    html +=
        fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td></tr>", names[level], all.level[level]);
  }
  html += fmt::format("<tr><th scope=\"row\">undecided at the last level</th><td class=\"number\">{}</td></tr>",
                      all.inconclusive);
  return html + "</tbody></table></div>";
}

}  // namespace attest
