// The oracle's properties on the core's wide scalars in 10^4 drawn cases.
#include <gtest/gtest.h>

#include "properties/test/language/right_cores.h"

namespace attest {
namespace {

TEST(OwnPrecisionLong, HoldsTheCoreInTenThousandDrawnCases) {
  EXPECT_GE(
      held_cases({"core:mpfr@40", "core:mpfr", "core:cpp_bin_float_50", "core:cpp_dec_float_100"}, /*cases=*/1600),
      10'000);
}

}  // namespace
}  // namespace attest
