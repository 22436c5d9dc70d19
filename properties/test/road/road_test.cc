// The road of a case and the threads that send cases along it.
#include "properties/road/road.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "core/test/cases.h"
#include "properties/road/jobs.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

const Property& oracle() {
  return property_named("attention.oracle");
}

Case drawn() {
  return generate(oracle(), DType::f32, /*run_seed=*/1, /*k=*/1);
}

Road holding_without_a_call() {
  Road road;
  road.check = [](const Property&, Kernel&, const Case&) { return Verdict{}; };
  return road;
}

TEST(Road, BringsACaseToItsVerdictAndSaysWhatWasSent) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash");
  WatchedKernel watched(*flash);
  const Walked walked = walk({}, oracle(), watched, drawn);
  EXPECT_EQ(walked.verdict.outcome, Outcome::held) << walked.verdict.reason;
  EXPECT_EQ(walked.problem, project(drawn(), flash->manifest()));
  EXPECT_NE(walked.sent, 0);
}

TEST(Road, AppliesTheLimitsOfTheManifestUnlessItIsToldNotTo) {
  ASSERT_GT(extents_of(drawn()).keys, 1);
  Tampered limited(registered("builtin:flash"), [](Case&) {});
  limited.manifest().max_keys = 1;
  WatchedKernel watched(limited);
  const Walked cropped = walk({}, oracle(), watched, drawn),
               whole = walk(without_projection({}), oracle(), watched, drawn);
  // Of what is packed the limit is each sequence's.
  std::int64_t longest = 0;
  for (const Sequence& one : sequences_of(cropped.problem)) longest = std::max(longest, one.keys);
  EXPECT_EQ(longest, 1);
  EXPECT_NE(cropped.verdict.outcome, Outcome::skipped);
  EXPECT_EQ(whole.problem, drawn());
  EXPECT_EQ(whole.verdict.outcome, Outcome::skipped);
}

TEST(Road, DoesNotHoldWithoutAnAnswerOfTheKernel) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash"), core = registered("core:double");
  WatchedKernel watched(*flash), looked_into(*core);
  const Walked walked = walk(holding_without_a_call(), oracle(), watched, drawn);
  EXPECT_EQ(walked.verdict.outcome, Outcome::skipped);
  EXPECT_EQ(walked.verdict.reason, "has nothing that the kernel answered");
  // The core's functions are asked by themselves.
  EXPECT_EQ(walk(holding_without_a_call(), oracle(), looked_into, drawn).verdict.outcome, Outcome::held);
}

TEST(Road, DoesNotTakeTheAnswersOfACaseBeforeForThisOnes) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash");
  WatchedKernel watched(*flash);
  ASSERT_EQ(walk({}, oracle(), watched, drawn).verdict.outcome, Outcome::held);
  (void)watched.run(drawn(), DType::f32, false);
  EXPECT_EQ(walk(holding_without_a_call(), oracle(), watched, drawn).verdict.outcome, Outcome::skipped);
}

TEST(Road, TellsOfABackwardPassAndEndsBeforeTheNext) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash");
  bool stopped = false;
  int outputs = 0, gradients = 0;
  WatchedKernel watched(
      *flash, [&] { return stopped; }, [&](const Case&, const Tensor&) { ++outputs; },
      [&](const Case& c, const BackwardCall& call, const Reply& reply) {
        EXPECT_TRUE(asks_for_gradients(c));
        EXPECT_EQ(call.out.shape(), c.out_shape());
        EXPECT_EQ(reply.gradients[0].shape(), c.q().shape());
        ++gradients;
      });
  const Property& property = property_named("backward.oracle-dq");
  const auto one_case = [&] { return generate(property, DType::f32, /*run_seed=*/1, /*k=*/1); };
  EXPECT_FALSE(walk({}, property, watched, one_case).is(Outcome::violated));
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ(gradients, 1);
  stopped = true;
  EXPECT_THROW((void)watched.backward(one_case(), {}, DType::f32), Abandoned);
}

TEST(Road, SkipsWhatTheKernelHasNoEntryForAndDrawsNothing) {
  Tampered without(registered("builtin:flash"), [](Case&) {});
  without.manifest().attention = false;
  WatchedKernel watched(without);
  const Walked walked = walk({}, oracle(), watched, []() -> Case { throw std::logic_error("drawn"); });
  EXPECT_EQ(walked.verdict.outcome, Outcome::skipped);
  EXPECT_EQ(walked.verdict.reason, "has no attention entry");
}

