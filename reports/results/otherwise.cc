#include "reports/results/otherwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/language/skip_reasons.h"

namespace attest {
namespace {

/// What a kernel would have to have for cases that were skipped for that reason.
std::string_view need_of(std::string_view why) {
  static constexpr std::pair<std::string_view, std::string_view> needs[] = {
      {"masks do not list", "a mask"},
      {"the manifest's mask", "another mask"},
      {"the manifest's causal", "a causal form"},
      {"the manifest's lse", "a log-sum-exp"},
      {"the manifest's grouped_query", "grouped queries"},
      {"the manifest's group_sizes", "other groups"},
      {"strides", "strides"},
      {"the manifest's kv_dtypes", "other formats of k and v"},
      {"promises no arithmetic", "a promised arithmetic"},
      {"the manifest's is inv-sqrt-dk", "another scale"},
      {"the manifest's arguments", "further arguments"},
      {"the manifest's", "other shapes"}};
  for (const auto& [part, need] : needs)
    if (why.find(part) != std::string_view::npos) return need;
  return {};
}

/// Why a property was judged in no case.
struct NotJudged {
  bool about_the_kernels = false;  ///< it is about what one of them does
  std::string need{};              ///< of the commonest reason; empty: another one
};
NotJudged not_judged(const std::vector<const PropertySummary*>& of) {
  std::map<std::string_view, std::int64_t> needs;
  NotJudged result;
  for (const PropertySummary* property : of) {
    for (const auto& [reason, cases] : property->tally.reasons) {
      if (is_not_about_the_kernel(reason.why)) continue;
      result.about_the_kernels = true;
      needs[need_of(reason.why)] += cases;
    }
  }
  if (!needs.empty())
    result.need = std::ranges::max_element(needs, {}, [](const auto& one) { return one.second; })->first;
  return result;
}

/// The properties of a run that are about what its kernels do, by whether they were judged.
struct Counted {
  std::int64_t judged = 0, hardly = 0, others = 0, needing = 0;
  std::string needs;  ///< of the `needing`, the most first: "13 need a mask, 2 a causal form"
};

Counted counted(const Summary& summary) {
  std::map<std::string_view, std::vector<const PropertySummary*>> by_name;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) by_name[property.name].push_back(&property);
  Counted count;
  std::map<std::string, std::int64_t> needs;
  for (const auto& [name, of] : by_name) {
    const auto is_judged = [](const PropertySummary* one) {
      return one->verdict != Outcome::skipped && one->tally.judged() > 0 && !one->hardly_tested;
    };
    if (std::ranges::any_of(of, is_judged)) {
      ++count.judged;
    } else if (std::ranges::any_of(of, [](const PropertySummary* one) { return one->hardly_tested; })) {
      ++count.hardly;
    } else if (const NotJudged why = not_judged(of); why.about_the_kernels) {
      ++(why.need.empty() ? count.others : needs[why.need]);
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [need, properties] : needs) count.needing += properties, order.emplace_back(-properties, need);
  std::ranges::sort(order);
  for (const auto& [properties, need] : order)
    count.needs += fmt::format("{}{}{} {}", count.needs.empty() ? "" : ", ", -properties,
                               !count.needs.empty() ? ""
                               : properties == -1   ? " needs"
                                                    : " need",
                               need);
  return count;
}

}  // namespace

OtherwiseRight otherwise_right(const Summary& summary) {
  OtherwiseRight right;
  // Bins of what is held: the upper edge of the last is 1.
  std::array<std::int64_t, 56> bins{};
  std::int64_t counted = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.verdict != Outcome::violated) continue;
    for (const PropertySummary& property : kernel.properties) {
      right.cases += property.tally.held;
      if (property.statistical) continue;
      counted += property.tally.held;
      for (std::size_t bin = 0; bin < bins.size(); ++bin) bins[bin] += property.tally.histogram[bin];
    }
  }
  // From above: a violated case that lies here, as of a law about bits, makes the share no smaller.
  std::int64_t above = 0;
  for (std::size_t bin = bins.size(); bin-- > 1;) {
    above += bins[bin];
    if (100 * above <= counted) continue;
    right.share = std::exp2((static_cast<double>(bin) - 55) / 4);
    break;
  }
  return right;
}

std::string properties_text(const Summary& summary) {
  const Counted count = counted(summary);
  const std::int64_t all = count.judged + count.hardly + count.others + count.needing;
  if (all == 0) return {};
  std::string why = count.needs;
  if (count.hardly > 0) why += fmt::format("{}{} hardly tested", why.empty() ? "" : ", ", count.hardly);
  if (count.others > 0) why += fmt::format("{}{} not judged", why.empty() ? "" : ", ", count.others);
  return fmt::format("{} of {} {}{}", count.judged, all, all == 1 ? "property" : "properties",
                     why.empty() ? "" : fmt::format(" ({})", why));
}

std::string needs_text(const Summary& summary) {
  const Counted count = counted(summary);
  return count.needs.empty() ? "" : fmt::format("of other properties {}", count.needs);
}

}  // namespace attest
