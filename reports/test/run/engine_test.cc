#include "reports/run/engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <map>
#include <string_view>
#include <thread>

#include "core/support/files.h"
#include "properties/road/watched_kernel.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

using fake::CountingObserver;
using fake::FakeKernel;
using fake::Folder;

Plan plan_of(std::int64_t cases, int jobs = 1, Shard shard = {}) {
  Plan plan;
  plan.properties = {&fake::first_property, &fake::second_property};
  plan.kernels.push_back(std::make_unique<FakeKernel>("fake:a"));
  plan.kernels.push_back(std::make_unique<FakeKernel>("fake:b"));
  plan.cases = cases;
  plan.jobs = jobs;
  plan.shard = shard;
  return plan;
}

struct Ran {
  Ending ending;
  Journal journal;
  CountingObserver observer;
};

Ran run_in(const std::filesystem::path& path, const Plan& plan, const Road& road = fake::road(), bool resume = false) {
  const RunFolder folder(path, resume ? RunFolder::Mode::resume : RunFolder::Mode::overwrite);
  const Journal earlier = resume ? read_journal(path) : Journal{};
  Ran ran{};
  {
    JournalWriter writer(folder.journal());
    RunRecord run{.seed = plan.seed, .case_files = {}};
    for (const CapturedCase& captured : plan.captured) run.case_files.push_back(captured.file);
    if (!resume) writer.append(run);
    Engine engine(plan, road, folder, writer, earlier, ran.observer);
    ran.ending = engine.run();
  }
  ran.journal = read_journal(path);
  return ran;
}

std::string canonical_text(const std::vector<Journal>& parts) {
  const std::vector<std::string> sources(parts.size(), "a run");
  return to_text(canonical(parts, sources));
}

constexpr std::int64_t cases = 64 * 6 + 11;

/// The road of fakes, but that fake:a dies at each k below `alive` other than `answered`, and in bf16 at every one that
/// is not skipped.
Road deadly_road(std::int64_t alive, std::int64_t answered = -1) {
  Road road = fake::road();
  road.check = [alive, answered](const Property&, Kernel& kernel, const Case& c) {
    (void)kernel.run(c);
    const std::int64_t k = std::stoll(c.provenance.k.value());
    Verdict verdict = fake::verdict_at(k);
    const bool dies = kernel.id() == "fake:a" && ((k < alive && k != answered) || c.dtype() == DType::bf16);
    if (!dies || verdict.outcome == Outcome::skipped) return verdict;
    return Verdict{.outcome = Outcome::violated,
                   .violation = k % 2 == 0 ? Violation::died : Violation::timed_out,
                   .reason = "it is gone"};
  };
  return road;
}

TEST(Engine, CountsNothingAsHeldThatTheKernelDidNotAnswer) {
  const Folder folder;
  Road road = fake::road();
  road.check = [](const Property&, Kernel& kernel, const Case& c) {
    const std::int64_t k = std::stoll(c.provenance.k.value());
    if (k % 2 == 0) (void)kernel.run(c);
    return k == 5 ? Verdict{.outcome = Outcome::excused, .reason = "overflows"} : Verdict{};
  };
  Plan plan = plan_of(10);
  plan.kernels[0] = std::make_unique<FakeKernel>("fake:a", CallStatus::unsupported);
  for (const BatchRecord& batch : run_in(folder.path(), plan, road).journal.batches) {
    const bool refuses = batch.subject.kernel == "fake:a";
    EXPECT_EQ(batch.tally.held, refuses ? 0 : 5);
    EXPECT_EQ(batch.tally.skipped, refuses ? 9 : 4);
    EXPECT_EQ(batch.tally.excused, 1);
  }
}

