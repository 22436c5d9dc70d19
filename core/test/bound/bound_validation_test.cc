// The bound against correct kernels and broken ones (error-bounds.md, section 3), in the time everyone has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "core/test/cases.h"
#include "core/test/fleet/fleet.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {
namespace {

class BoundValidation : public testing::TestWithParam<Share> {};

TEST_P(BoundValidation, NoCorrectKernelExceedsItAndEveryKernelComesNear) {
  const Ledger ledger =
      validate_bound(GetParam().dtype, {.first_seed = 1, .seeds = 24, .max_keys = 256, .max_head_dim = 64});
  std::fputs(ledger.table().c_str(), stdout);
  const Entry total = ledger.total();
  EXPECT_GE(total.checks, GetParam().least);
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

// Together more than 2e5 checks.
INSTANTIATE_TEST_SUITE_P(All, BoundValidation,
                         testing::Values(Share{DType::f64, 45'000}, Share{DType::f32, 95'000},
                                         Share{DType::f16, 55'000}, Share{DType::bf16, 50'000}),
                         dtype_name);

class BoundOfVariants : public testing::TestWithParam<std::tuple<Added, DType>> {};

TEST_P(BoundOfVariants, NoCorrectKernelExceedsIt) {
  const auto& [added, dtype] = GetParam();
  const Ledger ledger =
      validate_bound(dtype, {.first_seed = 1, .seeds = 6, .max_keys = 128, .max_head_dim = 32, .added = added});
  std::fputs(ledger.table().c_str(), stdout);
  const Entry total = ledger.total();
  EXPECT_EQ(total.violations, 0) << total.first_violation;
  EXPECT_GE(total.checks, 6'000);
  // A bound that nothing comes near has been loosened.
  EXPECT_GE(total.worst, 0.2);
}

INSTANTIATE_TEST_SUITE_P(All, BoundOfVariants,
                         testing::Combine(testing::ValuesIn(every_added),
                                          testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16)),
                         [](const auto& test) {
                           return testing::PrintToString(std::get<0>(test.param)) + "_" +
                                  std::string(name_of(std::get<1>(test.param)));
                         });

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

// Found by the search of bound_validation_long_test: a kernel that folds its maximum into exp2 sums up a block of
// nothing but sinks with weights exp2(u|m c|), infinite from about |m| = 1e9 on, and times exp2(-huge) = 0 that is NaN.
Case sinks_first(double sink) {
  return test::one_query(DType::f32, {1}, {0.5, -0.25, 1, 0.75}, {3, 5, -1, 2}, {sink, sink, 0, 0});
}

TEST(FoldedMaximum, ABlockOfSinksMayLoseTheRowButNotChangeIt) {
  Emulation folded{"folded", plain(DType::f32), {}, {}};
  folded.arithmetic.base2 = folded.arithmetic.folded_exp2 = true;
  folded.arithmetic.block = 2;
  int lost = 0;
  for (int i = 0; i < 64; ++i) {
    const Case c = sinks_first(-0x1p126 * (1 + i / 64.0));
    const Tensor out = emulate(folded, c).out;
    if (!std::isfinite(out[0])) ++lost;
    const Verdict verdict = judge_attention(c, out, {}, folded.arithmetic);
    EXPECT_EQ(verdict.outcome, std::isfinite(out[0]) ? Outcome::held : Outcome::excused) << verdict.reason;
    // A finite answer is judged all the same, and a kernel that subtracts first has no excuse.
    const Tensor wrong(DType::f32, c.out_shape(), std::vector{0.5});
    EXPECT_EQ(judge_attention(c, wrong, {}, folded.arithmetic).outcome, Outcome::violated);
    const Tensor nan(DType::f32, c.out_shape(), std::vector{std::nan("")});
    EXPECT_EQ(judge_attention(c, nan, {}, plain(DType::f32)).outcome, Outcome::violated);
    EXPECT_EQ(judge_attention(c, emulate({"plain", plain(DType::f32), {}, {}}, c).out, {}, plain(DType::f32)).outcome,
              Outcome::held);
  }
  EXPECT_GT(lost, 0);
}

TEST(FoldedMaximum, TheUsualFiniteMasksLoseNothing) {
  Emulation folded{"folded", plain(DType::f32), {}, {}};
  folded.arithmetic.base2 = folded.arithmetic.folded_exp2 = true;
  folded.arithmetic.block = 2;
  for (const double sink : {-1e4, -1e6, -1e9}) {
    const Case c = sinks_first(sink);
    EXPECT_TRUE(finite_required(c, folded.arithmetic).at(0)) << sink;
    const Verdict verdict = judge_attention(c, emulate(folded, c).out, {}, folded.arithmetic);
    EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
    const Tensor nan(DType::f32, c.out_shape(), std::vector{std::nan("")});
    EXPECT_EQ(judge_attention(c, nan, {}, folded.arithmetic).outcome, Outcome::violated);
  }
}

TEST(FoldedMaximum, OneMaximumForAllKeysLosesNothing) {
  for (const std::int64_t block : {0, 4, 64}) {
    Emulation folded{"folded", plain(DType::f32), {}, {}};
    folded.arithmetic.base2 = folded.arithmetic.folded_exp2 = true;
    folded.arithmetic.block = block;
    for (const double sink : {-2e9, -1e30, -0x1p126, -0x1.fffffep127}) {
      const Case c = sinks_first(sink);
      EXPECT_TRUE(finite_required(c, folded.arithmetic).at(0)) << sink;
      const Verdict verdict = judge_attention(c, emulate(folded, c).out, {}, folded.arithmetic);
      EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
      Arithmetic split = folded.arithmetic;
      split.split_merge = true;
      EXPECT_FALSE(finite_required(c, split).at(0)) << "a split may see sinks alone";
    }
  }
}

// D2: the weight of the maximal key itself is 2 to the residual of m c.
TEST(FoldedMaximum, ALargeScoreMayLoseTheRow) {
  Emulation folded{"folded", plain(DType::f32), {}, {}};
  folded.arithmetic.base2 = folded.arithmetic.folded_exp2 = true;
  const Arithmetic subtracted = plain(DType::f32);
  int lost = 0;
  for (int i = 0; i < 64; ++i) {
    Case c = sinks_first(0);
    c[Slot::mask] = Tensor();
    c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector{0x1.199998p+0 + i * 0x1p-20});
    c.scale = 0x1p32 * (1 + i / 64.0);
    const Tensor out = emulate(folded, c).out;
    if (!std::isfinite(out[0])) ++lost;
    EXPECT_EQ(judge_attention(c, out, {}, folded.arithmetic).outcome, Outcome::excused);
    EXPECT_FALSE(finite_required(c, folded.arithmetic).at(0));
    EXPECT_TRUE(finite_required(c, subtracted).at(0));
    EXPECT_TRUE(std::isfinite(emulate({"plain", subtracted, {}, {}}, c).out[0]));
    c.scale = 0x1p18;
    EXPECT_TRUE(finite_required(c, folded.arithmetic).at(0));
  }
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace attest::fleet
