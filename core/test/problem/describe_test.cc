#include "core/problem/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/support/infinity.h"
#include "core/test/cases.h"

namespace attest {
namespace {

TEST(Describe, PrintsASmallCaseWhole) {
  Case c = test::one_query(DType::f32, {0.1, -0.0}, {1, 2, 3, 1e30}, {1, 0x1p-149}, {0, -infinity});
  c.scale = 0.5;
  EXPECT_EQ(describe(c),
            "attention: scale 0.5, causal none, mask_convention post-scale\n"
            "q f32 [1, 1, 1, 2]: [[[[0.1, -0]]]]\n"
            "k f32 [1, 1, 2, 2]: [[[[1, 2], [3, 1e+30]]]]\n"
            "v f32 [1, 1, 2, 1]: [[[[1], [1e-45]]]]\n"
            "mask f32 [1, 1, 1, 2]: [[[[0, -inf]]]]\n");
  // The sign of a NaN is nobody's business.
  c[Slot::v].set(0, std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0));
  EXPECT_NE(describe(c).find("v f32 [1, 1, 2, 1]: [[[[nan], [1e-45]]]]\n"), std::string::npos) << describe(c);
  c.provenance.strides = "k=padded-rows";
  EXPECT_TRUE(describe(c).starts_with(
      "attention: scale 0.5, causal none, mask_convention post-scale, strides k=padded-rows\n"));
  EXPECT_NE(describe(c, 3).find("k f32 [1, 1, 2, 2]: 4 numbers\n"), std::string::npos);
  c.provenance.strides.reset();
  c.append = 2;
  EXPECT_TRUE(describe(c).starts_with("attention: scale 0.5, causal none, mask_convention post-scale, append 2\n"));
}

}  // namespace
}  // namespace attest
