#include "reports/results/summary_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reports/results/drawn.h"
#include "reports/text/text.h"

namespace attest {
namespace {

std::string reach_text(const std::optional<Reach>& reach, bool unknown) {
  return reach ? reach_text(*reach) : unknown ? "unknown" : "";
}

}  // namespace

std::string reach_text(const Reach& reach) {
  return fmt::format("M {}, N {}, dk {}, {} {}", reach.queries, reach.keys, reach.dk, reach.heads,
                     reach.heads == 1 ? "head" : "heads");
}

std::string reach_text(const KernelSummary& kernel) {
  return reach_text(kernel.reach(), kernel.reach_unknown());
}

std::string reach_text(const Tally& tally) {
  return reach_text(tally.reach, tally.reach_unknown());
}

std::vector<std::string> reach_lines(const Summary& summary) {
  if (!summary.against.empty()) return {};
  // In the order in which the reaches come up first.
  std::vector<std::pair<std::string, std::vector<const KernelSummary*>>> groups;
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.judged() == 0) continue;
    const std::string reach = reach_text(kernel);
    const auto group = std::ranges::find(groups, reach, [](const auto& one) { return one.first; });
    if (group == groups.end())
      groups.push_back({reach, {&kernel}});
    else
      group->second.push_back(&kernel);
  }
  std::vector<std::string> lines;
  lines.reserve(groups.size());
  for (const auto& [reach, kernels] : groups) {
    std::set<std::string> names;
    for (const KernelSummary* kernel : kernels) names.insert(fmt::format("{} {}", kernel->name, kernel->dtype));
    const std::string whose = groups.size() > 1 ? some_of(names) + ": " : "";
    if (reach.empty())
      lines.push_back(fmt::format("{}nothing was judged against the exact answer\n", whose));
    else if (reach == "unknown")
      lines.push_back(
          fmt::format("{}how far it was judged against the exact answer is unknown: an older journal\n", whose));
    else
      lines.push_back(fmt::format("{}judged against the exact answer up to {}\n", whose, reach));
  }
  return lines;
}

}  // namespace attest
