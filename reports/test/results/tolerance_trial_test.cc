// A tolerance on trial: what it refuses, what it misses, and that NaN never passes.
#include "reports/results/tolerance_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/oracle/oracle.h"
#include "core/support/infinity.h"
#include "properties/catalogue/property.h"
#include "properties/road/redeclared_kernel.h"
#include "properties/road/watched_kernel.h"
#include "reports/test/json.h"

namespace attest {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
/// Of torch.testing.assert_close in f32.
constexpr Tolerance torch_default{1e-5, 1.3e-6};

std::unique_ptr<Kernel> kernel_of(const std::string& id) {
  return std::move(open_kernels(id, {}).front());
}

/// Two queries of two keys of score 0; the second key is hidden from the second query. Answers 2 and 1.
Case two_rows(double first = 1, double second = 3) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 2, 1});
  c[Slot::k] = Tensor(DType::f32, {1, 1, 2, 1});
  c[Slot::v] = Tensor(DType::f32, {1, 1, 2, 1}, std::array{first, second});
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2}, std::array{1.0, 1.0, 1.0, 0.0});
  return c;
}

Fared of_two_rows(const Tolerance& tolerance, double first, double second) {
  return fared(tolerance, two_rows(), Tensor(DType::f32, {1, 1, 2, 1}, std::array{first, second}),
               universal_arithmetic(DType::f32, DType::f32), true);
}

TEST(Fared, AcceptsWhatNumpysAllcloseDoes) {
  // 2^-22 is within the bound at 2, 1/2 is not. Tolerated at 2: 0.1 + 0.2 * 2.
  const Tolerance half{.atol = 0.1, .rtol = 0.2};
  EXPECT_EQ(of_two_rows(half, 2.4921875, 1).wrong, 1);
  EXPECT_EQ(of_two_rows(half, 2.4921875, 1).wrong_refused, 0);
  EXPECT_EQ(of_two_rows(half, 2.5078125, 1).wrong_refused, 1);
  EXPECT_EQ(of_two_rows(half, 1.4921875, 1).wrong_refused, 1);
  const Fared small = of_two_rows({0x1p-23, 0}, 2 + 0x1p-22, 1);
  EXPECT_EQ(small.right, 2);
  EXPECT_EQ(small.right_refused, 1) << "the second answer is exact";
  EXPECT_NEAR(small.excess, 2, 1e-6);
  EXPECT_EQ(of_two_rows({0x1p-21, 0}, 2 + 0x1p-22, 1).right_refused, 0);
  EXPECT_EQ(of_two_rows({0, 0x1p-22}, 2 + 0x1p-22, 1).right_refused, 0);
  EXPECT_EQ(of_two_rows({0, 0x1p-24}, 2 + 0x1p-22, 1).right_refused, 1);
}

TEST(Fared, LetsNoNaNPass) {
  for (const Tolerance everything : {Tolerance{infinity, infinity}, Tolerance{infinity, 0}, Tolerance{1e30, 1e30}}) {
    for (const double bad : {nan, infinity, -infinity}) {
      const Fared one = of_two_rows(everything, bad, 1);
      EXPECT_EQ(one.wrong, 1);
      EXPECT_EQ(one.wrong_refused, 1);
      EXPECT_EQ(one.let_pass, 0);
    }
    const Fared finite = of_two_rows(everything, 1e6, 1);
    EXPECT_EQ(finite.wrong_refused, 0);
    EXPECT_GT(finite.let_pass, 1e6);
  }
}

TEST(Fared, LeavesOutRowsThatSeeNoKey) {
  Case c = two_rows();
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2}, std::array{1.0, 1.0, 0.0, 0.0});
  const Fared one = fared({0, 0}, c, Tensor(DType::f32, {1, 1, 2, 1}, std::array{2.0, nan}),
                          universal_arithmetic(DType::f32, DType::f32), true);
  EXPECT_EQ(one.right + one.wrong, 1);
}

/// A kernel that takes one hundredth more than the scale.
class LargerScale final : public RedeclaredKernel {
 public:
  explicit LargerScale(Kernel& kernel) : RedeclaredKernel(kernel, kernel.manifest()) {}
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Case larger = c;
    larger.scale *= 1.01;
    return RedeclaredKernel::run(larger, output, want_lse);
  }
};

TEST(Fared, TorchsDefaultCatchesAScaleOneHundredthTooLarge) {
  const auto right = kernel_of("builtin:two-pass");
  LargerScale wrong(*right);
  const auto property = std::ranges::find(catalogue(), "attention.oracle", &Property::name);
  std::int64_t cases = 0, caught = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    const Case c = generate(**property, DType::f32, 1, k);
    const Reply reply = wrong.run(c, c.dtype(), false);
    if (reply.status != CallStatus::ok) continue;
    const Fared one = fared(torch_default, c, reply.out, right->manifest().arithmetic_for(c), true);
    cases += one.wrong > 0 ? 1 : 0;
    caught += one.wrong_refused > 0 ? 1 : 0;
  }
  EXPECT_GT(cases, 50);
  EXPECT_GT(caught, cases / 2);
}

TrialPlan plan_of(const Tolerance& tolerance, std::int64_t cases = 90) {
  TrialPlan plan;
  plan.tolerance = tolerance, plan.dtypes = {DType::f32}, plan.cases = cases, plan.enough = 5, plan.jobs = 2;
  return plan;
}

TrialResult trial(const Tolerance& tolerance, std::int64_t cases = 90) {
  return try_tolerance(plan_of(tolerance, cases), *kernel_of("builtin:flash"), [] { return false; });
}