TEST(Road, SkipsACaseThatMemoryDoesNotSufficeFor) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash");
  WatchedKernel watched(*flash);
  const Walked walked = walk({}, oracle(), watched, []() -> Case { throw std::bad_alloc(); });
  EXPECT_EQ(walked.verdict.outcome, Outcome::skipped);
  EXPECT_NE(walked.verdict.reason.find("memory ran out"), std::string::npos);
}

// The exponentials of 4096 pairs of a query and a key take as long as a million multiplications where digits are many.
TEST(Road, AsksAKernelOfMoreDigitsForSmallerCases) {
  const test::CaseSizes sizes{.queries = 64, .keys = 64, .dk = 8, .dv = 8};
  const auto zeros = [](Slot, const Shape& shape) { return Tensor(DType::f64, shape); };
  const auto outcome_on = [&](const std::string& id) {
    const std::unique_ptr<Kernel> kernel = std::move(open_kernels(id, {}).front());
    WatchedKernel watched(*kernel);
    return walk(holding_without_a_call(), oracle(), watched, [&] { return test::attention_of(sizes, zeros); }).verdict;
  };
  EXPECT_EQ(outcome_on("core:double").outcome, Outcome::held);
  EXPECT_EQ(outcome_on("core:mpfr").outcome, Outcome::held);
  const Verdict dear = outcome_on("core:mpfr@300");
  EXPECT_EQ(dear.outcome, Outcome::skipped);
  EXPECT_NE(dear.reason.find("on 300 decimal digits"), std::string::npos) << dear.reason;
}

TEST(Road, IsLeftBeforeACaseOnceTheRunIsToEnd) {
  const std::unique_ptr<Kernel> flash = registered("builtin:flash");
  WatchedKernel watched(*flash, [] { return true; });
  EXPECT_THROW((void)walk({}, oracle(), watched, drawn), Abandoned);
}

TEST(WatchedKernel, TellsItsListenerOfEveryAnswerInADtype) {
  Tampered refusing(registered("core:double"), [](Case&) {});
  int heard = 0;
  WatchedKernel watched(
      refusing, [] { return false; },
      [&](const Case& c, const Tensor& out) {
        ++heard;
        EXPECT_EQ(out.dtype(), c.dtype());
      });
  (void)watched.run(drawn(), std::nullopt, false);
  EXPECT_EQ(heard, 1);
}

TEST(Jobs, ThrowTheFirstErrorWhenAllHaveEnded) {
  std::atomic<int> ended = 0;
  Jobs jobs;
  jobs.start([&] {
    while (!jobs.failed()) std::this_thread::yield();
    ++ended;
  });
  jobs.start([] { throw std::runtime_error("the disk is full"); });
  EXPECT_THROW(jobs.wait([] {}), std::runtime_error);
  EXPECT_EQ(ended, 1);
}

TEST(Jobs, ThrowWhatTheTickThrows) {
  Jobs jobs;
  jobs.start([&] {
    while (!jobs.failed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_THROW(jobs.wait([] { throw std::runtime_error("no terminal"); }), std::runtime_error);
}

TEST(Jobs, WaitForWorkThatNobodyJoins) {
  Jobs jobs;
  jobs.begin_apart();
  std::atomic<bool> done = false;
  std::thread apart([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
    jobs.end_apart();
  });
  jobs.wait([] {});
  EXPECT_TRUE(done);
  apart.join();
}

TEST(InParallel, DoesEachPartOnceAndBeginsNoneAfterAnError) {
  std::atomic<int> calls = 0;
  std::atomic<std::uint64_t> parts = 0;
  in_parallel(40, 3, [&](std::size_t n) {
    ++calls;
    parts |= std::uint64_t{1} << n;
  });
  EXPECT_EQ(calls, 40);
  EXPECT_EQ(parts, (std::uint64_t{1} << 40) - 1);
  calls = 0;
  EXPECT_THROW(in_parallel(1000, 1,
                           [&](std::size_t n) {
                             ++calls;
                             if (n == 2) throw std::runtime_error("no");
                           }),
               std::runtime_error);
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace attest
