#include <attest/check_property.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>

#include "core/problem/describe.h"
#include "core/support/errors.h"
#include "properties/catalogue/property.h"
#include "properties/road/case_budget.h"
#include "properties/road/repeat.h"

namespace attest {
namespace {

std::string violation_text(const Property& property, Kernel& kernel, const Case& violating, const Verdict& found,
                           std::int64_t k, std::uint64_t seed, std::string_view kernel_option) {
  constexpr std::int64_t times = 8;
  const std::int64_t again =
      violated_again([&](Kernel& asked) { return check_case(property, asked, violating); }, kernel, times);
  Case smallest = again == times ? shrink(property, kernel, violating) : violating;
  Verdict verdict = check_case(property, kernel, smallest);
  // What a kernel keeps between calls, or a race, may have changed it: then what was found is what is known.
  if (again < times || verdict.outcome != Outcome::violated) {
    smallest = violating, verdict = found;
    verdict.reason += fmt::format("; not repeatable: checked again at once it was violated in {} of {}", again, times);
  }
  std::string text = fmt::format("{} is violated by {} in {}, case {} of seed {}\n  {}\nthe {}case:\n{}", property.name,
                                 kernel.id(), name_of(violating.dtype()), k, seed, verdict.reason,
                                 smallest.provenance.shrunk.has_value() ? "shrunk " : "", describe(smallest));
  if (text.back() != '\n') text += '\n';
  if (!kernel_option.empty()) {
    text += fmt::format("again: attest check --kernel '{}' --property {} --dtype {} --seed {} --cases {}\n",
                        kernel_option, property.name, name_of(violating.dtype()), seed, k + 1);
  }
  return text;
}

std::string reasons_text(const std::map<std::string, std::int64_t>& reasons) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  sorted.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
  std::ranges::sort(sorted);
  std::string text;
  constexpr std::size_t shown = 3;
  for (std::size_t i = 0; i < std::min(shown, sorted.size()); ++i)
    text += fmt::format("{}{} x {}", i == 0 ? "" : "; ", -sorted[i].first, sorted[i].second);
  if (sorted.size() > shown) text += fmt::format("; and {} further reasons", sorted.size() - shown);
  return text;
}

}  // namespace

std::vector<std::string> property_names() {
  std::vector<std::string> names;
  for (const Property* property : catalogue()) names.emplace_back(property->name);
  return names;
}

PropertyReport check_property(std::string_view name, Kernel& kernel, DType dtype, std::int64_t cases,
                              std::uint64_t seed, std::string_view kernel_option) {
  const auto found = std::ranges::find(catalogue(), name, [](const Property* p) { return p->name; });
  if (found == catalogue().end()) throw UsageError(fmt::format("{} is no property; see attest list", name));
  const Property& property = **found;
  PropertyReport report;
  const Manifest& manifest = kernel.manifest();
  if (property.operation == Operation::attention ? !manifest.attention : !manifest.multihead) {
    report.skipped = cases;
    report.text = fmt::format("the kernel has no {} entry", name_of(property.operation));
    return report;
  }
  std::map<std::string, std::int64_t> reasons;
  for (std::int64_t k = 0; k < cases; ++k) {
    Case c;
    try {
      c = project(generate(property, dtype, seed, k), manifest);
    } catch (const std::bad_alloc&) {
      ++report.skipped;
      ++reasons[std::string(out_of_memory)];
      continue;
    }
    const Verdict verdict = check_case(property, kernel, c);
    switch (verdict.outcome) {
      case Outcome::violated:
        report.outcome = Outcome::violated;
        report.text = violation_text(property, kernel, c, verdict, k, seed, kernel_option);
        return report;
      case Outcome::held:
        ++report.held;
        continue;
      case Outcome::skipped:
        ++report.skipped;
        break;
      case Outcome::excused:
        ++report.excused;
        break;
      case Outcome::inconclusive:
        ++report.inconclusive;
        break;
    }
    ++reasons[fmt::format("{}: {}", name_of(verdict.outcome), verdict.reason)];
  }
  if (report.held > 0) {
    report.outcome = Outcome::held;
    return report;
  }
  report.outcome = report.inconclusive > 0 ? Outcome::inconclusive : Outcome::skipped;
  report.text = reasons_text(reasons);
  return report;
}

}  // namespace attest