const FaultTrial& fault_in(const TrialResult& result, std::string_view name) {
  return *std::ranges::find(result.faults, name, [](const FaultTrial& one) { return one.fault->name; });
}

TEST(Trial, OfNothingRefusesWhateverWasRounded) {
  const TrialResult result = trial({0, 0});
  ASSERT_EQ(result.kernels.size(), 1U);
  const KernelTrial& kernel = result.kernels.front();
  EXPECT_GT(kernel.all.cases, 60);
  EXPECT_GT(kernel.all.refused_cases, kernel.all.cases / 2);
  EXPECT_GT(kernel.all.refused_elements, kernel.all.elements / 3);
  EXPECT_GE(kernel.worst_k, 0);
  EXPECT_EQ(kernel.worst_excess, infinity);
  EXPECT_EQ(kernel.wrong, 0);
  for (const FaultTrial& fault : result.faults) EXPECT_EQ(fault.refused, fault.wrong) << fault.fault->name;
  // Nothing is lost between the classes of a group.
  std::map<std::string, std::int64_t> elements;
  for (const auto& [key, refusals] : kernel.classes) elements[key.first] += refusals.elements;
  EXPECT_EQ(elements["keys"], kernel.all.elements);
  EXPECT_EQ(elements["mask"], kernel.all.elements);
  EXPECT_EQ(elements["values"], kernel.all.elements);
}

TEST(Trial, OfEverythingMissesWhatIsFinite) {
  const TrialResult result = trial({infinity, 0});
  EXPECT_EQ(result.kernels.front().all.refused_cases, 0);
  EXPECT_EQ(result.kernels.front().worst_k, -1);
  for (const char* const finite : {"all-zeros", "mean-of-values", "uniform-weights", "bias-sign"}) {
    const FaultTrial& fault = fault_in(result, finite);
    EXPECT_GT(fault.wrong, 0) << finite;
    EXPECT_EQ(fault.refused, 0) << finite;
    EXPECT_GE(fault.missed_k, 0) << finite;
    EXPECT_GT(fault.let_pass, 1) << finite;
  }
  // What brings NaN to light is caught even so.
  for (const char* const not_finite : {"dead-value-in-tail", "empty-splits-nan"}) {
    const FaultTrial& fault = fault_in(result, not_finite);
    EXPECT_GT(fault.wrong, 0) << not_finite;
    EXPECT_EQ(fault.refused, fault.wrong) << not_finite;
  }
  // A log-sum-exp stands in no element.
  EXPECT_EQ(fault_in(result, "lse-base-two").wrong, 0);
  EXPECT_GT(fault_in(result, "lse-base-two").other, 0);
}

TEST(Trial, RefusesRightAnswersLessOftenTheLargerItIs) {
  const TrialResult tight = trial({1e-7, 0}), loose = trial(torch_default);
  EXPECT_GT(tight.kernels.front().all.refused_elements, loose.kernels.front().all.refused_elements);
  EXPECT_GT(loose.kernels.front().all.refused_elements, 0) << "huge and cancelling values need more";
}

TEST(Trial, TellsOrdinaryInputsFromOthers) {
  // Several times what ordinary inputs need; huge values need more.
  const TrialResult result = trial({5e-6, 0}, 300);
  const auto& classes = result.kernels.front().classes;
  const Refusals &ordinary = classes.at({"inputs", "ordinary"}), &others = classes.at({"inputs", "others"});
  EXPECT_GT(ordinary.cases, 20);
  EXPECT_EQ(ordinary.refused_cases, 0);
  EXPECT_GT(others.refused_cases, 0);
  const std::string text = trial_text(result, plan_of({5e-6, 0}, 300));
  EXPECT_NE(text.find("of ordinary inputs, those of the report's tolerances: 0 of "), std::string::npos) << text;
}

TEST(Trial, IsTheSameForAnyJobs) {
  TrialPlan one = plan_of(torch_default, 25), four = one;
  one.jobs = 1, four.jobs = 4;
  const auto kernel = kernel_of("builtin:flash");
  const auto text = [&](const TrialPlan& plan) {
    return trial_json(try_tolerance(plan, *kernel, [] { return false; }), plan);
  };
  EXPECT_EQ(text(one), text(four));
}

TEST(Trial, EndsWhenStopped) {
  const auto kernel = kernel_of("builtin:flash");
  EXPECT_THROW((void)try_tolerance(plan_of(torch_default), *kernel, [] { return true; }), Abandoned);
}

TEST(Trial, IsWrittenForPeopleAndPrograms) {
  const TrialPlan plan = plan_of(torch_default, 25);
  const TrialResult result = try_tolerance(plan, *kernel_of("builtin:flash"), [] { return false; });
  const std::string text = trial_text(result, plan);
  EXPECT_NE(text.find("|found - exact| <= 1e-05 + 1.3e-06 |exact|"), std::string::npos) << text;
  EXPECT_NE(text.find("exit status is 0"), std::string::npos);
  const auto json = parsed_json(trial_json(result, plan));
  EXPECT_EQ(json["schema"], "attest-tolerance-trial/1");
  EXPECT_EQ(json["faults"].size(), result.faults.size());
  const nlohmann::json& kernel = json["kernels"][0];
  EXPECT_EQ(kernel["cases"], result.kernels[0].all.cases);
  const std::int64_t counted =
      kernel["faults_missed"].get<std::int64_t>() + kernel["faults_partly_caught"].get<std::int64_t>() +
      kernel["faults_caught"].get<std::int64_t>() + kernel["faults_without_a_wrong_element"].get<std::int64_t>();
  EXPECT_EQ(counted, static_cast<std::int64_t>(result.faults.size()));
}

}  // namespace
}  // namespace attest
