// Campaigns on kernels that are right: 2 * 10^7 runs that search for the worst, and not one finding.
#include <fmt/format.h>

#include "core/kernel/kernel_under_test.h"
#include "core/test/names.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

/// Runs of all campaigns here together.
constexpr std::int64_t all_runs = 20'000'000;

class CorrectKernels : public testing::TestWithParam<std::string> {};

TEST_P(CorrectKernels, HaveNoFinding) {
  const fake::Folder folder;
  // Error and weights, of attention and of the multi-head entry where there is one, and products near overflow.
  constexpr int subjects = 3 * 4;
  const std::int64_t runs = all_runs / (static_cast<std::int64_t>(builtin_kernels().size()) * subjects) + 1;
  expect_status(folder, fmt::format("$attest fuzz --kernel {} --objective error --objective nonfinite "
                                    "--objective row-sum --runs {} --jobs 2 --quiet --out run",
                                    GetParam(), runs));
  std::int64_t made = 0;
  const nlohmann::json summary = summary_of(folder, "run");
  for (const nlohmann::json& subject : summary["kernels"]) {
    for (const nlohmann::json& property : subject["properties"]) {
      for (const char* const what : {"held", "skipped", "excused"}) made += property[what].get<std::int64_t>();
      EXPECT_EQ(property["violated"], 0) << property["name"] << " " << subject["dtype"];
      EXPECT_EQ(property["inconclusive"], 0) << property["name"] << " " << subject["dtype"];
    }
  }
  EXPECT_GE(made, runs * subjects);
  fmt::print("{}: {} runs\n", GetParam(), made);
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const KernelEntry& entry : builtin_kernels()) all.push_back(entry.id);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Campaigns, CorrectKernels, testing::ValuesIn(ids()),
                         [](const auto& id) { return test::name_of_test(id.param); });

}  // namespace
}  // namespace attest