TEST(Engine, GivesUpAKernelThatNeverAnswers) {
  const Folder folder;
  const Ran ran = run_in(folder.path(), plan_of(cases), deadly_road(7));
  int given_up = 0;
  for (const BatchRecord& batch : parse_journal(canonical_text({ran.journal}), "canonical").batches) {
    const bool dead = batch.subject.kernel == "fake:a" && batch.subject.dtype == "bf16";
    // k = 4 is skipped by itself, so that the eighth death is at 8.
    const bool first = batch.subject.property == "fake.first";
    EXPECT_EQ(batch.tally.cases(), cases);
    if (!dead) {
      EXPECT_GT(batch.tally.held, cases / 2) << batch.subject.kernel << batch.subject.dtype;
      continue;
    }
    EXPECT_EQ(batch.tally.violated, first ? 8 : 0);
    EXPECT_EQ(batch.tally.judged(), batch.tally.violated);
    ++given_up;
  }
  EXPECT_EQ(given_up, 2);
}

/// Everything holds, but that fake:a is violated at every k below `last`: in the given way where `which` says so, and
/// by a wrong number elsewhere.
Road failing_road(Violation violation, std::int64_t last, const std::function<bool(std::int64_t)>& which) {
  Road road = fake::road();
  road.check = [=](const Property&, Kernel& kernel, const Case& c) {
    (void)kernel.run(c);
    const std::int64_t k = std::stoll(c.provenance.k.value());
    if (kernel.id() != "fake:a" || k >= last) return Verdict{};
    return violated(which(k) ? violation : Violation::bound, "it failed");
  };
  return road;
}

std::int64_t judged_of_second(const Road& road) {
  const Folder folder;
  std::int64_t judged = 0;
  for (const BatchRecord& batch : run_in(folder.path(), plan_of(cases), road).journal.batches) {
    if (batch.subject == Subject{"fake.second", "fake:a", "f32"}) judged += batch.tally.judged();
  }
  return judged;
}

TEST(Engine, GivesUpAKernelThatFailsInAnyWay) {
  const auto always = [](std::int64_t) { return true; };
  for (const Violation violation : {Violation::failed, Violation::rejected, Violation::malformed, Violation::died})
    EXPECT_EQ(judged_of_second(failing_road(violation, cases, always)), 0) << name_of(violation);
  EXPECT_EQ(judged_of_second(failing_road(Violation::failed, 8, always)), 0);
  EXPECT_GT(judged_of_second(failing_road(Violation::failed, 7, always)), cases / 2);
  // Numbers that are wrong are answers, whose every property is worth knowing; but a kernel that mostly gives none, and
  // wrong ones where it does, has nothing more to show.
  EXPECT_EQ(judged_of_second(failing_road(Violation::bound, cases, always)), cases);
  EXPECT_EQ(judged_of_second(failing_road(Violation::malformed, cases, [](auto k) { return k % 2 == 0; })), 0);
  EXPECT_EQ(judged_of_second(failing_road(Violation::malformed, cases, [](auto k) { return k % 3 == 0; })), cases);
}

TEST(Engine, GivesUpAKernelOverCasesThatItWasAsked) {
  // Three cases that hold of themselves come first.
  Road road = failing_road(Violation::failed, cases, [](std::int64_t) { return true; });
  road.check = [check = road.check](const Property& property, Kernel& kernel, const Case& c) {
    return std::stoll(c.provenance.k.value()) < 3 ? Verdict{} : check(property, kernel, c);
  };
  EXPECT_EQ(judged_of_second(road), 0);
}

TEST(Engine, DoesNotLookForeverForACaseThatAKernelTakes) {
  const Folder folder;
  Road road = fake::road();
  std::int64_t asked = 0;
  road.check = [&asked](const Property&, Kernel&, const Case&) {
    ++asked;
    return Verdict{.outcome = Outcome::skipped, .reason = "has too many keys"};
  };
  (void)run_in(folder.path(), plan_of(cases), road);
  // 2 properties, 2 kernels and 2 dtypes; what is looked at before is of each kernel and dtype.
  EXPECT_LE(asked, 8 * cases + 4 * 64);
}

TEST(Engine, GivesUpTheSameCasesInEveryShardAndJob) {
  const Folder whole, again, part_0, part_1, part_2;
  const Road road = deadly_road(7);
  const std::string expected = canonical_text({run_in(whole.path(), plan_of(cases), road).journal});
  EXPECT_NE(expected.find("in all of the first cases of fake.first"), std::string::npos);
  EXPECT_EQ(canonical_text({run_in(again.path(), plan_of(cases, 3), road).journal}), expected);
  EXPECT_EQ(canonical_text({run_in(part_0.path(), plan_of(cases, 2, {0, 3}), road).journal,
                            run_in(part_1.path(), plan_of(cases, 1, {1, 3}), road).journal,
                            run_in(part_2.path(), plan_of(cases, 1, {2, 3}), road).journal}),
            expected);
}

