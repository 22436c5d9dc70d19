#include <attest/check_property.h>
#include <attest/rapidcheck.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "core/journal/journal.h"
#include "core/problem/describe.h"
#include "core/support/errors.h"
#include "core/support/visible.h"
#include "properties/catalogue/property.h"
#include "properties/road/offered.h"
#include "properties/road/repeat.h"
#include "properties/road/road.h"
#include "properties/road/shrink_budget.h"

namespace attest {
namespace {

/// What RC_PARAMS says, and where it says nothing: these cases and this seed.
rc::detail::TestParams parameters(std::int64_t cases, std::uint64_t seed) {
  rc::detail::Configuration configuration;
  configuration.testParams.seed = seed;
  configuration.testParams.maxSuccess =
      static_cast<int>(std::min<std::int64_t>(cases, std::numeric_limits<int>::max()));
  const char* const said = std::getenv("RC_PARAMS");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (said == nullptr) return configuration.testParams;
  try {
    return rc::detail::configFromString(said, configuration).testParams;
  } catch (const rc::detail::ConfigurationException& wrong) {
    throw UsageError(fmt::format("RC_PARAMS is \"{}\": {}", visible(said), wrong.what()));
  }
}

/// The property as RapidCheck sees it: a case passes unless it is violated, and while a violated case is being shrunk,
/// unless it is violated in the same way.
class Testable {
 public:
  Testable(const Property& property, Kernel& kernel) : property_(property), kernel_(kernel) {}

  void check(const Case& c) {
    // RapidCheck's shrinking has no limit of its own.
    if (found_ && budget_-- <= 0) return;
    const Verdict verdict = walk(road_, property_, kernel_, [&] { return c; }).verdict;
    if (!found_) tally_.add(drawn_++, verdict);
    if (verdict.outcome != Outcome::violated || (found_ && !is_the_same(verdict))) return;
    if (!found_) {
      again_ = violated_again([&](Kernel& asked) { return check_case(property_, asked, c); }, kernel_, times);
      // What a kernel keeps between calls, or a race, may have changed it: then what was found is what is known.
      budget_ = again_ == times ? shrink_budget(verdict.violation) : 0;
      found_ = verdict;
    }
    smallest_ = c;
    smallest_verdict_ = verdict;
    RC_FAIL(verdict.reason);
  }

  [[nodiscard]] std::string violation_text(const rc::detail::FailureResult& result,
                                           std::string_view kernel_option) const {
    const std::string &k = smallest_.provenance.k.value(), &seed = smallest_.provenance.seed.value();
    const std::string_view dtype = name_of(smallest_.dtype());
    const std::size_t shrinks = result.reproduce.shrinkPath.size();
    std::string text = fmt::format("{} is violated by {} in {}, case {} of seed {}\n  {}", property_.name, kernel_.id(),
                                   dtype, k, seed, smallest_verdict_.reason);
    if (again_ < times)
      text += fmt::format("; not repeatable: checked again at once it was violated in {} of {}", again_, times);
    text +=
        fmt::format("\nafter {} case{}{}; the {}case:\n{}", result.numSuccess + 1, result.numSuccess == 0 ? "" : "s",
                    shrinks == 0 ? "" : fmt::format(" and {} shrink{}", shrinks, shrinks == 1 ? "" : "s"),
                    shrinks == 0 ? "" : "shrunk ", describe(smallest_));
    if (text.back() != '\n') text += '\n';
    if (!kernel_option.empty()) {
      text += fmt::format("again: attest check --kernel '{}' --property {} --dtype {} --seed {} --cases {}\n",
                          kernel_option, property_.name, dtype, seed, std::stoll(k) + 1);
    }
    return text;
  }

  [[nodiscard]] bool found() const { return found_.has_value(); }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  static constexpr std::int64_t times = 8;

  /// A crash stays a crash, an infinite error infinite, and a large one at least twice what is allowed.
  [[nodiscard]] bool is_the_same(const Verdict& verdict) const {
    return verdict.violation == found_->violation && verdict.utilisation >= std::min(2.0, found_->utilisation) &&
           (!std::isinf(found_->utilisation) || std::isinf(verdict.utilisation));
  }

  const Property& property_;
  /// Cases of RapidCheck's are within the limits of the manifest as they are drawn.
  const Road road_ = without_projection({});
  WatchedKernel kernel_;
  Tally tally_;
  std::int64_t drawn_ = 0;
  std::optional<Verdict> found_;
  std::int64_t again_ = times;
  int budget_ = 0;
  Case smallest_;
  Verdict smallest_verdict_;
};

std::string reasons_text(const std::map<Reason, std::int64_t>& reasons) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  sorted.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason.text());
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
  const Property& property = property_named(name);
  const Manifest& manifest = kernel.manifest();
  if (!manifest.has(property.operation)) {
    PropertyReport report;
    report.skipped = cases;
    report.text = fmt::format("the kernel has no {} entry", name_of(property.operation));
    return report;
  }
  Testable testable(property, kernel);
  const rc::Gen<Case> drawn = cases_of(name, dtype, manifest);
  rc::detail::TestMetadata metadata;
  metadata.id = metadata.description = fmt::format("{} {}", name, name_of(dtype));
  const rc::detail::TestResult result =
      rc::detail::checkTestable([&] { testable.check(*drawn); }, metadata, parameters(cases, seed));
  const Tally& tally = testable.tally();
  PropertyReport report;
  report.held = tally.held, report.skipped = tally.skipped;
  report.excused = tally.excused, report.inconclusive = tally.inconclusive;
  if (result.is<rc::detail::FailureResult>()) {
    const auto& failure = result.get<rc::detail::FailureResult>();
    // RapidCheck takes every exception for a failure of the property; one of ours is no verdict on the kernel.
    if (!testable.found()) throw std::runtime_error(fmt::format("{}: {}", metadata.id, failure.description));
    report.outcome = Outcome::violated;
    report.text = testable.violation_text(failure, kernel_option);
  } else if (!result.is<rc::detail::SuccessResult>()) {
    std::ostringstream why;
    rc::detail::printResultMessage(result, why);
    report.outcome = Outcome::inconclusive;
    report.text = why.str();
  } else if (std::string why = hardly_tested(tally); !why.empty()) {
    report.outcome = Outcome::inconclusive;
    report.text = std::move(why);
  } else if (why = hardly_offered(tally); report.held > 0 && !why.empty()) {
    report.text = std::move(why);
  } else if (report.held > 0) {
    report.outcome = Outcome::held;
  } else {
    report.outcome = report.inconclusive > 0 ? Outcome::inconclusive : Outcome::skipped;
    report.text = reasons_text(tally.reasons);
  }
  return report;
}

}  // namespace attest
