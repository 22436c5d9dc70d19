// A mask that only hides, or none, comes with either convention, which says nothing of it: no law may take its own
// numbers for ones that are added before the scale.
#include <gtest/gtest.h>

#include <string_view>

#include "properties/test/property_fixture.h"

namespace attest {
namespace {

TEST(MaskConventions, SayNothingOfMasksThatOnlyHide) {
  const auto kernel = registered("builtin:two-pass");
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    for (std::int64_t k = 0; k < 60; ++k) {
      Case c = project(generate(*property, DType::f32, /*run_seed=*/1, k), kernel->manifest());
      if (c.mask().present() && c.mask().dtype() != DType::boolean) continue;
      c.mask_convention = MaskConvention::pre_scale;
      const Verdict verdict = check_case(*property, *kernel, c);
      if (verdict.outcome != Outcome::violated) continue;
      ADD_FAILURE() << property->name << " k = " << k << ": " << verdict.reason;
      break;
    }
  }
}

}  // namespace
}  // namespace attest