TEST(Engine, GivesUpNoneThatAnswersOnce) {
  const Folder folder;
  // The first eight cases that it takes are 0 to 3 and 5 to 8.
  const auto judged_with = [&](std::int64_t alive, std::int64_t answered = -1) {
    std::int64_t judged = 0;
    for (const BatchRecord& batch :
         run_in(folder.path(), plan_of(cases), deadly_road(alive, answered)).journal.batches) {
      if (batch.subject == Subject{"fake.second", "fake:a", "f32"}) judged += batch.tally.judged();
    }
    return judged;
  };
  EXPECT_GT(judged_with(8), cases / 2);
  EXPECT_EQ(judged_with(9), 0);
  EXPECT_GT(judged_with(cases, /*answered=*/2), cases / 2);
}

TEST(Engine, TakesEveryCaseOnce) {
  const Folder folder;
  const Plan plan = plan_of(cases);
  const Ran ran = run_in(folder.path(), plan);
  EXPECT_EQ(ran.ending, Ending::complete);
  Tally expected;
  for (std::int64_t k = 0; k < cases; ++k) expected.add(k, fake::verdict_at(k), fake::kinds_at(k), fake::bits_at(k));
  const std::vector<Journal> parts{ran.journal};
  const Journal whole = parse_journal(canonical_text(parts), "canonical");
  EXPECT_EQ(whole.batches.size(), 8U);  // 2 properties, 2 kernels, 2 dtypes
  for (const BatchRecord& batch : whole.batches) {
    Tally tally = batch.tally;
    for (const ShapeCounts::Facet& facet : tally.shapes.facets) EXPECT_EQ(sum_of(facet).judged, expected.judged());
    tally.shapes = {};
    EXPECT_EQ(tally, expected);
    EXPECT_EQ(batch.last_k, cases);
  }
  EXPECT_EQ(ran.observer.cases, 8 * cases);
  EXPECT_EQ(expected.drawn_of("mask:none mask:padding"), expected.judged());
  CountingObserver observer;
  const RunFolder again(folder.path(), RunFolder::Mode::resume);
  JournalWriter writer(again.journal());
  const Road road = fake::road();
  EXPECT_EQ(Engine(plan, road, again, writer, {}, observer).cases_planned(), 8 * cases);
}

TEST(Engine, GivesWideKernelsTheFirstCasesOnly) {
  for (const std::int64_t most : {std::int64_t{70}, cases, cases + 1}) {
    Journal whole;
    std::int64_t planned = 0;
    for (const Shard shard : {Shard{0, 2}, Shard{1, 2}}) {
      const Folder folder;
      Plan plan = plan_of(cases, 2, shard);
      plan.kernels.push_back(std::make_unique<FakeKernel>("wide:c"));
      plan.most_cases_of_wide = most;
      const Ran ran = run_in(folder.path(), plan);
      {
        const RunFolder again(folder.path(), RunFolder::Mode::resume);
        JournalWriter writer(again.journal());
        CountingObserver observer;
        const Road road = fake::road();
        planned += Engine(plan, road, again, writer, {}, observer).cases_planned();
      }
      // What stands is not done again.
      EXPECT_EQ(run_in(folder.path(), plan, fake::road(), /*resume=*/true).observer.cases, 0);
      whole.batches.insert(whole.batches.end(), ran.journal.batches.begin(), ran.journal.batches.end());
    }
    std::map<std::string, std::int64_t> counted;
    for (const BatchRecord& batch : whole.batches) counted[batch.subject.kernel] += batch.tally.cases();
    EXPECT_EQ(counted["fake:a"], 4 * cases);
    EXPECT_EQ(counted["wide:c"], 4 * std::min(most, cases)) << most;
    EXPECT_EQ(planned, 8 * cases + 4 * std::min(most, cases));
  }
}

