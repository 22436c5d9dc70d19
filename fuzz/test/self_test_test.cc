#include "fuzz/self_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

TEST(SelfTest, TakesTheMedianOfRuns) {
  EXPECT_EQ(median_of<int>({7}), 7);
  EXPECT_EQ(median_of<int>({9, 1, 5}), 5);
  EXPECT_EQ(median_of<int>({4, 1, 3, 2}), 3);
}

TEST(SelfTest, CountsWinsAndHalfTheTies) {
  EXPECT_EQ(a12_of<int>({1, 2}, {3, 4}), 1);
  EXPECT_EQ(a12_of<int>({3, 4}, {1, 2}), 0);
  EXPECT_EQ(a12_of<int>({1, 2}, {1, 2}), 0.5);
  EXPECT_EQ(a12_of<int>({1, 5}, {2}), 0.5);
  EXPECT_EQ(a12_of<int>({2}, {2, 3}), 0.75);
}

std::vector<const PlantedFault*> named(std::initializer_list<std::string_view> names) {
  std::vector<const PlantedFault*> chosen;
  for (const PlantedFault& fault : planted_faults())
    if (std::ranges::find(names, fault.name) != names.end()) chosen.push_back(&fault);
  return chosen;
}

TEST(SelfTest, FindsGrossFaultsBothWaysAndTellsEach) {
  const SelfTestPlan plan{.faults = named({"all-zeros", "sum-not-rescaled", "bool-mask-inverted"}),
                          .kernels = {},
                          .seeds = 3,
                          .most_runs = 2000};
  ASSERT_EQ(plan.faults.size(), 3U);
  int told = 0;
  const SelfTest result = self_test(plan, [] { return false; }, [&](const std::string&) { ++told; });
  const std::vector<Detection>& detections = result.detections;
  ASSERT_EQ(detections.size(), 3U);
  EXPECT_EQ(told, 3);
  for (const Detection& detection : detections) {
    ASSERT_EQ(detection.guided.size(), 3U);
    for (const std::int64_t runs : detection.guided) EXPECT_LE(runs, 2000) << detection.fault;
    for (const std::int64_t runs : detection.unguided) EXPECT_LE(runs, 2000) << detection.fault;
  }
  const std::string table = self_test_table(result, plan);
  EXPECT_NE(table.find("| all-zeros | attention.oracle | f32 | 3/3 |"), std::string::npos) << table;
  EXPECT_NE(table.find("3 faults, 3 seeds, at most 2000 runs each: 3 found on every seed guided, 3 unguided"),
            std::string::npos)
      << table;
}

TEST(SelfTest, SaysWhatWasNotFound) {
  const SelfTestPlan plan{.faults = {}, .kernels = {}, .seeds = 2, .most_runs = 10};
  const std::vector<Detection> detections{{"hidden", "attention.oracle", "f32", {11, 11}, {3, 11}}};
  const std::string table = self_test_table({detections, {}}, plan);
  EXPECT_NE(table.find("| 0/2 | > 10 | 1/2 | > 10 | 0.25 |"), std::string::npos) << table;
}

TEST(SelfTest, ComparesTheWorstCasesOfAKernelThatIsRight) {
  const std::shared_ptr<Kernel> flash = std::move(open_kernels("builtin:flash", {}).front());
  const SelfTestPlan plan{.faults = {}, .kernels = {{flash, DType::f32}}, .seeds = 2, .most_runs = 3000};
  const SelfTest result = self_test(plan, [] { return false; }, [](const std::string&) {});
  ASSERT_EQ(result.worsts.size(), 1U);
  const WorstFound& worst = result.worsts.front();
  for (const std::vector<double>& found : {worst.guided, worst.unguided}) {
    ASSERT_EQ(found.size(), 2U);
    for (const double utilisation : found) {
      EXPECT_GT(utilisation, 0.3);
      EXPECT_LE(utilisation, 1.0);
    }
  }
  EXPECT_NE(self_test_table(result, plan).find("| builtin:flash | f32 | "), std::string::npos);
  // A kernel that is wrong is at its worst at once.
  const std::shared_ptr<Kernel> zeros = registered("fault:all-zeros");
  const SelfTestPlan wrong{.faults = {}, .kernels = {{zeros, DType::f32}}, .seeds = 1, .most_runs = 100};
  EXPECT_TRUE(std::isinf(self_test(wrong, [] { return false; }, [](const std::string&) {}).worsts.at(0).guided.at(0)));
}

TEST(SelfTest, StopsBetweenTwoRuns) {
  const SelfTestPlan plan{.faults = named({"all-zeros"}), .kernels = {}, .seeds = 3, .most_runs = 2000};
  EXPECT_TRUE(self_test(plan, [] { return true; }, [](const std::string&) {}).detections.empty());
}

}  // namespace
}  // namespace attest
