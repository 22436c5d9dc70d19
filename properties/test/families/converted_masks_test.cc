// A right kernel that converts masks to a narrower format, as its manifest says: what overflows there hides a key that
// the case does not hide, and no law about masks may hold that against it.
#include <gtest/gtest.h>

#include <string_view>

#include "core/test/cases.h"
#include "core/value/dtype.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

Tampered converting_to_f16(bool returns_lse) {
  Tampered kernel = asked_otherwise([](Case& c) {
    const Tensor old = c.mask();
    if (!old.present() || old.dtype() == DType::boolean) return;
    Tensor converted(old.dtype(), old.shape());
    for (std::int64_t e = 0; e < old.elements(); ++e) converted.set(e, round_to(DType::f16, old[e]));
    c[Slot::mask] = std::move(converted);
  });
  kernel.manifest().arithmetic.usual[DType::f32].mask_format = DType::f16;
  kernel.manifest().promises = {};
  kernel.manifest().lse = returns_lse;
  kernel.manifest().multihead = kernel.manifest().backward = false;  // what is asked of these is not converted
  return kernel;
}

class ConvertedMasks : public testing::TestWithParam<bool> {};

TEST_P(ConvertedMasks, AreHeldByEveryLaw) {
  Tampered kernel = converting_to_f16(GetParam());
  for (const Property* property : catalogue()) {
    if (property->needs.find("attention") == std::string_view::npos) continue;
    const Tried t = tried(property->name, kernel, DType::f32, 40);
    EXPECT_EQ(t.violated, 0) << property->name << " k = " << t.first_violated << ": " << t.reason;
  }
}

TEST_P(ConvertedMasks, AreHeldByWhatWritesAMask) {
  Tampered kernel = converting_to_f16(GetParam());
  for (const std::string_view law : {"softcap.limit", "softcap.equals-mask", "alibi.equals-mask"}) {
    const Tried t = tried(law, kernel, DType::f32, 600);
    EXPECT_EQ(t.violated, 0) << law << " k = " << t.first_violated << ": " << t.reason;
    EXPECT_GE(t.held, 200) << law;
  }
}

TEST_P(ConvertedMasks, MayHideAKeyThatTheCapBringsNear) {
  // Scores 2^20 and 0, which the cap brings to 1/2 and 0. Written as a mask it takes 2^20 away, which overflows
  // float16.
  Tampered kernel = converting_to_f16(GetParam());
  Case c = test::one_query(DType::f32, {1024}, {1024, 0}, {0, 1});
  c.softcap = 0.5;
  const Verdict verdict = check_case(property_named("softcap.equals-mask"), kernel, c);
  EXPECT_EQ(verdict.outcome, Outcome::excused) << verdict.reason;
}

INSTANTIATE_TEST_SUITE_P(Kernel, ConvertedMasks, testing::Bool(),
                         [](const auto& p) { return p.param ? "WithLse" : "WithoutLse"; });

}  // namespace
}  // namespace attest