TEST(Engine, WritesLongRunsInLargeBatches) {
  const Folder folder;
  const Journal journal = run_in(folder.path(), plan_of(64 * 64 + 256 + 9)).journal;
  std::map<Subject, std::vector<std::int64_t>> sizes;
  for (const BatchRecord& batch : journal.batches) sizes[batch.subject].push_back(batch.last_k - batch.first_k);
  std::vector<std::int64_t> expected(64, 64);
  expected.insert(expected.end(), {256, 9});
  EXPECT_EQ(sizes.size(), 8U);
  for (const auto& [subject, one] : sizes) EXPECT_EQ(one, expected);
}

TEST(Engine, WritesTheSameForAnyJobsAndShards) {
  const Folder folder;
  const std::string one = canonical_text({run_in(folder / "one", plan_of(cases)).journal});
  EXPECT_EQ(canonical_text({run_in(folder / "two", plan_of(cases, /*jobs=*/2)).journal}), one);
  EXPECT_EQ(canonical_text({run_in(folder / "nine", plan_of(cases, /*jobs=*/9)).journal}), one);
  EXPECT_EQ(canonical_text({run_in(folder / "s1", plan_of(cases, 2, {1, 2})).journal,
                            run_in(folder / "s0", plan_of(cases, 1, {0, 2})).journal}),
            one);
  EXPECT_NE(canonical_text({run_in(folder / "less", plan_of(cases - 1)).journal}), one);
}

TEST(Engine, GoesOnAfterAKillAtAnyByte) {
  const Folder folder;
  const std::string one = canonical_text({run_in(folder / "one", plan_of(cases, 2)).journal});
  const std::string text = read_file(folder / "one/run.jsonl");
  const std::size_t first_line = text.find('\n') + 1;
  for (std::size_t length = first_line; length < text.size(); length += 1 + text.size() / 23) {
    std::filesystem::create_directories(folder / "killed");
    std::ofstream(folder / "killed/run.jsonl", std::ios::trunc) << text.substr(0, length);
    const Ran ran = run_in(folder / "killed", plan_of(cases, 2), fake::road(), /*resume=*/true);
    EXPECT_EQ(canonical_text({ran.journal}), one) << length;
    EXPECT_LT(ran.observer.cases, 8 * cases + (length == first_line ? 1 : 0)) << "finished batches ran again";
  }
}

TEST(Engine, GoesOnWithMoreCases) {
  const Folder folder;
  run_in(folder / "run", plan_of(100));
  const Ran ran = run_in(folder / "run", plan_of(cases), fake::road(), /*resume=*/true);
  EXPECT_EQ(canonical_text({ran.journal}), canonical_text({run_in(folder / "one", plan_of(cases)).journal}));
}

TEST(Engine, SavesTheFindingsOfSmallestKAndNoMore) {
  const Folder folder;
  const Ran ran = run_in(folder.path(), plan_of(cases));
  std::vector<std::int64_t> ks;
  const Subject subject{"fake.first", "fake:a", "f32"};
  for (const FindingRecord& finding : ran.journal.findings) {
    if (finding.subject == subject && finding.verdict.outcome == Outcome::violated) ks.push_back(finding.k);
  }
  EXPECT_EQ(ks, (std::vector<std::int64_t>{7, 57, 107}));
  const Case saved = load_case(folder / "cases/fake.first--fake-a--f32--k57.safetensors");
  EXPECT_EQ(saved.provenance.shrunk.value(), "yes");
  EXPECT_EQ(saved.provenance.expected.value(), "violated");
  EXPECT_EQ(saved.provenance.property.value(), "fake.first");
  EXPECT_EQ(saved.provenance.kernel.value(), "fake:a");
}

/// What comes of cases for which memory runs out in one step of their road, at every k that `at` names.
void expect_run_to_its_end(const Road& road, Outcome outcome, const std::string& reason, std::int64_t k) {
  const Folder folder;
  const Ran ran = run_in(folder.path(), plan_of(cases, 2), road);
  EXPECT_EQ(ran.observer.cases, 8 * cases);
  std::int64_t named = 0;
  for (const BatchRecord& batch : ran.journal.batches)
    for (const auto& [why, count] : batch.tally.reasons)
      named += why.outcome == outcome && why.why.find(reason) != std::string::npos ? count : 0;
  EXPECT_EQ(named, 8) << "k = " << k;
}

