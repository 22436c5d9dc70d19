#include <fmt/format.h>

#include "reports/page/html_elements.h"
#include "reports/run/run_folder.h"
#include "reports/run/text.h"
#include "reports/sections/html_sections.h"

namespace attest {

std::string alarm_html(const Summary& summary, const std::string& folder) {
  const Alarm all = summary.alarms();
  std::string html = fmt::format(
      "<p>{} of {} elements lie beyond the probabilistic bound. At p = {} at most {} are expected of correct kernels; "
      "{} more elements are not covered: equal keys or truncated sums, where rounding errors are not random.</p>",
      all.beyond, all.elements, short_number(summary.alarm), short_number(summary.false_alarms_expected()),
      all.uncovered);
  std::string rows;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.alarm) continue;
      const AlarmTally& alarm = *property.tally.alarm;
      rows += fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td>",
                          tags(kernel_words(kernel), property.name, ""), escaped(kernel.name), escaped(kernel.dtype),
                          escaped(property.name));
      for (const std::int64_t count : {alarm.all.elements, alarm.all.uncovered, alarm.all.beyond, alarm.cases})
        rows += number_cell(count);
      rows += number_cell(alarm.worst_k < 0 ? "–" : short_number(alarm.all.worst));
      rows += property.alarm_case.empty()
                  ? "<td></td></tr>"
                  : fmt::format("<td>{}</td></tr>", folded_line(fmt::format("case {}", alarm.worst_k),
                                                                replay_line(folder, property.alarm_case) + " --alarm"));
    }
  }
  if (rows.empty()) return html;
  return html + table_html("Elements beyond the probabilistic bound",
                           {{"kernel"},
                            {"dtype"},
                            {"property"},
                            {"elements", true},
                            {"not covered", true},
                            {"beyond", true},
                            {"cases", true},
                            {"worst", true},
                            {"replay"}},
                           rows);
}

}  // namespace attest
