#include <fmt/format.h>

#include "html_elements.h"
#include "html_sections.h"
#include "text.h"

namespace attest {

std::string findings_html(const Summary& summary, const std::string& folder) {
  std::string html;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      const bool violated = property.verdict == Outcome::violated;
      if (!violated && property.findings.empty()) continue;
      html += fmt::format("<article><h3>{} <span class=\"dtype\">{}</span> {} {}</h3><p>{} of {} cases.</p>",
                          escaped(kernel.name), escaped(kernel.dtype), violated ? "violates" : "is undecided for",
                          escaped(property.name), violated ? property.tally.violated : property.tally.inconclusive,
                          property.tally.cases());
      for (const FindingRecord& finding : property.findings) {
        html +=
            fmt::format("<div class=\"finding\"><p><b>Case {}</b>, {}, utilisation {}</p><p>{}</p><pre>{}</pre></div>",
                        finding.k, escaped(std::string(finding.kind())), short_number(finding.verdict.utilisation),
                        escaped(finding.verdict.reason), escaped(replay_line(folder, finding.case_file)));
      }
      html += "</article>";
    }
    for (const KernelExplanation& one : kernel.explanations)
      html += fmt::format("<p class=\"explanation\"><b>{} <span class=\"dtype\">{}</span></b>: {}.</p>",
                          escaped(kernel.name), escaped(kernel.dtype), escaped(one.text));
  }
  return html.empty() ? "<p>None.</p>" : html;
}

}  // namespace attest