TEST(Engine, EndsACaseAndNotTheRunWhereMemoryRunsOut) {
  constexpr std::int64_t k = 66;
  const auto is_it = [](const Case& c) { return c.provenance.k.value() == std::to_string(k); };
  Road road = fake::road();
  const auto make = road.generate;
  road.generate = [make](const Property& property, DType dtype, std::uint64_t seed, std::int64_t number) {
    if (number == k) throw std::bad_alloc();
    return make(property, dtype, seed, number);
  };
  expect_run_to_its_end(road, Outcome::skipped, "memory ran out", k);
  road = fake::road();
  road.project = [&](Case c, const Manifest&) {
    if (is_it(c)) throw std::bad_alloc();
    return c;
  };
  expect_run_to_its_end(road, Outcome::skipped, "memory ran out", k);
}

TEST(Engine, KeepsAFindingThatMemoryDoesNotSufficeToShrink) {
  const Folder folder;
  Road road = fake::road();
  road.shrink = [](const Property&, Kernel&, const Case&, int) -> Case { throw std::bad_alloc(); };
  const Ran ran = run_in(folder.path(), plan_of(cases), road);
  EXPECT_EQ(ran.observer.cases, 8 * cases);
  int shown = 0;
  for (const FindingRecord& finding : ran.journal.findings) {
    if (finding.verdict.outcome != Outcome::violated) continue;
    ++shown;
    EXPECT_NE(finding.verdict.reason.find("memory ran out as it was made smaller"), std::string::npos);
    EXPECT_FALSE(load_case(folder / finding.case_file).provenance.shrunk);
  }
  EXPECT_EQ(shown, 24);
}

// What ends a run in the middle of a batch, as Ctrl-C does: nothing would ever name its cases.
TEST(Engine, LeavesNoCaseOfABatchThatItDidNotFinish) {
  const Folder folder;
  Road road = fake::road();
  const auto check = road.check;
  road.check = [check](const Property& property, Kernel& kernel, const Case& c) {
    if (std::stoll(c.provenance.k.value()) >= 20) throw Abandoned();
    return check(property, kernel, c);
  };
  const Ran ran = run_in(folder.path(), plan_of(cases), road);
  EXPECT_TRUE(ran.journal.batches.empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "cases"));
}

TEST(Engine, SavesTheCaseOfTheWorstAlarm) {
  const Folder folder;
  Road road = fake::road();
  road.check = [](const Property& property, Kernel&, const Case& c) {
    const std::int64_t k = std::stoll(c.provenance.k.value());
    Verdict verdict{.utilisation = 0.5};
    if (&property == &fake::first_property) verdict.alarm = Alarm{10, k == 70 || k == 90 ? 2 : 0, 0, k == 90 ? 3. : 1.};
    return verdict;
  };
  const Plan plan = plan_of(cases);
  const RunFolder run(folder.path(), RunFolder::Mode::overwrite);
  JournalWriter writer(run.journal());
  CountingObserver observer;
  Engine engine(plan, road, run, writer, {}, observer);
  EXPECT_EQ(engine.run(), Ending::complete);
  Tally tally;
  tally.alarm = AlarmTally{{20, 4, 0, 3.0}, 2, 90};
  engine.save_worst({{"fake.first", "fake:a", "f32"}, 0, 0, {}, tally});
  EXPECT_EQ(load_case(folder / "cases/fake.first--fake-a--f32--alarm.safetensors").provenance.k.value(), "90");
  EXPECT_FALSE(std::filesystem::exists(folder / "cases/fake.first--fake-a--f32--worst.safetensors"));
  tally.alarm->all.beyond = 0;
  engine.save_worst({{"fake.first", "fake:b", "f32"}, 0, 0, {}, tally});
  EXPECT_FALSE(std::filesystem::exists(folder / "cases/fake.first--fake-b--f32--alarm.safetensors"));
}

