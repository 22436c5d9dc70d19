// The bound against correct kernels and broken ones (error-bounds.md, section 3), in the time everyone has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "fleet/fleet.h"
#include "fleet/validation.h"

namespace attest::fleet {
namespace {

/// A dtype and how many checks its kernels make at least; together more than 2e5.
struct Share {
  DType dtype;
  std::int64_t checks;
};

class BoundValidation : public testing::TestWithParam<Share> {};

TEST_P(BoundValidation, NoCorrectKernelExceedsItAndEveryKernelComesNear) {
  const Ledger ledger =
      validate_bound(GetParam().dtype, {.first_seed = 1, .seeds = 24, .max_keys = 256, .max_head_dim = 64});
  std::fputs(ledger.table().c_str(), stdout);
  const Entry total = ledger.total();
  EXPECT_GE(total.checks, GetParam().checks);
  RecordProperty("checks", std::to_string(total.checks));
  RecordProperty("worst", std::to_string(total.worst));
  for (const auto& [kernel, regimes] : ledger.entries()) {
    double worst = 0;
    for (const auto& [regime, entry] : regimes) {
      EXPECT_EQ(entry.violations, 0) << entry.first_violation;
      worst = std::max(worst, entry.worst);
    }
    // A bound that nothing comes near has been loosened.
    EXPECT_GE(worst, 0.05) << kernel;
  }
}

std::string dtype_name(const testing::TestParamInfo<Share>& share) {
  return std::string(name_of(share.param.dtype));
}
INSTANTIATE_TEST_SUITE_P(All, BoundValidation,
                         testing::Values(Share{DType::f64, 45'000}, Share{DType::f32, 95'000},
                                         Share{DType::f16, 55'000}, Share{DType::bf16, 50'000}),
                         dtype_name);

TEST(BrokenKernels, EveryOneIsFlaggedByItsBestProbe) {
  constexpr std::uint64_t cases = 40;
  for (const Broken& broken : broken_kernels()) {
    std::uint64_t flagged = 0;
    double worst = 0;
    for (std::uint64_t seed = 1; seed <= cases; ++seed) {
      const Case c = draw(broken.probe, broken.declares.input, broken.size, seed);
      const Answer answer = emulate(broken.does, c);
      const Verdict verdict = judge_attention(c, answer.out, {}, broken.declares);
      if (verdict.outcome == Outcome::violated) ++flagged;
      worst = std::max(worst, verdict.utilisation);
      // The same kernel without its fault must pass on the very case.
      Emulation repaired{broken.does.name, broken.declares, broken.does.structure, {}};
      const Verdict control = judge_attention(c, emulate(repaired, c).out, {}, broken.declares);
      ASSERT_EQ(control.outcome, Outcome::held) << broken.does.name << " repaired: " << control.reason;
    }
    std::printf("%-40s on %-10s flagged %3llu of %llu, worst ratio %.3g\n", broken.does.name.c_str(),
                std::string(name_of(broken.probe)).c_str(), static_cast<unsigned long long>(flagged),
                static_cast<unsigned long long>(cases), worst);
    EXPECT_GE(static_cast<double>(flagged), broken.flagged * static_cast<double>(cases)) << broken.does.name;
  }
}

}  // namespace
}  // namespace attest::fleet
