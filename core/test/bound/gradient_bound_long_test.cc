// The bound of gradients against the fleet at length, and against a search for inputs that would break it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/test/fleet/backward.h"

namespace attest::fleet {
namespace {

class GradientBoundLong : public testing::TestWithParam<DType> {};

void report(const std::string& what, const GradientCount& count) {
  std::printf("%-48s %10ld checks, %8ld excused, %8ld vacuous, %4ld beyond, worst %.4f\n", what.c_str(), count.checks,
              count.excused, count.vacuous, count.violations, count.worst);
  std::fflush(stdout);
  EXPECT_EQ(count.violations, 0) << count.first_violation;
}

// Of each kernel 1e7 checks, with nothing added and with everything that may be; many small shapes, fewer large ones.
TEST_P(GradientBoundLong, NoCorrectKernelExceedsIt) {
  for (const BackwardEmulation& kernel : correct_backward_kernels()) {
    if (kernel.forward.arithmetic.input != GetParam()) continue;
    GradientCount count;
    for (std::uint64_t seed = 100'000; count.checks < 10'000'000; seed += 1000)
      for (const Added added :
           {Added::nothing, Added::window, Added::sink, Added::softcap, Added::dropout, Added::slope}) {
        count.merge(validate_gradients(kernel, {.first_seed = seed, .seeds = 50, .added = added}));
        count.merge(validate_gradients(
            kernel,
            {.first_seed = seed, .seeds = 2, .most_rows = 40, .most_keys = 200, .most_columns = 24, .added = added}));
      }
    report(kernel.forward.name, count);
  }
}

// The probabilistic bound, at shapes where it is far below the proved one.
TEST_P(GradientBoundLong, NoCorrectKernelRaisesTheAlarm) {
  for (const BackwardEmulation& kernel : correct_backward_kernels()) {
    if (kernel.forward.arithmetic.input != GetParam()) continue;
    GradientCount count;
    for (const Added added : {Added::nothing, Added::window, Added::sink, Added::softcap, Added::dropout, Added::slope})
      count.merge(validate_gradients(kernel, {.first_seed = 500,
                                              .seeds = 3,
                                              .most_rows = 200,
                                              .most_keys = 250,
                                              .most_columns = 32,
                                              .added = added,
                                              .alarm_probability = alarm_probability}));
    report(kernel.forward.name + ", alarm", count);
    std::printf("  %ld elements held against the alarm, %ld not covered, worst %.4f\n", count.alarm.elements,
                count.alarm.uncovered, count.alarm.worst);
    EXPECT_EQ(count.alarm.beyond, 0) << count.first_alarm;
    EXPECT_GT(count.alarm.elements + count.alarm.uncovered, 100'000);
  }
}

TEST_P(GradientBoundLong, NoSearchFindsAnInputThatExceedsIt) {
  for (const BackwardEmulation& kernel : correct_backward_kernels()) {
    if (kernel.forward.arithmetic.input != GetParam()) continue;
    GradientCount count;
    for (std::uint64_t seed = 1; count.checks < 10'000'000; ++seed)
      for (const Added added : {Added::nothing, Added::sink, Added::softcap, Added::dropout})
        count.merge(climb_gradients(kernel, seed, 6'000, added));
    report(kernel.forward.name + ", climbing", count);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientBoundLong, testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

}  // namespace
}  // namespace attest::fleet
