// The audit on a few kernels, its verdict on itself, and the rules of other projects.
#include "reports/results/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "properties/test/catalogue/tampered.h"
#include "reports/formats/audit_text.h"

namespace attest {
namespace {

const PlantedFault* fault(std::string_view name) {
  return &*std::ranges::find(planted_faults(), name, &PlantedFault::name);
}
const ControlKernel* control(std::string_view name) {
  return &*std::ranges::find(controls(), name, &ControlKernel::name);
}

AuditPlan small_plan() {
  AuditPlan plan;
  plan.faults = {fault("all-zeros"), fault("lse-base-two"), fault("constant-shift"), fault("mask-scaled")};
  plan.controls = {control("bf16-weights")};
  plan.cases = 600;
  plan.control_cases = 1500;
  return plan;
}

AuditResult run(const AuditPlan& plan) {
  return audit(plan, [] { return false; }, [](const AuditedKernel&) {});
}

constexpr std::size_t two_times_rule = 2;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Audit, SaysWhoCatchesWhomAndWhatOthersMakeOfIt) {
  const AuditPlan plan = small_plan();
  const AuditResult result = run(plan);
  ASSERT_EQ(result.of_faults.size(), 4U);
  EXPECT_TRUE(result.passed());
  const AuditedKernel &zeros = result.of_faults[0], &lse = result.of_faults[1], &shift = result.of_faults[2];
  EXPECT_TRUE(zeros.caught.contains("attention.oracle"));
  // Every rule sees zeros; none sees a log-sum-exp.
  for (std::size_t rule = 0; rule < other_rule_count; ++rule) {
    EXPECT_TRUE(zeros.told_apart[rule]) << other_rules()[rule].name;
    EXPECT_FALSE(lse.told_apart[rule]) << other_rules()[rule].name;
  }
  EXPECT_TRUE(lse.caught.contains("attention.oracle"));
  EXPECT_TRUE(shift.caught.empty());
  EXPECT_EQ(shift.cases, plan.cases);
  for (const auto& [property, first] : zeros.caught) EXPECT_LE(first.spent, plan.cases) << property;
  ASSERT_EQ(result.of_controls.size(), 1U);
  EXPECT_EQ(result.of_controls[0].judged, plan.control_cases);
  EXPECT_TRUE(result.of_controls[0].flagged.empty());
  // Weights in bf16 are legitimate where they are declared; allclose does not ask.
  EXPECT_GT(result.of_controls[0].rejected[0], 0);
}

TEST(Audit, IsTheSameForAnyNumberOfJobs) {
  AuditPlan plan = small_plan();
  const AuditResult one = run(plan);
  plan.jobs = 3;
  EXPECT_EQ(audit_json(run(plan), plan), audit_json(one, plan));
}

TEST(Audit, CountsACatchAtTheCaseThatCheckFindsIt) {
  AuditPlan plan = small_plan();
  const AuditResult result = run(plan);
  const auto kernel = registered("fault:mask-scaled");
  ASSERT_FALSE(result.of_faults[3].caught.empty());
  for (const auto& [name, first] : result.of_faults[3].caught) {
    const Property& property = *properties_matching(name).at(0);
    const auto violated = [&](std::int64_t k) {
      const Case c = project(generate(property, first.dtype, plan.seed, k), kernel->manifest());
      return check_case(property, *kernel, c).outcome == Outcome::violated;
    };
    EXPECT_TRUE(violated(first.k)) << name;
    for (std::int64_t k = 0; k < first.k; ++k) EXPECT_FALSE(violated(k)) << name << " " << k;
  }
}

TEST(Audit, FailsForAFaultThatIsMissedAndForAFalseAlarm) {
  AuditResult result;
  result.faults = {fault("all-zeros"), fault("constant-shift")};
  result.of_faults.resize(2);
  EXPECT_FALSE(result.passed()) << "a fault is missed";
  result.of_faults[0].caught.emplace("attention.oracle", FirstCatch{0, 1, DType::f32});
  EXPECT_TRUE(result.passed());
  result.of_faults[1].caught.emplace("attention.oracle", FirstCatch{0, 1, DType::f32});
  EXPECT_FALSE(result.passed()) << "what outputs cannot show is flagged";
  result.of_faults[1].caught.clear();
  result.of_controls.resize(1);
  EXPECT_TRUE(result.passed());
  result.of_controls[0].flagged["attention.oracle"] = 1;
  EXPECT_FALSE(result.passed()) << "a correct kernel is flagged";
}

TEST(Audit, GivesWhatIsMissedTheCasesOfACheckAndNoOther) {
  AuditPlan plan;
  // One case of some properties; the first hundred of all but what is caught show both.
  plan.faults = {fault("all-zeros"), fault("index-wraps"), fault("constant-shift")};
  plan.cases = 40;
  EXPECT_TRUE(run(plan).of_faults[1].caught.empty());
  plan.check_cases = 300;
  const AuditResult result = run(plan);
  EXPECT_TRUE(result.passed());
  EXPECT_EQ(result.of_faults[0].cases, plan.cases) << "is caught by then";
  EXPECT_GT(result.of_faults[1].cases, plan.cases);
  EXPECT_EQ(result.of_faults[1].cases, result.of_faults[1].needed()) << "is done when it is caught";
  EXPECT_EQ(result.of_faults[2].cases, plan.cases) << "outputs cannot show it";
}

TEST(Audit, CountsByKindWhatAShortCheckCatches) {
  AuditResult result;
  result.faults = {fault("all-zeros"), fault("lse-base-two"), fault("constant-shift"), fault("padded-keys-count")};
  result.of_faults.resize(4);
  result.of_faults[0].caught.emplace("attention.oracle", FirstCatch{short_check - 1, 5000, DType::f32});
  result.of_faults[1].caught.emplace("attention.oracle", FirstCatch{short_check, 5001, DType::f32});
  const std::vector<KindScore> kinds = result.by_kind();
  ASSERT_EQ(kinds.size(), 2U) << "outputs cannot show constant-shift";
  EXPECT_EQ(kinds[0].kind, FaultKind::numbers);
  EXPECT_EQ(kinds[0].faults, 2);
  EXPECT_EQ(kinds[0].caught, 2);
  EXPECT_EQ(kinds[0].by_short_check, 1);
  EXPECT_EQ(kinds[1].kind, FaultKind::partial_tile);
  EXPECT_EQ(kinds[1].faults, 1);
  EXPECT_EQ(kinds[1].caught, 0);
}

TEST(Audit, LeavesWhatIsDoneWhenStopped) {
  std::atomic<int> finished = 0;
  const AuditPlan plan = small_plan();
  const AuditResult result = audit(plan, [&] { return finished >= 2; }, [&](const AuditedKernel&) { ++finished; });
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.of_controls.size() + result.of_faults.size(), 2U);
  EXPECT_EQ(result.faults.size(), result.of_faults.size());
}

