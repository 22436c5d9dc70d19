#include <fmt/format.h>

#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {

Blocks alarm_page(const Reported& run) {
  const Summary& summary = run.summary;
  const std::string& folder = run.folder;
  if (!(summary.alarm > 0)) return {};
  const Alarm all = summary.alarms();
  Blocks blocks{Paragraph{fmt::format(
      "{} of {} elements lie beyond the probabilistic bound. At p = {} at most {} are expected of correct kernels; {} "
      "more elements are not covered: equal keys or truncated sums, where rounding errors are not random, and "
      "gradients of very large cases.",
      all.beyond, all.elements, short_number(summary.alarm), short_number(summary.false_alarms_expected()),
      all.uncovered)}};
  Table table{
      "Elements beyond the probabilistic bound",
      columns_of(
          "kernel|dtype|property|#elements held against it|#not covered|#beyond|#cases with one beyond|#worst over that bound|replay")};
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.alarm) continue;
      const AlarmTally& alarm = *property.tally.alarm;
      const Text replay = property.alarm_case.empty()
                              ? Text()
                              : folded_line(fmt::format("case {}", alarm.worst_k),
                                            replay_line(folder, property.alarm_case) + " --alarm");
      table.rows.push_back(
          {{theirs(kernel.name), theirs(kernel.dtype), theirs(property.name), alarm.all.elements, alarm.all.uncovered,
            alarm.all.beyond, alarm.cases, alarm.worst_k < 0 ? "–" : short_number(alarm.all.worst), replay},
           {tags_of(kernel).kernel, property.name}});
    }
  }
  if (!table.rows.empty()) blocks.emplace_back(std::move(table));
  return blocks;
}

}  // namespace attest
