// The audit of the suite itself: which planted fault which property catches, whether a correct kernel is flagged, and
// what the rules of other projects make of the same calls.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "properties/catalogue/property.h"
#include "properties/faults/faults.h"
#include "reports/results/other_rules.h"

namespace attest {

struct AuditPlan {
  std::vector<const PlantedFault*> faults;
  std::vector<const ControlKernel*> controls;
  std::int64_t cases = 20'000;   ///< per fault, over all properties and dtypes
  std::int64_t check_cases = 0;  ///< of each property in each dtype, for a fault that nothing has caught by then
  std::int64_t control_cases = 100'000;  ///< judged cases per control
  std::uint64_t seed = 1;
  int jobs = 1;
};

/// The first case of a property that a kernel violates.
struct FirstCatch {
  std::int64_t k;      ///< its number among the property's cases in the dtype, as `attest check` counts
  std::int64_t spent;  ///< cases of all properties up to and with it
  DType dtype;
};

/// "20000 cases each, or the first 1000 of each property": how many cases a fault has until it counts as missed.
[[nodiscard]] std::string audit_cases(std::int64_t cases, std::int64_t check_cases);

/// One kernel on its cases. Cases of all properties and dtypes in turn, so `spent` means the same for all.
struct AuditedKernel {
  std::string name;
  std::map<std::string, FirstCatch> caught;               ///< by property
  std::map<std::string, std::int64_t> flagged;            ///< cases that a property flagged; a fault's first only
  std::int64_t cases = 0;                                 ///< drawn
  std::int64_t judged = 0;                                ///< of those, held or violated
  std::int64_t ruled = 0;                                 ///< calls that the rules of others spoke of
  std::array<std::int64_t, other_rule_count> rejected{};  ///< of those, by each rule
  /// Of a fault: cases until a rule rejected it in a call in which it accepts the same kernel without the mistake.
  std::array<std::optional<std::int64_t>, other_rule_count> told_apart{};
  /// The fewest cases until a property flags it.
  [[nodiscard]] std::optional<std::int64_t> needed() const;
  /// Whether a check of as many cases of each property in each dtype flags it, with the audit's seed.
  [[nodiscard]] bool caught_by_check(std::int64_t cases_of_each) const;
};

/// What a check by default and one in a test suite, as the README has it, draw of each property in each dtype.
inline constexpr std::int64_t default_check = 1000, short_check = 200;

/// How the faults of a kind fared; without those that outputs cannot show.
struct KindScore {
  FaultKind kind;
  std::int64_t faults = 0;
  std::int64_t caught = 0;
  std::int64_t by_short_check = 0;  ///< of those, by short_check
};

struct AuditResult {
  std::vector<std::string> properties;  ///< that faults and controls have an entry for, in the catalogue's order
  std::vector<const PlantedFault*> faults;
  std::vector<AuditedKernel> of_faults, of_controls;  ///< finished ones only, in the catalogue's order
  bool interrupted = false;
  /// Every catchable fault is caught, and neither a control nor a fault that outputs cannot show is flagged.
  [[nodiscard]] bool passed() const;
  /// Of kinds that have a fault, in their order.
  [[nodiscard]] std::vector<KindScore> by_kind() const;
};

/// Runs it. The same for any number of jobs. `stop` ends it between two cases; `finished` hears of each kernel, one
/// thread at a time.
[[nodiscard]] AuditResult audit(const AuditPlan& plan, const std::function<bool()>& stop,
                                const std::function<void(const AuditedKernel&)>& finished);

}  // namespace attest
