// Every theorem about weights, self-attention, positions and heads holds for the definition, and kernels that obey
// every symmetry and are wrong are seen by the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/builtin.h"
#include "core/kernels/kernel_families.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/wrong_kernels.h"

namespace attest {
namespace {

/// Kernels that every law of symmetry holds for: they compute some function, and not the one of the documents.
TEST(MultiheadLaws, WhatIsSymmetricAndWrongIsViolated) {
  for (const char* const name :
       {"scales by sqrt(dv)", "squares its weights and renormalises them", "reads the keys and values of batch entry 0",
        "adds every mask after the scale", "knows no causal form where dk is not dv"}) {
    for (const char* const oracle : {"multihead.oracle", "multihead.any-length"}) {
      const Property& property = *properties_matching(oracle).at(0);
      // The lengths are those of attention without a mask.
      const bool about_masks = std::string_view(name).find("mask") != std::string_view::npos ||
                               std::string_view(name).find("causal") != std::string_view::npos;
      if (about_masks && property.name == "multihead.any-length") continue;
      Spoilt kernel(wrong_kernel(name).fault);
      int violated = 0;
      for (std::int64_t k = 0; k < 300; ++k)
        violated += check_case(property, kernel, generate(property, DType::f64, 1, k)).outcome == Outcome::violated;
      EXPECT_GE(violated, 5) << name << " by " << oracle;
    }
  }
}

/// Projects q, k and v in one product where they are one tensor, as programs do that are called with (x, x, x): with
/// W_k for W_v, where `wrong`. Counts these calls.
std::unique_ptr<Kernel> one_product_for_one_tensor(bool wrong, int& calls) {
  MultiheadFunction function = [wrong, &calls](const attest_multihead_problem& problem, attest_result& result,
                                               std::string& message) {
    attest_multihead_problem other = problem;
    const bool one = problem.q.data == problem.k.data && problem.k.data == problem.v.data;
    calls += one;
    if (one && wrong && std::equal(problem.w_v.shape, problem.w_v.shape + 2, problem.w_k.shape))
      other.w_v.data = problem.w_k.data;
    return run_builtin_multihead(two_pass_kernel(), other, result, message);
  };
  Manifest manifest = open_kernels("builtin:two-pass", {}).at(0)->manifest();
  manifest.attention = false, manifest.backward = false;
  // Memory that inputs have together takes no strides.
  manifest.strides = manifest.zero_strides = manifest.far_strides = false;
  return function_kernel("one-product", std::move(manifest), nullptr, std::move(function));
}

TEST(MultiheadLaws, LookAtTokensInTheSameMemory) {
  const Property& property = property_named("multihead.oracle");
  for (const bool wrong : {false, true}) {
    int calls = 0, violated = 0, held = 0;
    const auto kernel = one_product_for_one_tensor(wrong, calls);
    for (std::int64_t k = 0; k < 200; ++k) {
      const Outcome outcome =
          check_case(property, *kernel, project(generate(property, DType::f32, 1, k), kernel->manifest())).outcome;
      violated += outcome == Outcome::violated, held += outcome == Outcome::held;
    }
    EXPECT_GE(calls, 15);
    EXPECT_GE(held, 100);
    EXPECT_EQ(violated >= 3, wrong) << violated;
    EXPECT_TRUE(wrong || violated == 0) << violated;
  }
}

TEST(MultiheadLaws, HoldForTheDefinition) {
  Spoilt right(
      [](Kernel& kernel, const Case& c, DType output, bool want_lse) { return kernel.run(c, output, want_lse); });
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::multihead) continue;
    int held = 0;
    for (std::int64_t k = 0; k < 60; ++k) {
      const Verdict verdict = check_case(*property, right, generate(*property, DType::f64, 1, k));
      EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << " k = " << k << ": " << verdict.reason;
      held += verdict.outcome == Outcome::held;
    }
    EXPECT_GE(held, 20) << property->name << " is hardly ever judged";
  }
}

}  // namespace
}  // namespace attest
