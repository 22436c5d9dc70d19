// Campaigns on kernels that are right, wrong, and gone: which runs are made, what becomes a finding, what is handed on.
#include "fuzz/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "properties/faults/faults.h"
#include "properties/generators/draw.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

CampaignPlan plan_of(std::unique_ptr<Kernel> kernel, std::string_view properties, DType dtype, std::int64_t runs) {
  CampaignPlan plan;
  plan.properties = properties_matching(properties);
  plan.kernels.push_back(std::move(kernel));
  plan.dtypes = {dtype};
  plan.runs = runs;
  return plan;
}

struct Recorded final : CampaignObserver {
  void found(FindingRecord& finding, AnsweredCase c) override {
    finding.case_file = "kept";
    findings.push_back({finding, std::move(c.value)});
    answers.push_back(std::move(c.found));
  }
  void batch_done(const BatchRecord& batch) override { batches.push_back(batch); }
  void archive_grew(const Subject& subject, const Archive& archive) override {
    archives.insert_or_assign(subject, archive);
  }
  void new_worst(const Subject&, const Case& c, const Verdict& verdict) override {
    worst = c;
    worst_utilisation = verdict.utilisation;
  }
  void tick(const Status& now) override { status = now; }

  /// Every k of [0, runs) in one batch exactly.
  void expect_whole(std::int64_t runs) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    for (const BatchRecord& batch : batches) {
      EXPECT_EQ(batch.tally.cases(), batch.last_k - batch.first_k);
      ranges.emplace_back(batch.first_k, batch.last_k);
    }
    std::ranges::sort(ranges);
    std::int64_t next = 0;
    for (const auto& [first, last] : ranges) {
      EXPECT_EQ(first, next);
      next = last;
    }
    EXPECT_EQ(next, runs);
  }

  std::vector<EarlierFinding> findings;
  std::vector<Tensor> answers;  ///< to the cases of the findings
  std::vector<BatchRecord> batches;
  std::map<Subject, Archive> archives;
  std::optional<Case> worst;
  double worst_utilisation = 0;
  Status status;
};

/// What a campaign hands on that ends so.
Recorded recorded_of(const CampaignPlan& plan, CampaignEnding ending = CampaignEnding::complete,
                     const Road& road = {}) {
  Recorded recorded;
  EXPECT_EQ(Campaign(plan, road, recorded).run(), ending);
  return recorded;
}

TEST(Campaign, FindsNothingInACorrectKernelAndHandsOnItsWorstCase) {
  const CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 5000);
  const Recorded recorded = recorded_of(plan);
  EXPECT_TRUE(recorded.findings.empty());
  recorded.expect_whole(5000);
  EXPECT_EQ(recorded.status.runs, 5000);
  ASSERT_EQ(recorded.archives.size(), 1U);
  const Archive& archive = recorded.archives.begin()->second;
  EXPECT_GT(archive.entries().size(), 50U);
  ASSERT_TRUE(recorded.worst);
  EXPECT_EQ(recorded.worst_utilisation, archive.worst());
  // The worst case shows what was said of it.
  EXPECT_EQ(check_case(*plan.properties.front(), *plan.kernels.front(), *recorded.worst).utilisation,
            recorded.worst_utilisation);
}