/// Two queries of two keys, the second hidden from the second query; values 1 and 3, all scores 0.
Case two_rows(DType dtype) {
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, 2, 1});
  c[Slot::k] = Tensor(dtype, {1, 1, 2, 1});
  c[Slot::v] = Tensor(dtype, {1, 1, 2, 1}, std::array{1.0, 3.0});
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2}, std::array{1.0, 1.0, 1.0, 0.0});
  return c;
}
Tensor answer(DType dtype, double first, double second) {
  return {dtype, {1, 1, 2, 1}, std::array{first, second}};
}

TEST(OtherRules, AcceptTheExactAnswerAndNoNaN) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Yardstick yardstick(two_rows(dtype));
    EXPECT_TRUE(yardstick.says_something());
    EXPECT_TRUE(yardstick.rejecting(answer(dtype, 2, 1)).none());
    EXPECT_TRUE(yardstick.rejecting(answer(dtype, 2, nan)).all());
    EXPECT_TRUE(yardstick.rejecting(answer(dtype, 2, -INFINITY)).all());
    EXPECT_TRUE(yardstick.rejecting(answer(dtype, 0, 0)).all());
  }
}

TEST(OtherRules, HaveTheTolerancesTheyState) {
  const Yardstick yardstick(two_rows(DType::f32));
  const auto rejects = [&](double error) { return yardstick.rejecting(answer(DType::f32, 2 + error, 1)); };
  // allclose 3.6e-6 + 1e-5 at 2; five-times and two-times 1e-5; mean-square sqrt(5e-4 * 5) = 0.05; twice-f32 nothing,
  // as f32 has this answer exactly.
  EXPECT_EQ(rejects(0x1p-17).to_string(), "10000000");  // 7.6e-6
  EXPECT_EQ(rejects(1.1e-5).to_string(), "10000110");   // allclose allows 1.26e-5
  EXPECT_EQ(rejects(1.5e-5).to_string(), "10000111");
  EXPECT_EQ(rejects(1.5e-3).to_string(), "10010111");  // relative allows 2e-3
  EXPECT_EQ(rejects(2.5e-3).to_string(), "11010111");
  EXPECT_EQ(rejects(0.03).to_string(), "11110111");
  EXPECT_EQ(rejects(0.06).to_string(), "11111111");
}

