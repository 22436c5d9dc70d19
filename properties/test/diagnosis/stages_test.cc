// Planted faults whose stage is plain from what is wrong with them are found there, and nowhere else.
#include "properties/diagnosis/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/test/cases.h"
#include "properties/catalogue/property.h"
#include "properties/test/diagnosis/other_dropout.h"
#include "properties/test/diagnosis/other_factors.h"
#include "properties/test/diagnosis/other_scores.h"
#include "properties/test/diagnosis/other_slopes.h"

namespace attest {
namespace {

/// How often each stage is named among the first `most` violated cases of attention.oracle; -1: not determined.
std::map<int, int> stages_of(std::string_view name, DType dtype, int most = 16) {
  const auto kernel = registered("fault:" + std::string(name));
  const Property& property = *properties_matching("attention.oracle").at(0);
  std::map<int, int> counts;
  int found = 0;
  for (std::int64_t k = 0; k < 6000 && found < most; ++k) {
    const Case c = project(generate(property, dtype, 1, k), kernel->manifest());
    const Violation violation = check_case(property, *kernel, c).violation;
    if (violation != Violation::bound && violation != Violation::not_finite) continue;
    ++found;
    const StageFound one = stage_of(*kernel, c);
    EXPECT_FALSE(one.evidence.empty());
    ++counts[one.stage ? static_cast<int>(*one.stage) : -1];
  }
  EXPECT_GE(found, 3) << name;
  return counts;
}

/// Where it is determined it is this one, and it is at least once.
void expect_stage(std::string_view name, DType dtype, Stage stage) {
  const std::map<int, int> counts = stages_of(name, dtype);
  for (const auto& [which, count] : counts) {
    if (which == -1) continue;
    EXPECT_EQ(which, static_cast<int>(stage))
        << name << " " << name_of(dtype) << ": " << count << " times " << name_of(static_cast<Stage>(which));
  }
  EXPECT_TRUE(counts.contains(static_cast<int>(stage))) << name << " " << name_of(dtype) << ": never determined";
}

TEST(Stages, OfFaultsInTheScores) {
  expect_stage("bf16-scale", DType::f32, Stage::scores);
  expect_stage("bf16-scale", DType::bf16, Stage::scores);
  expect_stage("scale-ignored", DType::f32, Stage::scores);
  expect_stage("undeclared-narrow-q", DType::bf16, Stage::scores);
  expect_stage("undeclared-narrow-scores", DType::bf16, Stage::scores);
  expect_stage("undeclared-narrow-scores", DType::f16, Stage::scores);
  expect_stage("narrow-product-of-odd-head-dim", DType::bf16, Stage::scores);
  expect_stage("head-dim-in-eights", DType::f32, Stage::scores);
  expect_stage("bias-sign", DType::f32, Stage::scores);
  expect_stage("mask-scaled", DType::f32, Stage::scores);
}

TEST(Stages, OfFaultsInTheWeights) {
  expect_stage("coarse-exp", DType::f32, Stage::weights);
  expect_stage("exp-clamped", DType::f32, Stage::weights);
  expect_stage("undeclared-narrow-weights", DType::bf16, Stage::weights);
  expect_stage("undeclared-narrow-weights", DType::f16, Stage::weights);
}

TEST(Stages, OfFaultsInTheSums) {
  expect_stage("narrow-sum", DType::bf16, Stage::sums);
  expect_stage("narrow-sum", DType::f16, Stage::sums);
  expect_stage("narrow-output-sum", DType::bf16, Stage::sums);
  expect_stage("narrow-output-sum", DType::f16, Stage::sums);
}

TEST(Stages, OfFaultsInTheOutput) {
  expect_stage("output-truncated", DType::bf16, Stage::output);
  expect_stage("output-truncated", DType::f16, Stage::output);
}

/// The scale multiplied by one hundredth too much.
TEST(Stages, OfAScaleThatIsTooLarge) {
  const auto right = open_kernels("builtin:two-pass", {});
  Tampered wrong(open_kernels("builtin:two-pass", {}).front()->clone(), [](Case& c) { c.scale *= 1.01; });
  const Property& property = *properties_matching("attention.oracle").at(0);
  for (const DType dtype : {DType::f32, DType::f64}) {
    int found = 0;
    for (std::int64_t k = 0; k < 200; ++k) {
      const Case c = generate(property, dtype, 1, k);
      if (check_case(property, wrong, c).violation != Violation::bound) continue;
      const StageFound one = stage_of(wrong, c);
      if (!one.stage) continue;
      ++found;
      EXPECT_EQ(*one.stage, Stage::scores) << name_of(dtype) << " " << k << ": " << one.evidence;
    }
    EXPECT_GT(found, 20);
  }
}

TEST(Stages, OfACapThatIsAnother) {
  OtherScores wrong = of_another_cap([](double t, double cap) { return std::clamp(t, -cap, cap); });
  const Property& property = *properties_matching("attention.oracle").at(0);
  int found = 0;
  for (std::int64_t k = 0; k < 4000 && found < 5; ++k) {
    const Case c = project(generate(property, DType::f32, 1, k), wrong.manifest());
    if (c.softcap == 0 || check_case(property, wrong, c).violation != Violation::bound) continue;
    const StageFound one = stage_of(wrong, c);
    if (!one.stage) continue;
    ++found;
    EXPECT_EQ(*one.stage, Stage::scores) << k << ": " << one.evidence;
    EXPECT_TRUE(one.evidence.ends_with("the cap is at fault")) << k << ": " << one.evidence;
  }
  EXPECT_EQ(found, 5);
}

/// None of the four is dropout's; what else is wrong with a row that drops weights is found without it.
TEST(Stages, OfDropoutAreNone) {
  OtherDropout ignored(forget_dropout), undivided([](Case& c) { c.dropout_p = 0; });
  Tampered scaled = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  const Property &drawn = property_named("dropout.none"), &property = property_named("attention.oracle");
  const auto stages = [&](Kernel& kernel) {
    std::vector<StageFound> found;
    for (std::int64_t k = 0; k < 2000 && found.size() < 8; ++k) {
      const Case c = project(generate(drawn, DType::f32, 1, k), kernel.manifest());
      if (c[Slot::keep].present() && check_case(property, kernel, c).violation == Violation::bound)
        found.push_back(stage_of(kernel, c));
    }
    EXPECT_EQ(found.size(), 8U);
    return found;
  };
  for (Kernel* const kernel : {&ignored, &undivided}) {
    bool at_fault = false;
    for (const StageFound& one : stages(*kernel)) {
      EXPECT_FALSE(one.stage) << one.evidence;
      at_fault = at_fault || one.evidence.ends_with("the division by 1 - p, is at fault");
    }
    EXPECT_TRUE(at_fault);
  }
  bool determined = false;
  for (const StageFound& one : stages(scaled)) {
    if (!one.stage) continue;
    determined = true;
    EXPECT_EQ(*one.stage, Stage::scores) << one.evidence;
  }
  EXPECT_TRUE(determined);

  Case c;
  c[Slot::q] = c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
  c.dropout_p = 0.5;
  EXPECT_TRUE(stage_of(ignored, c).evidence.ends_with("nobody else knows"));
}

/// What slopes add is a mask of the row that stands alone; what else is wrong with such a row is found.
TEST(Stages, OfSlopesAreNone) {
  OtherSlopes ignored(forget_slopes);
  Tampered scaled = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  Case c = test::one_query(DType::f32, {1, 0.5}, {0, 3, 1, -2, 2, 2}, {1, 2, -1, 3, 0, 1});
  c.alignment = Causal::bottom_right;
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1}, std::vector<double>{0.375});
  const StageFound of_slopes = stage_of(ignored, c);
  EXPECT_FALSE(of_slopes.stage) << of_slopes.evidence;
  EXPECT_NE(of_slopes.evidence.find("a mask of what slopes add, comes out right: slopes, "), std::string::npos)
      << of_slopes.evidence;
  const StageFound of_scale = stage_of(scaled, c);
  EXPECT_EQ(of_scale.stage, Stage::scores) << of_scale.evidence;
}

