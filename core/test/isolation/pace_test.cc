// How long calls are waited for: fast and slow kernels, kernels that hang in large cases and kernels that always hang.
#include "core/isolation/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/cost.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"
#include "core/test/places.h"

namespace attest {
namespace {

using namespace std::chrono_literals;
using namespace testing_process;

Case small() {
  return attention_case(DType::f64, {});
}
/// A little beyond the small ones.
Case large(std::int64_t length = 1000) {
  return attention_case(DType::f64, {1, 1, length, length, 1, 1});
}

constexpr auto remedy = "give more time with --timeout SECONDS, or leave such cases out with --no-large";

TEST(Pace, KeepsTheLimitThatWasGiven) {
  Pace pace(700ms, 10s);
  EXPECT_EQ(pace.limit_of(small()), 700ms);
  EXPECT_EQ(pace.limit_of(large()), 700ms);
  pace.answered(small(), 5s);
  EXPECT_EQ(pace.limit_of(large()), 700ms);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pace.late(large(), 700ms), "");
  EXPECT_EQ(pace.why_not_asked(large()), "");
}

TEST(Pace, StretchesTheLimitOfALargeCaseByTheSpeedOfCallsBefore) {
  Pace pace(std::nullopt, 10s);
  EXPECT_LT(cost_of(small()), small_cost);
  EXPECT_GT(cost_of(large()), small_cost);
  EXPECT_EQ(pace.limit_of(small()), 10s);
  // Nothing is known: in proportion to a small case's own.
  EXPECT_GT(pace.limit_of(large()), 10s);
  EXPECT_EQ(pace.limit_of(large(10'000)), 300s) << "the longest of all";
  pace.answered(small(), 100us);
  EXPECT_EQ(pace.limit_of(small()), 10s);
  EXPECT_EQ(pace.limit_of(large()), 10s) << "fast";
  const double times = cost_of(large()) / cost_of(small());
  pace.answered(small(), 50ms);
  EXPECT_NEAR(static_cast<double>(pace.limit_of(large()).count()), 1000 * 10 * 0.05 * times, 2);
  // The larger a case, the more it tells: what a small one costs is mostly the call itself.
  pace.answered(large(), 2s);
  EXPECT_NEAR(static_cast<double>(pace.limit_of(large()).count()), 20'000, 2);
  EXPECT_NEAR(static_cast<double>(pace.limit_of(large(2000)).count()), 80'000, 1000);
  pace.answered(small(), 5s);
  EXPECT_NEAR(static_cast<double>(pace.limit_of(large()).count()), 20'000, 2);
}

TEST(Pace, SaysWhatALateCallIs) {
  Pace pace(std::nullopt, 10s);
  EXPECT_EQ(pace.late(small(), 10s), "") << "hangs";
  EXPECT_THAT(pace.late(large(), 30s), Says("for 4e+06 flops, and it has answered no call before", remedy));
  pace.answered(large(900), 2s);
  EXPECT_THAT(pace.late(large(), 30s), Says("it took 2 s for 3.2e+06 flops before, 1.6e+06 flops a second", remedy));
}

TEST(Pace, AsksNoMoreAfterThreeLateCallsOrTenMinutes) {
  Pace pace(std::nullopt, 10s);
  for (int i = 0; i < most_late_calls; ++i) {
    EXPECT_EQ(pace.why_not_asked(large(1200)), "") << i;
    EXPECT_NE(pace.late(large(1200), 10s), "");
  }
  EXPECT_THAT(pace.why_not_asked(large(1200)), Says("were late or took minutes", remedy));
  EXPECT_NE(pace.why_not_asked(large(1300)), "");
  EXPECT_EQ(pace.why_not_asked(large(1100)), "") << "cheaper than all that were late";
  EXPECT_EQ(pace.why_not_asked(small()), "");

  Pace slow(std::nullopt, 10s);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(slow.why_not_asked(large()), "") << i;
    slow.answered(large(), 111s);
  }
  EXPECT_NE(slow.why_not_asked(large()), "");
  slow.answered(small(), 1h);
  EXPECT_EQ(slow.why_not_asked(small()), "");
}

std::unique_ptr<Kernel> program(const std::string& mode, const KernelOptions& options) {
  static const std::string python = ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  return open_kernel(
      "exec:exec " + python + " -I -S '" + source_folder() + "/core/test/isolation/misbehave.py' " + mode, options);
}

KernelOptions ordinary(std::chrono::milliseconds limit) {
  KernelOptions options;
  options.ordinary_reply = limit;
  return options;
}

TEST(TimeLimits, LetASlowProgramFinishALargeCase) {
  // A millisecond a query: a thousand of them take more than a small case is given.
  const auto kernel = program("slow", ordinary(600ms));
  ASSERT_EQ(kernel->run(small()).status, CallStatus::ok);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(kernel->run(large()).status, CallStatus::ok);
  EXPECT_GT(std::chrono::steady_clock::now() - start, 600ms);
  // With a limit that was given it is as ever.
  KernelOptions given = patient();
  given.reply = 600ms;
  expect_ending(program("slow", given)->run(large()), CallStatus::timed_out, "no reply within 0.6 s");
}

TEST(TimeLimits, TellAProgramThatHangsInLargeCasesFromOneThatHangs) {
  const auto kernel = program("hangs-when-large", ordinary(200ms));
  for (int i = 0; i < most_late_calls; ++i) {
    ASSERT_EQ(kernel->run(small()).status, CallStatus::ok);
    expect_ending(kernel->run(large()), CallStatus::late, Says("no reply within", "4e+06 flops", remedy));
  }
  const auto start = std::chrono::steady_clock::now();
  // Its clones know as well.
  const auto clone = kernel->clone();
  for (Kernel* asked : {kernel.get(), clone.get()})
    expect_ending(asked->run(large()), CallStatus::too_slow, Says("were not asked for", remedy));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 300ms) << "no waiting";
  ASSERT_EQ(kernel->run(small()).status, CallStatus::ok);

  const auto hangs = program("hangs", ordinary(300ms));
  for (int i = 0; i < 5; ++i) expect_ending(hangs->run(small()), CallStatus::timed_out, "no reply within 0.3 s");
}

TEST(TimeLimits, HoldForLibrariesInProcessesOfTheirOwn) {
  // It hangs in its second call.
  const auto kernel = open_kernel(library("hangs"), ordinary(300ms));
  ASSERT_EQ(kernel->run(small()).status, CallStatus::ok);
  expect_ending(kernel->run(large()), CallStatus::late, Says("no reply within", "4e+06 flops", remedy));
  const auto hangs = open_kernel(library("hangs"), ordinary(300ms));
  ASSERT_EQ(hangs->run(small()).status, CallStatus::ok);
  expect_ending(hangs->run(small()), CallStatus::timed_out, "no reply within 0.3 s");
}

TEST(TimeLimits, AreNoneInThisProcess) {
  KernelOptions options = ordinary(1ms);
  options.in_process = true;
  EXPECT_EQ(open_kernel(library("good"), options)->run(large()).status, CallStatus::ok);
}

TEST(TimeLimits, CallAStoppedProgramStopped) {
  expect_ending(program("stops-when-large", ordinary(300ms))->run(large()), CallStatus::timed_out,
                Says("a signal has stopped its process"));
}

}  // namespace
}  // namespace attest