TEST(OtherRules, SayNothingOfRowsWithoutKeys) {
  Case c = two_rows(DType::f32);
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2}, std::array{1.0, 1.0, 0.0, 0.0});
  EXPECT_TRUE(Yardstick(c).rejecting(answer(DType::f32, 2, nan)).none());
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2});
  EXPECT_FALSE(Yardstick(c).says_something());
}

TEST(OtherRules, MeasureByThePlainFormulaInTheDtype) {
  // 0.1 is not a bf16: the plain formula errs by what its roundings do, and five times that is allowed.
  Case c = two_rows(DType::bf16);
  c[Slot::v] = Tensor(DType::bf16, {1, 1, 2, 1}, std::array{1.0, 1.0078125});
  const Yardstick yardstick(c);
  // Exactly 1.00390625, which rounds to 1 in bf16: an error of 0.0039, so 0.0195 is allowed, and not 0.02.
  EXPECT_FALSE(yardstick.rejecting(answer(DType::bf16, 1.0078125 + 0.0078125, 1))[1]);
  EXPECT_TRUE(yardstick.rejecting(answer(DType::bf16, 1.03125, 1))[1]);
}

/// Cases that ask for gradients, of every variant that backward passes have.
std::vector<Case> with_gradients(DType dtype, std::int64_t cases) {
  std::vector<Case> all;
  all.reserve(static_cast<std::size_t>(cases));
  for (std::int64_t k = 0; k < cases; ++k) all.push_back(generate(property_named("backward.oracle-dq"), dtype, 1, k));
  return all;
}
/// The core's, in double.
std::array<Values, gradient_count> right_gradients(Kernel& core, const Case& c) {
  Reply forward = core.run(forward_of(c), c.dtype(), /*want_lse=*/true);
  if (forward.status != CallStatus::ok) return {};
  return core.backward(c, {forward.out.tensor(), forward.lse.tensor()}, c.dtype()).gradients;
}

// Nobody but the kernel knows what it has dropped.
TEST(OtherRules, SayNothingOfGradientsByAMaskThatTheKernelDraws) {
  EXPECT_FALSE(GradientYardstick(generate(property_named("dropout.same-mask"), DType::f32, 1, 0)).says_something());
}

/// How often assert_close rejects what is right, by variant and form.
class RightRejected {
 public:
  void note(const Case& c, bool rejected) {
    const auto count = [&](const std::string& what, bool has) {
      if (has) ++counts_[what].judged, counts_[what].rejected += rejected ? 1 : 0;
    };
    count("all", true);
    count("groups", c.k().shape()[1] < heads_of(c));
    count("masks before the scale", c.mask().present() && convention_of(c) == MaskConvention::pre_scale);
    for (const Variant& variant : variants_of(c)) count(std::string(variant.name), true);
  }
  /// Where double itself does not hold its tolerance of 1e-7, near the edge of the domain; a wrong formula is rejected
  /// in most cases.
  void expect_hardly_any() {
    EXPECT_GT(counts_["all"].judged, 1200);
    EXPECT_GE(counts_.size(), 10U);
    for (const auto& [what, count] : counts_) {
      EXPECT_GE(count.judged, 10) << what;
      EXPECT_LE(count.rejected, count.judged / 5) << what;
    }
  }

 private:
  struct Count {
    std::int64_t judged = 0, rejected = 0;
  };
  std::map<std::string, Count> counts_;
};

// A formula that differed from the definition in a cap, a sink, a mask or a group would reject what is right.
TEST(OtherRules, AcceptTheAnswersOfTheDefinition) {
  const auto core = registered("core:double");
  RightRejected right;
  for (std::int64_t k = 0; k < 3000; ++k) {
    const Case c = project(generate(property_named("attention.finite"), DType::f64, 1, k), core->manifest());
    const Yardstick yardstick(c);
    if (!yardstick.says_something()) continue;
    const Reply reply = core->run(c);
    if (reply.status == CallStatus::ok) right.note(c, yardstick.rejecting(reply.out.tensor()).test(0));
  }
  right.expect_hardly_any();
}

TEST(OtherRules, AcceptTheGradientsOfTheDefinition) {
  const auto core = registered("core:double");
  RightRejected right;
  for (const Case& c : with_gradients(DType::f64, 1500)) {
    const std::array<Values, gradient_count> gradients = right_gradients(*core, c);
    const GradientYardstick yardstick(c);
    if (gradients[0].present() && yardstick.says_something()) right.note(c, yardstick.rejecting(gradients).test(0));
  }
  right.expect_hardly_any();
}