/// What a row sees is none of the four.
/// Nor are factors, which have multiplied the row that stands alone.
TEST(Stages, OfFactorsAreNone) {
  OtherFactors ignored(forget_factors);
  Tampered scaled = asked_otherwise([](Case& c) { c.scale *= 1.01; });
  Case c = test::one_query(DType::f32, {1, 0.5}, {0, 3, 1, -2, 2, 2}, {1, 2, -1, 3, 0, 1});
  c[Slot::k_descale] = Tensor(DType::f32, {1, 1, 3}, std::vector<double>{0.7, 1.3, 0.9});
  c.kv_descale_block = 1;
  const StageFound of_factors = stage_of(ignored, c);
  EXPECT_FALSE(of_factors.stage) << of_factors.evidence;
  EXPECT_NE(of_factors.evidence.find(", multiplied by their factors, comes out right: factors, "), std::string::npos)
      << of_factors.evidence;
  const StageFound of_scale = stage_of(scaled, c);
  EXPECT_EQ(of_scale.stage, Stage::scores) << of_scale.evidence;
}

TEST(Stages, AreNotDeterminedWhereMasksOrRowsAreAtFault) {
  for (const char* const name : {"mask-of-first-head", "bool-mask-inverted", "bottom-right-for-top-left"}) {
    for (const auto& [which, count] : stages_of(name, DType::f32)) EXPECT_EQ(which, -1) << name << ": " << count;
  }
}

TEST(Stages, AreThoseOfAWrongOutputAlone) {
  const auto right = open_kernels("builtin:two-pass", {});
  const Property& property = *properties_matching("attention.oracle").at(0);
  for (std::int64_t k = 0; k < 20; ++k)
    EXPECT_FALSE(stage_of(*right.front(), generate(property, DType::f32, 1, k)).stage.has_value());
}

}  // namespace
}  // namespace attest
