#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "reports/page/html_elements.h"
#include "reports/run/run_folder.h"
#include "reports/sections/html_sections.h"

namespace attest {

std::string worst_cases_html(const Summary& summary, const std::string& folder) {
  std::vector<std::pair<const KernelSummary*, const PropertySummary*>> worst;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties)
      if (!property.worst_case.empty() && property.tally.worst_utilisation != 0.0)
        worst.emplace_back(&kernel, &property);
  }
  if (worst.empty()) return "<p>None was judged.</p>";
  // The table can be sorted, but a page of ten thousand cases opens slowly.
  constexpr std::size_t most = 500;
  const std::size_t left_out = worst.size() - std::min(most, worst.size());
  if (left_out > 0) {
    const auto size = [](const auto& one) { return one.second->tally.worst_utilisation; };
    std::ranges::nth_element(worst, worst.begin() + most, std::greater(), size);
    worst.resize(most);
    std::ranges::sort(worst, std::greater(), size);
  }
  std::string rows;
  for (const auto& [kernel, property] : worst) {
    rows += fmt::format(
        "<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}<td>{}</td></tr>",
        tags(kernel_words(*kernel), property->name, name_of(property->verdict)), escaped(kernel->name),
        escaped(kernel->dtype), escaped(property->name), number_cell(worst_text(property->tally)),
        folded_line(fmt::format("case {}", property->tally.worst_k), replay_line(folder, property->worst_case)));
  }
  return table_html("The worst case of each property, kernel and dtype",
                    {{"kernel"}, {"dtype"}, {"property"}, {"utilisation", true}, {"replay"}}, rows) +
         (left_out == 0
              ? std::string()
              : fmt::format("<p class=\"note\">{} more of smaller utilisation are in summary.json.</p>", left_out));
}

}  // namespace attest
