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
          "<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}<td>{}</td></tr>",
          tags(kernel_words(kernel), property.name, name_of(property.verdict)), escaped(kernel.name),
          escaped(kernel.dtype), escaped(property.name), number_cell(worst_text(property.tally)),
          folded_line(fmt::format("case {}", property.tally.worst_k), replay_line(folder, property.worst_case)));
    }
  }
  if (rows.empty()) return "<p>None was judged.</p>";
  return table_html("The worst case of each property, kernel and dtype",
                    {{"kernel"}, {"dtype"}, {"property"}, {"utilisation", true}, {"replay"}}, rows);
}

}  // namespace attest
