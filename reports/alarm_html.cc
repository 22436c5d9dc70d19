#include <fmt/format.h>

#include "html_elements.h"
#include "html_sections.h"
#include "text.h"

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
      rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", escaped(kernel.name),
                          escaped(kernel.dtype), escaped(property.name));
      for (const std::int64_t count : {alarm.all.elements, alarm.all.uncovered, alarm.all.beyond, alarm.cases})
        rows += fmt::format("<td class=\"number\">{}</td>", count);
      rows += fmt::format("<td class=\"number\">{}</td><td>{}</td></tr>",
                          alarm.worst_k < 0 ? "–" : short_number(alarm.all.worst),
                          property.alarm_case.empty()
                              ? ""
                              : "<code>" + escaped(replay_line(folder, property.alarm_case) + " --alarm") + "</code>");
    }
  }
  if (rows.empty()) return html;
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (const char* heading : {"kernel", "dtype", "property"}) html += fmt::format("<th scope=\"col\">{}</th>", heading);
  for (const char* heading : {"elements", "not covered", "beyond", "cases", "worst"})
    html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", heading);
  return html + "<th scope=\"col\">replay</th></tr></thead><tbody>" + rows + "</tbody></table></div>";
}

}  // namespace attest
