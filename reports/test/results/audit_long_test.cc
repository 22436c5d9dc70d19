// The whole audit as `attest audit` has it: every catchable fault within 20 000 cases or those of a check by default,
// not one false alarm in a million cases of correct kernels, and no rule of another project that catches as much or
// cries wolf as seldom.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "reports/formats/audit_text.h"
#include "reports/results/audit.h"

namespace attest {
namespace {

TEST(WholeAudit, CatchesEveryFaultAndFlagsNoControl) {
  AuditPlan plan;
  plan.check_cases = default_check;
  plan.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (const PlantedFault& fault : planted_faults()) plan.faults.push_back(&fault);
  for (const ControlKernel& control : controls()) plan.controls.push_back(&control);
  const AuditResult result = audit(plan, [] { return false; }, [](const AuditedKernel&) {});
  fmt::print("{}\n", audit_summary(result, plan));
  EXPECT_TRUE(result.passed());

  std::int64_t judged = 0, caught = 0, flagged = 0;
  std::array<std::int64_t, other_rule_count> told{}, rejected{};
  for (const AuditedKernel& fault : result.of_faults) {
    caught += fault.caught.empty() ? 0 : 1;
    for (std::size_t rule = 0; rule < other_rule_count; ++rule) told[rule] += fault.told_apart[rule] ? 1 : 0;
  }
  for (const AuditedKernel& control : result.of_controls) {
    judged += control.judged;
    for (const auto& [property, cases] : control.flagged) flagged += cases;
    for (std::size_t rule = 0; rule < other_rule_count; ++rule) rejected[rule] += control.rejected[rule];
  }
  EXPECT_GE(judged, 1'000'000);
  for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
    EXPECT_GT(caught, told[rule]) << other_rules()[rule].name;
    EXPECT_LT(flagged, rejected[rule]) << other_rules()[rule].name;
  }
}

}  // namespace
}  // namespace attest