TEST(Campaign, FollowsFromItsSeedWithOneJob) {
  std::string texts[2];
  for (std::string& text : texts) {
    const CampaignPlan plan = plan_of(registered("builtin:online"), "attention.oracle", DType::bf16, 2500);
    const Recorded recorded = recorded_of(plan);
    text = to_text(recorded.archives.begin()->second);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Campaign, MakesEveryRunOnceWithTwoJobs) {
  CampaignPlan plan = plan_of(registered("builtin:two-pass"), "attention.oracle", DType::f32, 3000);
  plan.jobs = 2;
  const Recorded recorded = recorded_of(plan);
  recorded.expect_whole(3000);
}

TEST(Campaign, ShrinksAndConfirmsWhatItFinds) {
  for (const char* name : {"sum-not-rescaled", "narrow-output-sum", "masked-row-is-nan"}) {
    SCOPED_TRACE(name);
    const DType dtype = std::string_view(name) == "narrow-output-sum" ? DType::f16 : DType::f32;
    CampaignPlan plan = plan_of(registered("fault:" + std::string(name)), "*", dtype, 3000);
    plan.properties = properties_matching(std::string_view(name) == "masked-row-is-nan" ? "masked.fully-masked-row"
                                                                                        : "attention.oracle");
    ASSERT_FALSE(subjects_of(plan).empty());
    const Recorded recorded = recorded_of(plan);
    ASSERT_FALSE(recorded.findings.empty());
    recorded.expect_whole(3000);
    std::map<std::string, int> of_kind;
    std::map<std::pair<std::string, std::string>, int> in_place;
    for (const EarlierFinding& finding : recorded.findings) {
      const Verdict again = check_case(*plan.properties.front(), *plan.kernels.front(), *finding.saved);
      EXPECT_EQ(again.outcome, Outcome::violated);
      EXPECT_EQ(again.violation, finding.record.verdict.violation);
      EXPECT_EQ(finding.saved->provenance.shrunk.value(), "yes");
      const std::string kind(finding.record.kind());
      EXPECT_LE(++of_kind[kind], samples_per_kind);
      EXPECT_LE((++in_place[{kind, place_of(*finding.saved)}]), samples_per_place);
    }
    for (std::size_t i = 0; i < recorded.answers.size(); ++i)
      EXPECT_EQ(recorded.answers[i].shape(), recorded.findings[i].saved->out_shape());
    // What is known is not bred from.
    for (const auto& [subject, archive] : recorded.archives) {
      for (const Archive::Entry& entry : archive.entries()) {
        const Case c = project(case_of(entry.input, *plan.properties.front()), plan.kernels.front()->manifest());
        EXPECT_EQ(check_case(*plan.properties.front(), *plan.kernels.front(), c).outcome, Outcome::held);
      }
    }
  }
}

TEST(Campaign, GoesOnBehindWhatAnEarlierOneLeft) {
  CampaignPlan first = plan_of(registered("fault:sum-not-rescaled"), "attention.oracle", DType::f32, 1000);
  const Recorded before = recorded_of(first);
  ASSERT_FALSE(before.findings.empty());
  CampaignPlan second = plan_of(registered("fault:sum-not-rescaled"), "attention.oracle", DType::f32, 3000);
  second.done.batches = before.batches;
  second.known = before.findings;
  second.archives = before.archives;
  const Recorded after = recorded_of(second);
  EXPECT_EQ(after.status.runs, 2000);
  for (const BatchRecord& batch : after.batches) EXPECT_GE(batch.first_k, 1000);
  std::map<std::pair<std::string, std::string>, int> in_place;
  for (const Recorded* const recorded : {&before, &after})
    for (const EarlierFinding& finding : recorded->findings)
      EXPECT_LE((++in_place[{std::string(finding.record.kind()), place_of(*finding.saved)}]), samples_per_place);
}

Manifest plain_manifest() {
  Manifest manifest;
  manifest.name = "plain";
  manifest.dtypes = {DType::f32};
  manifest.arithmetic.usual.emplace(DType::f32, universal_arithmetic(DType::f32, DType::f32));
  return manifest;
}

TEST(Campaign, KeepsFailuresAndGoesOn) {
  int calls = 0;
  CampaignPlan plan = plan_of(function_kernel("failing", plain_manifest(),
                                              [&calls](const attest_problem&, attest_result&, std::string& message) {
                                                ++calls;
                                                message = "out of luck";
                                                return 7;
                                              }),
                              "attention.oracle", DType::f32, 200);
  const Recorded recorded = recorded_of(plan);
  recorded.expect_whole(200);
  ASSERT_FALSE(recorded.findings.empty());
  EXPECT_EQ(recorded.findings.front().record.kind(), "failed");
  EXPECT_LE(recorded.findings.size(), static_cast<std::size_t>(samples_per_kind));
}

/// attention.oracle, of which every seventh case cannot be drawn, or not be judged, for want of memory.
Property starving(bool as_it_is_drawn) {
  static std::atomic<int> drawn, judged;
  Property property = property_named("attention.oracle");
  if (as_it_is_drawn) {
    property.given = [](Draw& draw) -> Case {
      if (++drawn % 7 == 0) throw std::bad_alloc();
      return draw.attention();
    };
  } else {
    property.check_as = nullptr;
    property.check = [](Kernel& kernel, const Case& c) -> Verdict {
      if (++judged % 7 == 0) throw std::bad_alloc();
      return check_case(property_named("attention.oracle"), kernel, c);
    };
  }
  return property;
}

// As an input is bred, too, which draws its case.
TEST(Campaign, GoesOnWhereMemoryRunsOut) {
  for (const bool as_it_is_drawn : {true, false}) {
    const Property property = starving(as_it_is_drawn);
    for (const int jobs : {1, 2}) {
      CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 3000);
      plan.properties = {&property};
      plan.jobs = jobs;
      const Recorded recorded = recorded_of(plan);
      recorded.expect_whole(3000);
      EXPECT_EQ(recorded.status.runs, 3000);
      Tally all;
      for (const BatchRecord& batch : recorded.batches) all.merge(batch.tally);
      EXPECT_GT(all.held, 2000);
      EXPECT_GT(as_it_is_drawn ? all.skipped : all.inconclusive, 200);
      EXPECT_EQ(all.violated, 0);
      EXPECT_FALSE(recorded.archives.empty());
    }
  }
}

