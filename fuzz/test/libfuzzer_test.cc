// A campaign whose loop is libFuzzer's: a fault behind four branches is reached by coverage. One test to a program, as
// libFuzzer runs once.
#include "fuzz/libfuzzer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "fuzz/campaign.h"

namespace attest {
namespace {

struct Found final : CampaignObserver {
  void found(FindingRecord& finding, Case) override {
    if (!first || finding.k < *first) first = finding.k;
  }
  void batch_done(const BatchRecord& batch) override { runs += batch.last_k - batch.first_k; }
  void archive_grew(const Subject&, const Archive& archive) override { cells = archive.entries().size(); }
  void new_worst(const Subject&, const Case&, const Verdict&) override {}
  void tick(const Status&) override {}
  std::optional<std::int64_t> first;
  std::int64_t runs = 0;
  std::size_t cells = 0;
};

Found campaign_on(const std::string& library, bool libfuzzer) {
  CampaignPlan plan;
  plan.properties = properties_matching("attention.oracle");
  KernelOptions options;
  options.in_process = true;
  plan.kernels = open_kernels(library, options);
  plan.seed = 3;
  plan.runs = 60'000;
  plan.libfuzzer = libfuzzer;
  const CampaignRoad road;
  Found found;
  EXPECT_EQ(Campaign(plan, road, found).run(), CampaignEnding::complete);
  EXPECT_EQ(found.runs, *plan.runs);
  return found;
}

TEST(LibFuzzer, ReachesAFaultBehindBranchesThatTheNumbersDoNotShow) {
  if (!has_libfuzzer()) GTEST_SKIP() << "built without libFuzzer";
  const std::string library = ATTEST_STAGED_KERNEL;
  if (library.empty()) GTEST_SKIP() << "clang was not found, which instruments code for coverage";
  const Found alone = campaign_on(library, /*libfuzzer=*/false);
  EXPECT_FALSE(alone.first) << "found without coverage: the test shows nothing";
  const Found guided = campaign_on(library, /*libfuzzer=*/true);
  EXPECT_TRUE(guided.first);
  EXPECT_GT(guided.cells, 20U);
}

}  // namespace
}  // namespace attest
