// What a manifest says of a backward pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  const Manifest m = manifest(R"("backward": {"gradients": ["dq", "dv"], "uses": ["lse"], "masked_row": "nan",
      "weights": "lse", "delta": "weights", "claims": ["deterministic"]},
      "arithmetic": {"bf16": {"backward": {"dot": "f32", "stored": {"weights": "bf16", "dp": "f32", "ds": "f32"},
      "group_partials": null, "late_dropout": false}}})");
  EXPECT_FALSE(m.backward_terms.has(Gradient::k));
  EXPECT_FALSE(m.backward_terms.uses_out);
  EXPECT_EQ(m.backward_terms.masked_row, MaskedGradient::nan);
  const BackwardArithmetic a = arithmetic_of(m, DType::bf16);
  EXPECT_EQ(a.weights, DType::bf16);
  EXPECT_EQ(a.of_scores, DType::f32);
  EXPECT_EQ(a.group_partials, std::nullopt);
  EXPECT_EQ(a.delta, DeltaFrom::weights);
  EXPECT_EQ(parse_manifest(to_json(m), "it"), m);
}

TEST(BackwardManifest, ContradictionsCostOneLine) {
  EXPECT_THAT(refused(R"({"name": "a", "dtypes": ["f32"], "backward": {}})"), Says("attention_backward"));
  EXPECT_THAT(refused(R"({"name": "a", "dtypes": ["f32"], "operations": ["attention", "attention_backward"]})"),
              Says("\"lse\": true"));
  EXPECT_THAT(refused(with("", R"(["multihead", "attention_backward"])")), Says("attention"));
  EXPECT_THAT(refused(with(R"("backward": {"gradients": []})")), Says("must list"));
  EXPECT_THAT(refused(with(R"("backward": {"uses": ["out"]})")), Says("\"lse\""));
  EXPECT_THAT(refused(with(R"("backward": {"uses": ["lse"], "delta": "out"})")), Says("\"out\""));
  EXPECT_THAT(refused(with(R"("backward": {"delta": "sum"})")), Says("sum"));
  EXPECT_THAT(refused(with(R"("backward": {"gradient": ["dq"]})")), Says("gradients"));
}

}  // namespace
}  // namespace attest