TEST(Engine, StopsAtTheFirstViolation) {
  const Folder folder;
  Plan plan = plan_of(cases);
  plan.fail_fast = true;
  const Ran ran = run_in(folder.path(), plan);
  EXPECT_EQ(ran.ending, Ending::failed_fast);
  ASSERT_EQ(ran.journal.batches.size(), 1U);
  EXPECT_EQ(ran.journal.batches[0].last_k, 8);
  EXPECT_EQ(ran.journal.batches[0].tally.violated, 1);
  EXPECT_EQ(ran.journal.findings.size(), 1U);
}

TEST(Engine, BeginsNothingAfterTheDeadline) {
  const Folder folder;
  Plan plan = plan_of(std::int64_t{1} << 52);
  plan.deadline = std::chrono::steady_clock::now();
  const Ran ran = run_in(folder.path(), plan);
  EXPECT_EQ(ran.ending, Ending::out_of_time);
  EXPECT_TRUE(ran.journal.batches.empty());
}

TEST(Engine, EndsWithinABatchAtTheDeadlineAndGoesOnFromThere) {
  for (const Shard shard : {Shard{0, 1}, Shard{1, 2}}) {
    const Folder folder, whole;
    Plan plan = plan_of(cases, 1, shard);
    Road slow = fake::road();
    slow.check = [&plan, shard, check = slow.check](const Property& property, Kernel& kernel, const Case& c) {
      if (c.provenance.k.value() == (shard.count == 1 ? "22" : "23")) std::this_thread::sleep_until(*plan.deadline);
      return check(property, kernel, c);
    };
    plan.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    const Ran cut = run_in(folder.path(), plan, slow);
    EXPECT_EQ(cut.ending, Ending::out_of_time);
    // All eight have looked at their first cases, and the first kernel is in its second batch.
    ASSERT_EQ(cut.journal.batches.size(), 10U);
    EXPECT_EQ(cut.journal.batches[7].last_k, 8 * shard.count);
    EXPECT_EQ(cut.journal.batches[8].first_k, 8 * shard.count);
    EXPECT_EQ(cut.journal.batches[8].last_k, shard.count == 1 ? 23 : 25);
    EXPECT_EQ(cut.journal.batches[9].tally.cases(), 1);
    plan.deadline.reset();
    EXPECT_EQ(run_in(folder.path(), plan, fake::road(), /*resume=*/true).ending, Ending::complete);
    run_in(whole.path(), plan);
    EXPECT_EQ(canonical_text({read_journal(folder.path())}), canonical_text({read_journal(whole.path())}));
  }
}

TEST(Engine, RunsAgainWhatIsMissingBeforeWhatIsDone) {
  const Folder folder, again;
  Plan plan = plan_of(64);
  plan.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  Journal earlier = run_in(folder.path(), plan).journal;
  ASSERT_EQ(std::erase_if(earlier.batches, [](const BatchRecord& batch) { return batch.first_k == 0; }), 8U);
  plan.deadline.reset();
  {
    const RunFolder into(again.path(), RunFolder::Mode::overwrite);
    JournalWriter writer(into.journal());
    writer.append(RunRecord{.seed = plan.seed, .case_files = {}});
    CountingObserver observer;
    const Road road = fake::road();
    EXPECT_EQ(Engine(plan, road, into, writer, earlier, observer).run(), Ending::complete);
  }
  const Journal missing = read_journal(again.path());
  ASSERT_EQ(missing.batches.size(), 8U);
  for (const BatchRecord& batch : missing.batches) EXPECT_EQ(std::pair(batch.first_k, batch.last_k), std::pair(0L, 8L));
}

TEST(Engine, AsksOracleRowsFirst) {
  Plan plan = plan_of(1);
  plan.properties = {&property_named("attention.expectation"), &property_named("attention.oracle"),
                     &property_named("softmax.shift-invariance"), &property_named("backward.oracle-dq")};
  std::vector<std::string_view> names;
  for (const Cell& cell : cells_of(plan))
    if (names.empty() || names.back() != cell.property->name) names.push_back(cell.property->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"attention.oracle", "backward.oracle-dq", "attention.expectation",
                                                  "softmax.shift-invariance"}));
}

