#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reports/page/print.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using Candidate = std::pair<const KernelSummary*, const PropertySummary*>;

double utilisation_of_case(const Candidate& one) {
  return one.second->tally.worst_utilisation;
}

}  // namespace

Blocks worst_cases_page(const Reported& run) {
  const Summary& summary = run.summary;
  const std::string& folder = run.folder;
  std::vector<Candidate> worst;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties)
      if (!property.worst_case.empty() && property.tally.worst_utilisation != 0.0)
        worst.emplace_back(&kernel, &property);
  }
  if (worst.empty()) return {Paragraph{"None was judged."}};
  // The table can be sorted, but a page of ten thousand cases opens slowly.
  constexpr std::size_t most = 500;
  const std::size_t left_out = worst.size() - std::min(most, worst.size());
  if (left_out > 0) {
    std::ranges::nth_element(worst, worst.begin() + most, std::greater(), utilisation_of_case);
    worst.resize(most);
    std::ranges::sort(worst, std::greater(), utilisation_of_case);
  }
  Table table{"The worst case of each property, kernel and dtype",
              columns_of("kernel|dtype|property|#worst of cases|replay")};
  for (const auto& [kernel, property] : worst) {
    const Tally& tally = property->tally;
    table.rows.push_back(
        {{theirs(kernel->name), theirs(kernel->dtype), theirs(property->name), worst_text(tally),
          folded_line(fmt::format("case {}", tally.worst_k), replay_line(folder, property->worst_case))},
         tags_of(*kernel, *property)});
  }
  Blocks blocks{std::move(table)};
  if (left_out > 0)
    blocks.emplace_back(
        Paragraph{fmt::format("{} more of smaller utilisation are in summary.json.", left_out), "note"});
  return blocks;
}

Brief worst_cases_brief(const Reported& run) {
  const Summary& summary = run.summary;
  const std::string& folder = run.folder;
  std::vector<Candidate> worst;
  for (const KernelSummary& kernel : summary.kernels) {
    const PropertySummary* of_it = kernel.worst();
    if (of_it != nullptr && !of_it->worst_case.empty() && of_it->tally.worst_utilisation > 0)
      worst.emplace_back(&kernel, of_it);
  }
  // The largest first, of equals as the kernels come.
  std::ranges::sort(worst, {}, [](const Candidate& one) { return std::pair(-utilisation_of_case(one), one.first); });
  CodeLines lines;
  for (const auto& [kernel, property] : worst) {
    lines.lines.push_back(fmt::format("# {}, {}: {} of what is allowed, {}\n{}", code_line(kernel->name),
                                      code_line(kernel->dtype), short_number(property->tally.worst_utilisation),
                                      code_line(property->name), replay_line(folder, property->worst_case)));
  }
  return {"Worst known cases",
          "worst cases",
          {Paragraph{"The worst that these cases showed: the true worst may be worse."}},
          {std::move(lines)}};
}

}  // namespace attest
