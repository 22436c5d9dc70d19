// Every theorem about weights, self-attention, positions and heads holds for the definition, and kernels that obey
// every symmetry and are wrong are seen by the oracle.
#include <gtest/gtest.h>

#include <string_view>

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
