// What a manifest says of a backward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/test/cases.h"
#include "core/test/refusal.h"
#include "core/test/says.h"

namespace attest {
namespace {

std::string with(const std::string& more, const std::string& operations = R"(["attention", "attention_backward"])") {
  return R"({"name": "mine", "dtypes": ["f32", "bf16"], "lse": true, "operations": )" + operations +
         (more.empty() ? "" : ", " + more) + "}";
}
Manifest manifest(const std::string& more) {
  return parse_manifest(with(more), "it");
}
std::string refused(const std::string& text) {
  return refusal([&] { return parse_manifest(text, "it"); });
}
BackwardArithmetic arithmetic_of(const Manifest& m, DType dtype) {
  return m.backward_arithmetic_for(test::one_query(dtype, {1}, {1, 2}, {1, 2}));
}

TEST(BackwardManifest, UnstatedItIsTheLoosestThereIs) {
  const Manifest m = manifest("");
  EXPECT_TRUE(m.backward);
  EXPECT_EQ(m.backward_terms, BackwardTerms());
  const BackwardArithmetic universal = universal_backward_arithmetic(universal_arithmetic(DType::bf16, DType::bf16));
  EXPECT_EQ(arithmetic_of(m, DType::bf16), universal);
  EXPECT_EQ(universal.delta, DeltaFrom::unstated);
  EXPECT_EQ(universal.of_scores, DType::bf16);
  EXPECT_EQ(universal.group_partials, DType::bf16);
  EXPECT_FALSE(parse_manifest(R"({"name": "mine", "dtypes": ["f32"]})", "it").backward);
}

TEST(BackwardManifest, IsReadAndWritten) {
  const Manifest m = manifest(R"("variants": {"dropout": {"mask": ["own"]}},
      "backward": {"gradients": ["dq", "dv"], "uses": ["lse"], "masked_row": "nan",
      "weights": "lse", "delta": "weights", "d_lse": true, "own_dropout": true, "own_forward": true, "claims": ["deterministic"],
      "excludes": ["mask", "softcap"]},
      "arithmetic": {"bf16": {"backward": {"dot": "f32", "stored": {"weights": "bf16", "dp": "f32", "ds": "f32"},
      "group_partials": null, "late_dropout": false}}})");
  EXPECT_FALSE(m.backward_terms.has(Gradient::k));
  EXPECT_FALSE(m.backward_terms.uses_out);
  EXPECT_TRUE(m.backward_terms.d_lse);
  EXPECT_TRUE(m.backward_terms.own_dropout);
  EXPECT_TRUE(m.backward_terms.own_forward);
  EXPECT_EQ(m.backward_terms.masked_row, MaskedGradient::nan);
  EXPECT_EQ(m.backward_terms.excluded, (std::vector{Feature::mask, Feature::softcap}));
  const BackwardArithmetic a = arithmetic_of(m, DType::bf16);
  EXPECT_EQ(a.weights, DType::bf16);
  EXPECT_EQ(a.of_scores, DType::f32);
  EXPECT_EQ(a.group_partials, std::nullopt);
  EXPECT_EQ(a.delta, DeltaFrom::weights);
  EXPECT_EQ(parse_manifest(to_json(m), "it"), m);
}

// By a mask and by sinks there are gradients where both the kernel and the problem have them.
TEST(BackwardManifest, GradientsByArgumentsAreThoseOfProblemsThatHaveThem) {
  const Manifest m = manifest(R"("variants": {"sink": {}}, "backward": {"gradients": ["dq", "dmask", "dsink"]},
      "arithmetic": {"bf16": {"backward": {"sink_terms": "bf16"}}})");
  EXPECT_EQ(arithmetic_of(m, DType::bf16).sink_terms, DType::bf16);
  EXPECT_EQ(arithmetic_of(m, DType::f32).sink_terms, std::nullopt);
  EXPECT_EQ(parse_manifest(to_json(m), "it"), m);
  Case c = test::one_query(DType::f32, {1}, {1, 2}, {1, 2});
  const auto returned = [&] {
    std::string names;
    for (const Gradient one : every_gradient)
      if (m.backward_terms.returns(one, c)) names += name_of(one);
    return names;
  };
  EXPECT_EQ(returned(), "dq");
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 1, 2}), c[Slot::sink] = Tensor(DType::bf16, {1});
  EXPECT_EQ(returned(), "dqdsink");
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2});
  EXPECT_EQ(returned(), "dqdmaskdsink");
  EXPECT_EQ(dtype_of(c, Gradient::sink, DType::f64), DType::bf16);
  EXPECT_EQ(dtype_of(c, Gradient::k, DType::f64), DType::f64);
}