TEST(Campaign, EndsWhenItIsToldToAndBlamesNobody) {
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  // As a process answers whose wait was cut short.
  CampaignPlan plan = plan_of(function_kernel("stopping", plain_manifest(),
                                              [&](const attest_problem&, attest_result&, std::string&) {
                                                if (++calls >= 23) stop = true;
                                                return 7;
                                              }),
                              "attention.oracle", DType::f32, 100'000);
  plan.stop = [&] { return stop.load(); };
  Road road;
  road.check = [](const Property&, Kernel& kernel, const Case& c) {
    const bool failed = kernel.run(c).status != CallStatus::ok;
    return Verdict{.outcome = failed && kernel.id() == "stopping" ? Outcome::violated : Outcome::held,
                   .violation = Violation::bound};
  };
  road.shrink = [](const Property&, Kernel&, const Case& c, int) { return c; };
  const Recorded recorded = recorded_of(plan, CampaignEnding::stopped, road);
  // Runs 0 and 1 were found, checked eight times again, by a kernel started afresh, and as shrunk, eleven calls each;
  // run 2 was under way.
  EXPECT_EQ(calls, 23);
  EXPECT_EQ(recorded.findings.size(), 2U);
  for (const BatchRecord& batch : recorded.batches) EXPECT_LE(batch.last_k, 2);
}

TEST(Campaign, CutsTheStintOfAKernelThatBecameSlowAndMakesItsRunsLater) {
  CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 30);
  Road road;
  road.check = [](const Property&, Kernel&, const Case&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    return Verdict{.utilisation = 0.5};
  };
  const Recorded recorded = recorded_of(plan, CampaignEnding::complete, road);
  recorded.expect_whole(30);
  // Half a second is 13 runs of 40 ms.
  for (const BatchRecord& batch : recorded.batches) EXPECT_LE(batch.last_k - batch.first_k, 14);
}

TEST(Campaign, ShrinksFewOfTheSameKind) {
  CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 500);
  Road road;
  int shrunk = 0;
  std::set<std::string> places;
  road.check = [](const Property&, Kernel&, const Case&) {
    return Verdict{.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 2};
  };
  Case smallest = decode(Recipe());
  road.shrink = [&](const Property&, Kernel&, const Case& c, int budget) {
    EXPECT_LE(budget, 1000);
    ++shrunk;
    places.insert(place_of(c));
    return smallest;
  };
  const Recorded recorded = recorded_of(plan, CampaignEnding::complete, road);
  EXPECT_EQ(recorded.findings.size(), static_cast<std::size_t>(samples_per_place));
  EXPECT_LE(shrunk, samples_per_place * static_cast<int>(places.size()));
}

TEST(Campaign, EndsAtItsDeadline) {
  CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 1);
  plan.runs.reset();
  plan.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const Recorded recorded = recorded_of(plan, CampaignEnding::out_of_time);
  EXPECT_GT(recorded.status.runs, 0);
}

TEST(Campaign, ThrowsWhatTheObserverThrows) {
  struct Full final : CampaignObserver {
    void found(FindingRecord&, AnsweredCase) override {}
    void batch_done(const BatchRecord&) override { throw UsageError("the disk is full"); }
    void archive_grew(const Subject&, const Archive&) override {}
    void new_worst(const Subject&, const Case&, const Verdict&) override {}
    void tick(const Status&) override {}
  };
  const CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.oracle", DType::f32, 100'000);
  const Road road;
  Full full;
  Campaign campaign(plan, road, full);
  EXPECT_THROW((void)campaign.run(), UsageError);
}

TEST(Campaign, LeavesStatisticalPropertiesOut) {
  CampaignPlan plan = plan_of(registered("builtin:flash"), "attention.expectation-sampling", DType::f32, 10);
  ASSERT_EQ(plan.properties.size(), 1U);
  EXPECT_TRUE(subjects_of(plan).empty());
}

}  // namespace
}  // namespace attest