TEST(Engine, EndsWithWhatAThreadThrew) {
  const Folder folder;
  Road road = fake::road();
  road.check = [](const Property&, Kernel&, const Case& c) -> Verdict {
    if (c.provenance.k.value() == "70") throw UsageError("no more room");
    return {};
  };
  EXPECT_THROW(run_in(folder.path(), plan_of(cases, 2), road), UsageError);
  EXPECT_FALSE(read_journal(folder.path()).batches.empty());
}

TEST(Engine, SkipsAnOperationThatTheManifestLacks) {
  const Folder folder;
  Plan plan = plan_of(10);
  plan.properties = {&fake::multihead_property};
  const Ran ran = run_in(folder.path(), plan);
  ASSERT_EQ(ran.journal.batches.size(), 4U);
  EXPECT_EQ(ran.journal.batches[0].tally.reasons.at({Outcome::skipped, "has no multihead entry"}), 10);
}

TEST(Engine, NamesHowACallEndedAndDoesNotShrinkAHang) {
  for (const auto& [status, kind, shrunk] :
       {std::tuple{CallStatus::died, "died", true}, std::tuple{CallStatus::timed_out, "timed-out", false},
        std::tuple{CallStatus::malformed, "malformed", true}, std::tuple{CallStatus::rejected, "rejected", true}}) {
    const Folder folder;
    Plan plan = plan_of(1);
    plan.kernels.clear();
    plan.kernels.push_back(std::make_unique<FakeKernel>("fake:a", status));
    const Ran ran = run_in(folder.path(), plan);
    ASSERT_FALSE(ran.journal.findings.empty());
    EXPECT_EQ(ran.journal.findings[0].kind(), kind);
    const Case saved = load_case(folder / ran.journal.findings[0].case_file);
    EXPECT_EQ(saved.provenance.shrunk.has_value(), shrunk) << kind;
  }
}

TEST(Engine, SavesWhatCouldNotBeDecided) {
  const Folder folder;
  const Ran ran = run_in(folder.path(), plan_of(cases));
  const Subject subject{"fake.first", "fake:a", "f32"};
  std::vector<std::int64_t> ks;
  for (const FindingRecord& finding : ran.journal.findings) {
    if (finding.subject != subject || finding.verdict.outcome != Outcome::inconclusive) continue;
    EXPECT_EQ(finding.kind(), "inconclusive");
    ks.push_back(finding.k);
  }
  EXPECT_EQ(ks, (std::vector<std::int64_t>{9, 110, 211}));
  const Case saved = load_case(folder / "cases/fake.first--fake-a--f32--k110.safetensors");
  EXPECT_EQ(saved.provenance.expected.value(), "inconclusive");
  EXPECT_EQ(saved.provenance.property.value(), "fake.first");
  EXPECT_FALSE(saved.provenance.shrunk.has_value());
}

TEST(Engine, KeepsTheCaseAsFoundWhenTheShrunkOneHolds) {
  const Folder folder;
  Road road = fake::road();
  road.shrink = [](const Property&, Kernel&, const Case& c, int) {
    return fake::tiny_case(c.dtype(), 0);
  };  // held at k = 0
  const Ran ran = run_in(folder.path(), plan_of(20), road);
  ASSERT_FALSE(ran.journal.findings.empty());
  EXPECT_EQ(ran.journal.findings[0].verdict.outcome, Outcome::violated);
  EXPECT_EQ(load_case(folder / ran.journal.findings[0].case_file).provenance.k.value(), "7");
}

TEST(Engine, JudgesCapturedCasesWhereTheyApply) {
  const Folder folder;
  Plan plan = plan_of(0);
  plan.captured.push_back({"a.safetensors", fake::tiny_case(DType::f32, 1), ""});
  plan.captured.push_back({"b.safetensors", fake::tiny_case(DType::f64, 2), ""});
  plan.captured.push_back({"c.safetensors", fake::tiny_case(DType::f32, 3), "fake.second"});
  const Ran ran = run_in(folder.path(), plan);
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const BatchRecord& batch : ran.journal.batches)
    counts[{batch.subject.property, batch.subject.dtype}] += batch.tally.cases();
  EXPECT_EQ(counts, (std::map<std::pair<std::string, std::string>, std::int64_t>{{{"fake.first", "f32"}, 2},
                                                                                 {{"fake.first", "f64"}, 2},
                                                                                 {{"fake.second", "f32"}, 4},
                                                                                 {{"fake.second", "f64"}, 2}}));
  for (const BatchRecord& batch : ran.journal.batches) EXPECT_TRUE(batch.tally.drawn.empty());
}