TEST(BackwardManifest, ContradictionsCostOneLine) {
  EXPECT_THAT(refused(R"({"name": "a", "dtypes": ["f32"], "backward": {}})"), Says("attention_backward"));
  EXPECT_THAT(refused(R"({"name": "a", "dtypes": ["f32"], "operations": ["attention", "attention_backward"]})"),
              Says("\"lse\": true"));
  EXPECT_THAT(refused(with("", R"(["multihead", "attention_backward"])")), Says("attention"));
  EXPECT_THAT(refused(with(R"("backward": {"gradients": []})")), Says("must list"));
  EXPECT_THAT(refused(with(R"("masks": ["bool"], "backward": {"gradients": ["dq", "dmask"]})")), Says("additive"));
  EXPECT_THAT(refused(with(R"("backward": {"gradients": ["dq", "dsink"]})")), Says("\"sink\""));
  for (const char* const variants : {"", R"("variants": {"dropout": {}}, )"})
    EXPECT_THAT(refused(with(variants + std::string(R"("backward": {"own_dropout": true})"))),
                Says(R"("mask" of "dropout" in "variants" does not list "own")"));
  EXPECT_THAT(refused(with(R"("backward": {"uses": ["out"]})")), Says("\"lse\""));
  EXPECT_THAT(refused(with(R"("backward": {"uses": ["lse"], "delta": "out"})")), Says("\"out\""));
  // What makes them again need not be given them.
  EXPECT_FALSE(manifest(R"("backward": {"uses": [], "delta": "out", "own_forward": true})").backward_terms.uses_lse);
  EXPECT_THAT(refused(with(R"("backward": {"delta": "sum"})")), Says("sum"));
  EXPECT_THAT(refused(with(R"("backward": {"gradient": ["dq"]})")), Says("gradients"));
  EXPECT_THAT(refused(with(R"("backward": {"excludes": ["lse"]})")), Says("every backward pass"));
  EXPECT_THAT(refused(with(R"("backward": {"excludes": ["cap"]})")), Says("unknown"));
}

// A backward call comes behind a forward call that is asked for a log-sum-exp.
TEST(BackwardManifest, WhatTheForwardCallHasWithoutALogSumExpComesToNone) {
  const Manifest m = manifest(
      R"("causal": ["top-left"], "variants": {"softcap": {"excludes": ["lse"]}}, "excludes": [["causal", "lse"]])");
  Case c = test::one_query(DType::f32, {1}, {1, 2}, {1, 2});
  c[Slot::d_out] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
  EXPECT_EQ(why_unsupported(m, c), "");
  c.softcap = 2;
  EXPECT_THAT(why_unsupported(m, c), Says("softcap"));
  c.softcap = 0, c.causal = Causal::top_left;
  EXPECT_THAT(why_unsupported(m, c), Says("causal"));
  c[Slot::d_out] = {};
  EXPECT_EQ(why_unsupported(m, c), "");
}

TEST(BackwardManifest, AGradientByTheLogSumExpComesToThoseThatTakeOne) {
  Case c = test::one_query(DType::f32, {1}, {1, 2}, {1, 2});
  c[Slot::d_out] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
  c[Slot::d_lse] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{1});
  EXPECT_THAT(why_unsupported(manifest(""), c), Says("backward.d_lse is false"));
  EXPECT_EQ(why_unsupported(manifest(R"("backward": {"d_lse": true})"), c), "");
}

// What is excluded of the backward call is not of the forward call, and a mask of dropout that is not given of either.
TEST(BackwardManifest, WhatItExcludesComesToNoBackwardCall) {
  const Manifest m = manifest(R"("variants": {"softcap": {}, "sink": {}, "dropout": {"mask": ["given", "own"]}},
      "backward": {"excludes": ["softcap"]})");
  Case c = test::one_query(DType::f32, {1}, {1, 2}, {1, 2});
  c.softcap = 2;
  EXPECT_EQ(why_unsupported(m, c), "");
  c[Slot::d_out] = Tensor(DType::f32, {1, 1, 1, 1}, std::vector<double>{1});
  EXPECT_THAT(why_unsupported(m, c), Says("softcap"));
  EXPECT_THAT(why_unsupported(m, c), Says("backward.excludes"));
  c.softcap = 0;
  EXPECT_EQ(why_unsupported(m, c), "");
  c.dropout_p = 0.5;
  EXPECT_THAT(why_unsupported(m, c), Says("dropout_p"));
  c[Slot::d_out] = {};
  EXPECT_EQ(why_unsupported(m, c), "");
}

}  // namespace
}  // namespace attest
