#include <fmt/format.h>

#include <map>
#include <set>

#include "reports/page/html_elements.h"
#include "reports/run/version.h"
#include "reports/sections/html_sections.h"

namespace attest {

std::string environment_html(const Summary& summary, const Journal& journal) {
  std::map<std::string, std::set<std::string>> facts;
  for (const MetaRecord& meta : journal.meta) {
    if (meta.event != "begin" && meta.event != "end") continue;
    for (const auto& [name, fact] : meta.facts)
      facts[meta.event == "end" && name == "time" ? "end" : name].insert(fact);
  }
  std::string html = fmt::format("<dl><dt>seed</dt><dd>{}</dd>", summary.seed);
  for (const auto& [name, values] : facts) {
    html += fmt::format("<dt>{}</dt>", escaped(name));
    for (const std::string& value : values) html += fmt::format("<dd>{}</dd>", escaped(value));
  }
  if (journal.run && !journal.run->case_files.empty()) {
    html += "<dt>case files</dt>";
    for (const std::string& file : journal.run->case_files) html += fmt::format("<dd>{}</dd>", escaped(file));
  }
  html += fmt::format("<dt>written by</dt><dd>attest {}</dd></dl>", escaped(version()));
  for (const KernelRecord& kernel : journal.kernels) {
    if (kernel.manifest.empty()) continue;
    html += fmt::format("<details><summary>manifest of {}</summary><pre>{}</pre></details>", escaped(kernel.id),
                        escaped(kernel.manifest));
  }
  return html;
}

}  // namespace attest
