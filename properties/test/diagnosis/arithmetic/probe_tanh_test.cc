// The error of a tanh is found where it is larger than what weights err by anyhow, and hidden where it is not.
#include "properties/diagnosis/arithmetic/probe_tanh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "core/test/says.h"
#include "properties/test/diagnosis/other_scores.h"

namespace attest {
namespace {

/// A tanh that errs by as much as `error` of its result, to both sides.
OtherScores with_error(double error) {
  return of_another_cap(
      [error](double t, double cap) { return capped_at(t, cap) * (1 + error * std::sin(12345 * t / cap)); });
}

struct Asked {
  ArithmeticFinding tanh;
  Arithmetic declare;
};
Asked asked(Kernel& kernel, DType dtype) {
  ProbedArithmetic probed = probe_arithmetic(kernel, dtype);
  for (const ArithmeticFinding& one : probed.findings)
    if (one.question == "error of tanh") return {one, probed.declare};
  throw std::out_of_range("error of tanh");
}

TEST(ProbeTanh, IsHiddenWhereItIsAsExactAsWeights) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const auto kernel = registered("builtin:two-pass");
    const Asked found = asked(*kernel, dtype);
    EXPECT_THAT(found.tanh.found, Says("not told below")) << found.tanh.evidence;
    EXPECT_FALSE(found.tanh.contradicts);
    EXPECT_EQ(found.tanh.declared, "2.5 ulp");
    EXPECT_EQ(found.declare.tanh, kernel->manifest().arithmetic.usual_for(dtype).tanh);
  }
}

TEST(ProbeTanh, IsFoundToContradictWhatIsDeclared) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    OtherScores coarse = with_error(0x1p-11);
    const Asked found = asked(coarse, dtype);
    EXPECT_THAT(found.tanh.found, testing::StartsWith("up to 0.000")) << found.tanh.evidence;
    EXPECT_TRUE(found.tanh.contradicts) << name_of(dtype) << found.tanh.evidence;
    ASSERT_EQ(found.declare.tanh.measure, TanhMeasure::relative);
    EXPECT_GE(found.declare.tanh.value, 0x1p-11);
    EXPECT_LE(found.declare.tanh.value, 0x1p-10);
    // Declared so, it is as it may be.
    coarse.manifest().arithmetic.usual.at(dtype) = found.declare;
    const Asked again = asked(coarse, dtype);
    EXPECT_FALSE(again.tanh.contradicts) << again.tanh.evidence;
    EXPECT_EQ(again.declare.tanh, found.declare.tanh);
  }
}

TEST(ProbeTanh, IsNotAskedOfACapThatIsNone) {
  Tampered none = asked_otherwise([](Case& c) { c.softcap = 0; });
  const Asked ignored = asked(none, DType::f32);
  EXPECT_THAT(ignored.tanh.found, Says("not asked", "\"softcap\""));
  EXPECT_FALSE(ignored.tanh.contradicts);
  none.manifest().variants.erase("softcap");
  EXPECT_THROW((void)asked(none, DType::f32), std::out_of_range) << "nothing is said of it";
}

}  // namespace
}  // namespace attest
