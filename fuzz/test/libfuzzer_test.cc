// A campaign whose loop is libFuzzer's: a fault behind four branches is reached by coverage. One test to a program, as
// libFuzzer runs once.
#include "fuzz/libfuzzer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "fuzz/campaign.h"

namespace attest {
namespace {

struct Found final : CampaignObserver {
  void found(FindingRecord& finding, AnsweredCase) override { first = finding.k; }
  void batch_done(const BatchRecord& batch) override { runs += batch.last_k - batch.first_k; }
  void archive_grew(const Subject&, const Archive& archive) override { cells = archive.entries().size(); }
  void new_worst(const Subject&, const Case&, const Verdict&) override {}
  void tick(const Status&) override {}
  std::atomic<std::int64_t> first = -1;  ///< of any finding; -1: none
  std::int64_t runs = 0;
  std::size_t cells = 0;
};

/// Ends with the first finding.
void campaign_on(const std::string& library, bool libfuzzer, std::int64_t runs, Found& found) {
  CampaignPlan plan;
  plan.properties = properties_matching("attention.oracle");
  KernelOptions options;
  options.in_process = true;
  plan.kernels = open_kernels(library, options);
  plan.seed = 3;
  plan.runs = runs;
  plan.libfuzzer = libfuzzer;
  plan.stop = [&found] { return found.first >= 0; };
  const Road road;
  const CampaignEnding ending = Campaign(plan, road, found).run();
  EXPECT_EQ(ending, found.first < 0 ? CampaignEnding::complete : CampaignEnding::stopped);
  if (found.first < 0) {
    EXPECT_EQ(found.runs, runs);
  }
}

TEST(LibFuzzer, ReachesAFaultBehindBranchesThatTheNumbersDoNotShow) {
  if (!has_libfuzzer()) GTEST_SKIP() << "built without libFuzzer";
  const std::string library = ATTEST_STAGED_KERNEL;
  if (library.empty()) GTEST_SKIP() << "clang was not found, which instruments code for coverage";
  Found alone;
  campaign_on(library, /*libfuzzer=*/false, 60'000, alone);
  EXPECT_LT(alone.first, 0) << "found without coverage: the test shows nothing";
  // The first finding comes after 5 000 to 66 000 runs (eight seeds, 28 000 in the mean), and the way there differs
  // from build to build: twenty times the mean is next to never too few.
  Found guided;
  campaign_on(library, /*libfuzzer=*/true, 560'000, guided);
  EXPECT_GE(guided.first, 0);
  EXPECT_GT(guided.cells, 20U);
}

}  // namespace
}  // namespace attest
