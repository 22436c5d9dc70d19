// Two kernels held against each other: to within both bounds, and what one of them does not answer is not judged.
#include "properties/road/compare_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test/says.h"
#include "properties/test/catalogue/spoilt.h"

namespace attest {
namespace {

struct Counts {
  int held = 0, violated = 0, skipped = 0, excused = 0;
  std::int64_t bits_agreed = 0, bits_compared = 0;
  std::string reason;
};

Counts compared(Kernel& kernel, Kernel& other, DType dtype = DType::f32, int cases = 200) {
  const Property& property = *properties_matching("attention.oracle").at(0);
  Counts n;
  for (int k = 0; k < cases; ++k) {
    const Case c = project(project(generate(property, dtype, 1, k), kernel.manifest()), other.manifest());
    const Verdict verdict = check_against(kernel, other, c);
    n.held += verdict.outcome == Outcome::held;
    n.violated += verdict.outcome == Outcome::violated;
    n.skipped += verdict.outcome == Outcome::skipped;
    n.excused += verdict.outcome == Outcome::excused;
    n.bits_agreed += verdict.bits_agreed, n.bits_compared += verdict.bits_compared;
    if (!verdict.reason.empty()) n.reason = verdict.reason;
  }
  return n;
}

TEST(CompareKernels, RightOnesAgreeWithoutTheSameBits) {
  const auto two_pass = registered("builtin:two-pass"), flash = registered("builtin:flash");
  const Counts n = compared(*two_pass, *flash);
  EXPECT_EQ(n.violated, 0) << n.reason;
  EXPECT_GT(n.held, 150);
  EXPECT_GT(n.bits_compared, n.bits_agreed);
  EXPECT_GT(n.bits_agreed, 0);
  const Counts same = compared(*flash, *flash);
  EXPECT_EQ(same.violated, 0);
  EXPECT_EQ(same.bits_agreed, same.bits_compared);
}

TEST(CompareKernels, AWrongOneDiffersWhicheverSideItIsOn) {
  const auto right = registered("builtin:flash");
  Tampered wrong = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  EXPECT_GT(compared(wrong, *right).violated, 60);
  EXPECT_GT(compared(*right, wrong).violated, 60);
}

TEST(CompareKernels, ANaNIsSeenOnEitherSideAndOnBoth) {
  const auto right = registered("builtin:flash");
  Tampered wrong = answered_otherwise(each_out([](double) { return NAN; }));
  EXPECT_GT(compared(wrong, *right).violated, 120);
  EXPECT_GT(compared(*right, wrong).violated, 120);
  EXPECT_GT(compared(wrong, wrong).violated, 120);
}

TEST(CompareKernels, LseIsComparedToo) {
  const auto right = registered("builtin:flash");
  Tampered wrong = answered_otherwise(each_lse([](double old) { return old + 0.125; }));
  const Counts n = compared(*right, wrong);
  EXPECT_GT(n.violated, 120);
  EXPECT_THAT(n.reason, Says("lse"));
}

TEST(CompareKernels, WhatTheOtherDoesNotAnswerIsSkipped) {
  const auto right = registered("builtin:flash");
  class Refusing : public Tampered {
   public:
    Refusing() : Tampered(registered("builtin:two-pass"), [](Case&) {}) {}
    Reply run(const Case&, std::optional<DType>, bool) override {
      return {CallStatus::died, "its process ended", {}, {}};
    }
  } refusing;
  const Counts other = compared(*right, refusing);
  EXPECT_EQ(other.skipped, 200);
  EXPECT_THAT(other.reason, Says("builtin:two-pass gives no output"));
  const Counts itself = compared(refusing, *right);
  EXPECT_EQ(itself.violated, 200);
  Tampered narrow = asked_otherwise([](Case&) {});
  narrow.manifest().dtypes = {DType::f64};
  EXPECT_EQ(compared(*right, narrow).skipped, 200);
}

TEST(CompareKernels, ADifferenceShrinks) {
  const auto right = registered("builtin:flash");
  Tampered wrong = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  const Property& property = *properties_matching("attention.oracle").at(0);
  int shrunk = 0;
  for (int k = 0; k < 40 && shrunk < 5; ++k) {
    const Case c = project(generate(property, DType::f32, 1, k), wrong.manifest());
    if (check_against(wrong, *right, c).outcome != Outcome::violated) continue;
    const Case smaller = shrink_against(wrong, *right, c, 300);
    EXPECT_EQ(check_against(wrong, *right, smaller).outcome, Outcome::violated);
    EXPECT_LE(smaller.k().elements(), c.k().elements());
    ++shrunk;
  }
  EXPECT_EQ(shrunk, 5);
}

}  // namespace
}  // namespace attest
