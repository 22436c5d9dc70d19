#include "core/problem/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace attest {
namespace {

TEST(Describe, PrintsASmallCaseWhole) {
  Case c;
  c.scale = 0.5;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 2}, std::vector{0.1, -0.0});
  c[Slot::k] = Tensor(DType::f32, {1, 1, 2, 2}, std::vector{1.0, 2.0, 3.0, 1e30});
  c[Slot::v] = Tensor(DType::f32, {1, 1, 2, 1}, std::vector{1.0, 0x1p-149});
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2}, std::vector{0.0, -std::numeric_limits<double>::infinity()});
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
}

}  // namespace
}  // namespace attest
