#include "reports/results/refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/results/drawn.h"
#include "reports/run/text.h"

namespace attest {

std::string refusals_text(const KernelSummary& kernel) {
  // As answers of that status are told (answer.h).
  constexpr std::string_view refused = "skipped: unsupported";
  std::map<std::string, std::int64_t> reasons;
  std::set<std::string> hardly_judged;
  std::int64_t all = 0;
  for (const PropertySummary& property : kernel.properties) {
    std::int64_t count = 0;
    for (const auto& [reason, cases] : property.tally.reasons) {
      if (!reason.starts_with(refused)) continue;
      reasons[reason.substr(std::string_view("skipped: ").size())] += cases;
      count += cases;
    }
    all += count;
    if (count > 0 && property.tally.judged() < std::max<std::int64_t>(1, enough_of(property.tally.cases())))
      hardly_judged.insert(property.name);
  }
  if (hardly_judged.empty()) return {};
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& one) { return one.second; });
  return fmt::format(
      "in {} it refused {} cases that its manifest offers, most often ({}) as {}; hardly judged for that: {}",
      one_line(kernel.dtype), all, most->second, one_line(most->first), some_of(hardly_judged));
}

}  // namespace attest