TEST(WatchedKernel, AbandonsBetweenTwoCalls) {
  FakeKernel kernel("fake:a");
  bool stop = false;
  WatchedKernel watched(kernel, [&] { return stop; });
  EXPECT_EQ(watched.run(fake::tiny_case(DType::f32, 0), DType::f32, false).status, CallStatus::ok);
  stop = true;
  EXPECT_THROW((void)watched.run(fake::tiny_case(DType::f32, 0), DType::f32, false), Abandoned);
}

// A property may send other numbers than its case holds; every call counts, up to the next case.
TEST(WatchedKernel, NotesTheBitsOfEveryCall) {
  FakeKernel kernel("fake:a");
  WatchedKernel watched(kernel, [] { return false; });
  Case c = fake::tiny_case(DType::f32, 0);
  (void)watched.run(c, DType::f32, false);
  c[Slot::k].set(0, std::numeric_limits<double>::quiet_NaN());
  (void)watched.run(c, DType::f32, false);
  EXPECT_EQ(watched.take_sent(), set_of(BitClass::zero) | set_of(BitClass::non_finite));
  EXPECT_EQ(watched.take_sent(), 0U);
}

TEST(RunFolder, NamesDistinctKernelsDistinctly) {
  const auto named = [](const std::string& kernel, std::string_view name) {
    return case_file_name({"p", kernel, "f32"}, name, "k1");
  };
  const auto name = [&](const std::string& kernel) { return named(kernel, kernel); };
  EXPECT_EQ(name("builtin:flash"), "cases/p--builtin-flash--f32--k1.safetensors");
  EXPECT_NE(name("exec:a b"), name("exec:a_b"));
  EXPECT_NE(name("exec:a b"), name("exec:a/b"));
  EXPECT_NE(name("exec:" + std::string(300, 'x')), name("exec:" + std::string(301, 'x')));
  EXPECT_EQ(name("exec:../../etc").find('/'), name("exec:../../etc").rfind('/'));
  EXPECT_LT(name(std::string(3000, '%')).size(), 120U);
  // Two kernels may have one name in their manifests, and a name may look like another one's with its hash.
  EXPECT_TRUE(named("exec:python3 mine.py", "mine").starts_with("cases/p--mine-")) << named("exec:x", "mine");
  EXPECT_NE(named("exec:python3 mine.py", "mine"), named("exec:python3 mine.py --tiled", "mine"));
  EXPECT_NE(named("exec:a", "flash"), named("flash", "flash"));
  for (const std::string& foreign : {std::string("../../etc/passwd"), std::string(".hidden"), std::string("a\nb\0c", 5),
                                     std::string("\xff\xfe"), std::string(5000, 'a'), std::string("名前")})
    EXPECT_TRUE(is_case_file(named("exec:python3 mine.py", foreign))) << named("exec:python3 mine.py", foreign);
}

TEST(RunFolder, QuotesForTheShell) {
  EXPECT_EQ(shell_quoted("attest-run-001/cases/a.safetensors"), "attest-run-001/cases/a.safetensors");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(RunFolder, RefusesWhatItMayNotTake) {
  const Folder folder;
  std::ofstream(folder / "run.jsonl") << to_line(RunRecord{});
  std::ofstream(folder / "mine.txt") << "kept";
  EXPECT_THROW(RunFolder(folder.path(), RunFolder::Mode::fresh), UsageError);
  EXPECT_THROW(RunFolder(folder / "none", RunFolder::Mode::resume), UsageError);
  EXPECT_THROW(RunFolder("/dev/full", RunFolder::Mode::fresh), UsageError);
  EXPECT_THROW(RunFolder("/proc/none", RunFolder::Mode::fresh), UsageError);
  const RunFolder taken(folder.path(), RunFolder::Mode::overwrite);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(folder / "mine.txt"));
}

}  // namespace
}  // namespace attest
