// The oracle's properties on the core's wide scalars, at their own precision: no right core is violated.
#include "properties/language/own_precision.h"

#include <gtest/gtest.h>

#include "properties/catalogue/property.h"
#include "properties/test/language/right_cores.h"

namespace attest {
namespace {

TEST(OwnPrecision, HoldsTheCoreInAHundredDrawnCases) {
  EXPECT_GE(held_cases({"core:mpfr", "core:mpfr@300", "core:cpp_dec_float_100", "core:arb"}, /*cases=*/25), 100);
}

TEST(OwnPrecision, LeavesTheVerdictOnAnotherKernelAlone) {
  const auto kernel = std::move(open_kernels("builtin:flash", {}).front());
  const Case c = generate(property_named("attention.oracle"), DType::f32, 1, 0);
  EXPECT_EQ(and_at_own_precision({.outcome = Outcome::excused, .reason = "x"}, *kernel, c).reason, "x");
}

}  // namespace
}  // namespace attest
