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
  std::int64_t cases = 20'000;           ///< per fault, over all properties and dtypes
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
};

struct AuditResult {
  std::vector<std::string> properties;  ///< that faults and controls have an entry for, in the catalogue's order
  std::vector<const PlantedFault*> faults;
  std::vector<AuditedKernel> of_faults, of_controls;  ///< finished ones only, in the catalogue's order
  bool interrupted = false;
  /// Every catchable fault is caught, and neither a control nor a fault that outputs cannot show is flagged.
  [[nodiscard]] bool passed() const;
};

/// Runs it. The same for any number of jobs. `stop` ends it between two cases; `finished` hears of each kernel, one
/// thread at a time.
[[nodiscard]] AuditResult audit(const AuditPlan& plan, const std::function<bool()>& stop,
                                const std::function<void(const AuditedKernel&)>& finished);

}  // namespace attest
