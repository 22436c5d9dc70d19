// Each theorem is judged on the kernels that it is about: by every class of manifest that can meet its hypotheses.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "properties/test/property_fixture.h"

namespace attest {
namespace {

/// What a kernel may be unable to do.
struct ManifestClass {
  const char* name;
  std::function<void(Manifest&)> limit;
};
const std::vector<ManifestClass>& classes() {
  static const std::vector<ManifestClass> all{
      {"default", [](Manifest&) {}},
      {"self-attention only", [](Manifest& m) { m.self_attention_only = true; }},
      {"boolean masks only", [](Manifest& m) { m.additive_masks = false; }},
      {"top-left causal only", [](Manifest& m) { m.causal = {Causal::top_left}; }},
      {"head dimension a multiple of 8", [](Manifest& m) { m.head_dim_multiple = 8; }},
      {"post-scale only", [](Manifest& m) { m.mask_conventions = {MaskConvention::post_scale}; }},
      {"PyTorch's limits", [](Manifest& m) {
         m.any_scale = false;
         m.value_dim_equals_head_dim = true;
         m.mask_conventions = {MaskConvention::post_scale};
         m.causal = {Causal::top_left};
       }}};
  return all;
}

/// What a class cannot meet, and why.
const std::map<std::string_view, std::set<std::string_view>>& out_of_reach() {
  static const std::map<std::string_view, std::set<std::string_view>> all{
      {"self-attention only",
       {// Queries, keys or values that are not the others.
        "attention.multihead-expectation", "attention.multihead-conditional-probability",
        "masked.multihead-renormalisation", "weights.row-form", "weights.query-locality", "weights.query-deletion",
        "weights.masked-query-deletion", "weights.suppression", "weights.key-value-deletion",
        "multihead.query-deletion", "multihead.masked-query-deletion", "multihead.suppression",
        "multihead.key-value-deletion",
        // M other than N.
        "causal.multihead-alignment",
        // The other side starts from the projected tokens, which are three.
        "multihead.packed-qkv", "multihead.bias-kv",
        // X beside X, X, X: asked with one more query.
        "self.is-attention", "reduction.self", "reduction.masked-self", "reduction.mh-self", "reduction.mmh-self"}},
      {"boolean masks only",
       {// Masks that add a number.
        "masked.suppression-limit",
        "masked.boolean-is-additive",
        "masked.conventions-agree",
        "masked.conventions-differ",
        "masked.row-shift",
        "masked.multihead-boolean-is-additive",
        "masked.multihead-conventions-agree",
        "masked.multihead-conventions-differ",
        "sink.equals-key",
        "sink.joint-shift",
        "sink.breaks-row-shift",
        "softcap.equals-mask",
        "softcap.bias-after",
        "alibi.equals-mask",
        "alibi.as-given",
        "alibi.column-form",
        "sink.gradient-equals-key",
        "sink.dk-sum",
        "sink.gradient-balance",
        "softcap.gradient-factor",
        "backward.oracle-dmask",
        "backward.ds-rows-sum-to-zero",
        "alibi.gradient-equals-mask",
        "backward.row-shift"}},
      // The notebook's X has five columns and three; head dimensions that are no such multiples.
      {"head dimension a multiple of 8", {"self.parameter-free", "backward.head-dims"}},
      {"post-scale only",
       {"masked.conventions-agree", "masked.conventions-differ", "masked.multihead-conventions-agree",
        "masked.multihead-conventions-differ"}},
      // Positions from the last key.
      {"top-left causal only",
       {"varlen.alignment", "cache.decode-is-last-row", "cache.chunked-prefill", "cache.incremental",
        "cache.speculative", "cache.split"}},
      {"PyTorch's limits",
       {"varlen.alignment", "cache.decode-is-last-row", "cache.chunked-prefill", "cache.incremental",
        "cache.speculative", "cache.split", "masked.conventions-agree", "masked.conventions-differ",
        "masked.multihead-conventions-agree", "masked.multihead-conventions-differ",
        // Two scales.
        "self.parameter-free", "self.unscaled-vs-scaled", "sink.unscaled", "softcap.scale-before", "backward.scale",
        // dk other than dv.
        "backward.head-dims"}}};
  return all;
}

TEST(Judged, EveryTheoremByEveryClassThatCanMeetItsHypotheses) {
  constexpr int cases = 60;
  for (const ManifestClass& of : classes()) {
    Tampered kernel(registered("core:double"), [](Case&) {});
    of.limit(kernel.manifest());
    for (const Property* const property : catalogue()) {
      // The core's weights are its own.
      if (property->backward == Backward::from_lse || property->backward == Backward::at_other_answers) continue;
      int judged = 0;
      std::map<std::string, int> why;
      for (int k = 0; k < cases; ++k) {
        const Verdict verdict = verdict_on(*property, kernel, DType::f64, k);
        EXPECT_NE(verdict.outcome, Outcome::violated) << property->name << " k = " << k << ": " << verdict.reason;
        judged += verdict.outcome == Outcome::held;
        if (verdict.outcome != Outcome::held) ++why[verdict.reason];
      }
      const auto beyond = out_of_reach().find(of.name);
      if (beyond != out_of_reach().end() && beyond->second.contains(property->name)) {
        EXPECT_LT(judged * 5, cases) << property->name << " is within reach of " << of.name;
        continue;
      }
      if (judged * 5 >= cases) continue;
      std::string reasons;
      for (const auto& [reason, count] : why) reasons += "; " + std::to_string(count) + " " + reason;
      ADD_FAILURE() << of.name << ": " << property->name << " judged " << judged << " of " << cases << reasons;
    }
  }
}

}  // namespace
}  // namespace attest
