#include <fmt/format.h>

#include "html_elements.h"
#include "html_sections.h"

namespace attest {

std::string worst_cases_html(const Summary& summary, const std::string& folder) {
  std::string rows;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.worst_case.empty() || property.tally.worst_utilisation == 0.0) continue;
      rows += fmt::format(
          "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td "
          "class=\"number\">{}</td><td><code>{}</code></td></tr>",
          escaped(kernel.name), escaped(kernel.dtype), escaped(property.name), worst_text(property.tally),
          escaped(replay_line(folder, property.worst_case)));
    }
  }
  if (rows.empty()) return "<p>None was judged.</p>";
  return "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">kernel</th><th scope=\"col\">dtype</th><th "
         "scope=\"col\">property</th>"
         "<th scope=\"col\" class=\"number\">utilisation</th><th scope=\"col\">replay</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>";
}

}  // namespace attest
