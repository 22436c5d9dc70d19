// A manifest's "lse" among what it requires and excludes: every call of every law keeps to it.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "properties/road/redeclared_kernel.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

/// Counts calls by whether their problem has a window and whether they ask for the lse.
class Listening : public RedeclaredKernel {
 public:
  using Kernel::run;
  using RedeclaredKernel::RedeclaredKernel;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    ++(has_variant(c, window_variant.name) ? windowed : plain)[want_lse ? 1 : 0];
    return RedeclaredKernel::run(c, output, want_lse);
  }
  int windowed[2] = {}, plain[2] = {};
};

/// All laws of attention, on a few cases each. How many were skipped because no lse may be asked for.
int judge_all(Listening& kernel) {
  int skipped = 0;
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    if (!property->misses_of(kernel.manifest()).empty()) continue;
    for (std::int64_t k = 0; k < 8; ++k) {
      const Case c = project(generate(*property, DType::f32, 1, k), kernel.manifest());
      const Verdict verdict = check_case(*property, kernel, c);
      EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << ", k = " << k << ": " << verdict.reason;
      skipped += verdict.reason == why_no_lse(kernel.manifest(), c) && !verdict.reason.empty() ? 1 : 0;
    }
  }
  return skipped;
}

Manifest windowed_manifest(const Kernel& kernel) {
  Manifest m = kernel.manifest();
  EXPECT_TRUE(m.lse && m.variants.contains(window_variant.name));
  return m;
}

TEST(AskedLse, IsAskedForWithAVariantThatIsSilentOnIt) {
  const auto flash = registered("builtin:flash");
  Listening kernel(*flash, windowed_manifest(*flash));
  EXPECT_EQ(judge_all(kernel), 0);
  EXPECT_GT(kernel.windowed[1], 50);
  EXPECT_GT(kernel.windowed[0], 50);
  EXPECT_GT(kernel.plain[1], 50);
  EXPECT_GT(kernel.plain[0], 50);
}

TEST(AskedLse, IsNeverAskedForWithAVariantThatExcludesIt) {
  const auto flash = registered("builtin:flash");
  Manifest m = windowed_manifest(*flash);
  m.variants[std::string(window_variant.name)].excluded = {Feature::lse};
  Listening kernel(*flash, std::move(m));
  EXPECT_GT(judge_all(kernel), 0);
  EXPECT_EQ(kernel.windowed[1], 0);
  EXPECT_GT(kernel.windowed[0], 50);
  EXPECT_GT(kernel.plain[1], 50);
}

TEST(AskedLse, IsAlwaysAskedForWithAVariantThatRequiresIt) {
  const auto flash = registered("builtin:flash");
  Manifest m = windowed_manifest(*flash);
  m.variants[std::string(window_variant.name)].required = {Feature::lse};
  Listening kernel(*flash, std::move(m));
  EXPECT_EQ(judge_all(kernel), 0);
  EXPECT_EQ(kernel.windowed[0], 0);
  EXPECT_GT(kernel.windowed[1], 50);
  EXPECT_GT(kernel.plain[0], 50);
}

TEST(AskedLse, IsAlwaysAskedForWhereTheManifestRequiresIt) {
  const auto flash = registered("builtin:flash");
  Manifest m = windowed_manifest(*flash);
  m.required = {Feature::lse};
  Listening kernel(*flash, std::move(m));
  EXPECT_EQ(judge_all(kernel), 0);
  EXPECT_EQ(kernel.windowed[0] + kernel.plain[0], 0);
}

}  // namespace
}  // namespace attest
