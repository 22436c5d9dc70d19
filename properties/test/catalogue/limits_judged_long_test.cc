// Each theorem is judged on kernels with the limits of a GPU's kernels: by as many as can meet its hypotheses.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "properties/test/property_fixture.h"

namespace attest {
namespace {

struct LimitedClass {
  const char* name;
  std::function<void(Manifest&)> limit;
  std::set<std::string_view> out_of_reach;  ///< with why
};

std::vector<LimitedClass> classes() {
  return {{"head dimensions 64 and 128, lengths in multiples of 64",
           [](Manifest& m) {
             m.head_dims = {64, 128};
             m.queries_multiple = m.keys_multiple = 64;
             m.strides = false;
           },
           {// There is no problem of one key.
            "attention.one-key", "backward.one-key",
            // Row-major tensors alone.
            "attention.strides", "backward.strides",
            // Of other widths, and too small for these.
            "backward.head-dims", "backward.directional"}},
          {"causal for M = N in multiples of 128, in groups",
           [](Manifest& m) {
             m.head_dims = {64, 128};
             m.queries_multiple = m.keys_multiple = 128;
             m.same_lengths = true;
             m.causal = {Causal::top_left, Causal::bottom_right};
             m.additive_masks = m.bool_masks = false;
             m.required = {Feature::causal};
             m.strides = false;
           },
           {// Stated without a causal form, with a mask, for M other than N, or of strides.
            "softmax.rows-sum-to-one", "softmax.nonnegative", "softmax.permutation-equivariance",
            "softmax.column-permutation", "softmax.row-locality", "softmax.row-permutation",
            "softmax.columnwise-is-transpose", "softmax.shift-invariance", "softmax.monotone",
            "attention.query-deletion", "attention.query-locality", "attention.key-value-permutation",
            "attention.permutation-equivariance", "attention.single-query", "attention.one-key", "attention.equal-keys",
            "attention.key-duplication", "attention.split-merge", "attention.strides", "masked.query-deletion",
            "masked.suppression", "masked.suppression-limit", "masked.key-value-deletion", "masked.tail-padding",
            "masked.zero-mask", "masked.boolean-is-additive", "masked.conventions-agree", "masked.conventions-differ",
            "masked.renormalisation", "masked.breaks-equivariance", "masked.equivariance-with-mask", "masked.row-shift",
            "masked.fully-masked-row", "causal.alignment", "batch.mask-forms", "backward.oracle-dmask",
            "backward.ds-rows-sum-to-zero", "backward.hidden-keys", "backward.masked-row", "backward.one-key",
            "backward.query-additivity", "backward.zero-row-deletes", "backward.query-duplication",
            "backward.key-duplication", "backward.permutation-equivariance", "backward.dead-inputs",
            "backward.tail-padding", "backward.row-shift", "backward.split-keys", "backward.strides",
            // Of other widths, and too small for these.
            "backward.head-dims", "backward.directional"}}};
}

TEST(Judged, EveryTheoremWithinTheLimitsOfAGpusKernel) {
  constexpr int cases = 20;
  for (const LimitedClass& of : classes()) {
    Tampered kernel(std::move(open_kernels("builtin:flash", {}).front()), [](Case&) {});
    of.limit(kernel.manifest());
    kernel.manifest().variants.clear();
    int drawn = 0, reached = 0, rows = 0;
    for (const Property* const property : catalogue()) {
      // Kernels of whole tiles alone have no variant: their laws need lengths of all sizes.
      if (property->operation != Operation::attention || property->needs.find("core") != std::string_view::npos ||
          !property->variant.empty())
        continue;
      int judged = 0;
      std::map<std::string, int> why;
      for (int k = 0; k < cases; ++k) {
        const Verdict verdict = verdict_on(*property, kernel, DType::f32, k);
        EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << " k = " << k << ": " << verdict.reason;
        judged += verdict.outcome == Outcome::held;
        reached += verdict.outcome != Outcome::skipped;
        if (verdict.outcome != Outcome::held) ++why[verdict.reason];
      }
      drawn += cases;
      if (judged * 5 >= cases) ++rows;
      std::string reasons;
      for (const auto& [reason, count] : why) reasons += "; " + std::to_string(count) + " " + reason;
      if (of.out_of_reach.contains(property->name)) {
        EXPECT_LT(judged * 5, cases) << property->name << " is within reach of " << of.name;
      } else {
        EXPECT_GE(judged * 5, cases) << of.name << ": " << property->name << reasons;
      }
    }
    std::cout << of.name << ": " << reached << " of " << drawn << " cases reached the kernel, " << rows
              << " rows judged\n";
  }
}

}  // namespace
}  // namespace attest