TEST(OtherRules, LookAtEachOfTheGradients) {
  const auto core = registered("core:float");
  std::array<std::int64_t, gradient_count> seen{};
  for (const Case& c : with_gradients(DType::f32, 100)) {
    std::array<Values, gradient_count> found = right_gradients(*core, c);
    const GradientYardstick yardstick(c);
    if (!found[0].present() || yardstick.rejecting(found)[two_times_rule]) continue;
    for (Values& one : found) {
      const Tensor right = one.tensor();
      for (std::int64_t e = 0; e < right.elements(); ++e) one.tensor().set(e, right[e] * 2 + 1);
      seen[static_cast<std::size_t>(&one - found.data())] += yardstick.rejecting(found)[two_times_rule] ? 1 : 0;
      one.tensor() = right;
    }
  }
  for (const Gradient one : every_gradient) {
    const bool always = std::ranges::count(gradients_by_inputs, one) > 0;
    EXPECT_GT(seen[static_cast<std::size_t>(one)], always ? 40 : 4) << name_of(one);
  }
}

TEST(OtherRules, OfGradientsHaveTheTolerancesTheyState) {
  // One key: dv is g, 2 here, and dq and dk are 0; all three formulas have them exactly.
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::d_out})
    c[slot] = Tensor(DType::f32, {1, 1, 1, 1}, std::array{slot == Slot::d_out ? 2.0 : 1.0});
  const GradientYardstick yardstick(c);
  const auto rejects = [&](double dq, double dv) {
    const auto number = [](double x) { return Values(Tensor(DType::f32, {1, 1, 1, 1}, std::array{x})); };
    return yardstick.rejecting({number(dq), number(0), number(dv)}).to_string();
  };
  EXPECT_EQ(rejects(0, 2), "00000000");
  EXPECT_EQ(rejects(0, 2 + 1.1e-5), "10000110");
  EXPECT_EQ(rejects(0, 2.06), "11111111");
  EXPECT_EQ(rejects(1.5e-5, 2), "11001111") << "relative to 0, and no row but this to be the mean of";
  EXPECT_EQ(rejects(nan, 2), "11111111");
}

TEST(Audit, AsksTheRulesOfGradientsToo) {
  AuditPlan plan;
  plan.faults = {fault("delta-unwritten"), fault("dk-dv-without-the-last-query")};
  plan.controls = {control("tiles-of-64")};
  plan.cases = 4000;
  plan.control_cases = 1000;
  const AuditResult result = run(plan);
  EXPECT_TRUE(result.passed());
  for (const AuditedKernel& one : result.of_faults) {
    EXPECT_TRUE(one.caught.contains("backward.given")) << one.name;
    for (const std::size_t rule : {0U, 2U, 7U}) EXPECT_TRUE(one.told_apart[rule]) << one.name << " " << rule;
  }
}

/// A row of ordinary cases whose right answers need that atol beside any rtol.
ToleranceRow needing(const char* dtype, double atol) {
  ToleranceRow row;
  row.dtype = dtype, row.values = "ordinary";
  row.cell.atol.fill(code_of(atol));
  return row;
}

TEST(BesidePytorch, SaysWhatItsDefaultsMissAndRefuse) {
  const std::string refuses = beside_pytorch(needing("bf16", 1e-3)), accepts = beside_pytorch(needing("bf16", 1e-6));
  EXPECT_THAT(refuses, testing::StartsWith("PyTorch's 1e-05, 0.016 misses at least "));
  EXPECT_THAT(refuses, testing::EndsWith(" and refuses right answers"));
  EXPECT_THAT(accepts, testing::EndsWith(" and refuses no right answer"));
  EXPECT_THAT(beside_pytorch(needing("f32", 1e-6)), testing::StartsWith("PyTorch's 1e-05, 1.3e-06 misses at least "));
}

TEST(BesidePytorch, SaysNothingThatIsNotKnown) {
  // Between two of the relative tolerances that are kept: with less it takes more, with more it does not.
  ToleranceRow between = needing("bf16", 1e-3);
  for (std::size_t step = 2; step < between.cell.atol.size(); ++step) between.cell.atol[step] = code_of(1e-6);
  EXPECT_THAT(beside_pytorch(between), testing::Not(testing::HasSubstr("refuses")));
  EXPECT_THAT(beside_pytorch(needing("f32", 1.005e-5)), testing::Not(testing::HasSubstr("refuses")))
      << "codes are rounded up";
  EXPECT_EQ(beside_pytorch(needing("f8_e4m3", 1)), "") << "it has no row for it";
  ToleranceRow all = needing("bf16", 1e-3);
  all.values = "all";
  EXPECT_EQ(beside_pytorch(all), "");
}

}  // namespace
}  // namespace attest
