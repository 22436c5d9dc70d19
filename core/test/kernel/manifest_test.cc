// Manifests: every key of kernel-interface.md section 3 and its extensions, what is refused and in which words, and
// when a case is ruled out.
#include "core/kernel/manifest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/test/cases.h"

namespace attest {
namespace {

Manifest parse(std::string_view json) {
  return parse_manifest(json, "mine");
}

/// The line of the error; empty when there is none.
std::string fault_of(std::string_view json) {
  try {
    (void)parse(json);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// A manifest with these keys beside the required ones.
std::string with(std::string_view keys) {
  return R"({"name": "x", "dtypes": ["f32", "bf16"], )" + std::string(keys) + "}";
}
/// One with these keys in "arithmetic", read for f32.
/// With caps of scores, whose tanh is so.
std::string capped(std::string_view tanh) {
  return with(R"("variants": {"softcap": {}}, "arithmetic": {"tanh": )" + std::string(tanh) + "}");
}
Arithmetic arithmetic_with(std::string_view keys) {
  return parse(with(R"("arithmetic": {)" + std::string(keys) + "}")).arithmetic.usual_for(DType::f32);
}
std::string arithmetic_fault(std::string_view keys) {
  return fault_of(with(R"("arithmetic": {)" + std::string(keys) + "}"));
}

/// The example of kernel-interface.md, word for word.
constexpr std::string_view example = R"({
  "name": "my flash kernel", "version": "1.2", "abi": 1,
  "dtypes": ["f32", "f16", "bf16"],
  "arithmetic": { "f32": {}, "bf16": { "score_sums": "f32", "scores": "f32", "weights": "bf16", "accumulate": "f32", "rounding": "nearest",
                  "exp_ulp": 2, "max": "running", "folded_exp2": false, "flushes_subnormals": false } },
  "claims": ["deterministic", "batch-invariant", "padding-invariant", "ignores-dead-values"],
  "fully_masked_row": "nan", "scale": "any",
  "masks": ["additive", "bool"], "mask_conventions": ["post-scale"], "causal": ["top-left"],
  "grouped_query": false, "strides": false, "lse": false, "thread_safe": true,
  "limits": { "head_dim_multiple": 8, "max_head_dim": 256, "value_dim": "any", "max_queries": 65536, "max_keys": 65536, "alignment": 16 }
})";

TEST(ParseManifest, ReadsTheExampleOfTheContract) {
  const Manifest m = parse(example);
  EXPECT_EQ(m.name, "my flash kernel");
  EXPECT_EQ(m.version, "1.2");
  EXPECT_EQ(m.dtypes, (std::vector{DType::f32, DType::f16, DType::bf16}));
  for (const Claim claim :
       {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values}) {
    EXPECT_TRUE(m.claims_to(claim)) << name_of(claim);
  }
  EXPECT_EQ(m.fully_masked_row, FullyMaskedRow::nan);
  EXPECT_TRUE(m.any_scale);
  EXPECT_TRUE(m.attention);
  EXPECT_FALSE(m.multihead);
  EXPECT_TRUE(m.additive_masks);
  EXPECT_TRUE(m.bool_masks);
  EXPECT_EQ(m.mask_conventions, std::vector{MaskConvention::post_scale});
  EXPECT_EQ(m.causal, std::vector{Causal::top_left});
  EXPECT_TRUE(m.thread_safe);
  EXPECT_FALSE(m.lse);
  EXPECT_EQ(m.head_dim_multiple, 8);
  EXPECT_EQ(m.max_head_dim, 256);
  EXPECT_EQ(m.max_queries, 65536);
  EXPECT_EQ(m.max_keys, 65536);
  EXPECT_EQ(m.max_heads, std::nullopt);
  EXPECT_FALSE(m.value_dim_equals_head_dim);
  EXPECT_EQ(m.alignment, 16);

  EXPECT_EQ(m.arithmetic.usual.size(), 3U);
  EXPECT_EQ(m.arithmetic.usual_for(DType::f32), universal_arithmetic(DType::f32, DType::f32));
  EXPECT_EQ(m.arithmetic.usual_for(DType::f16), universal_arithmetic(DType::f16, DType::f16)) << "not stated";
  Arithmetic bf16 = universal_arithmetic(DType::bf16, DType::bf16);
  bf16.score_sums = DType::f32;
  bf16.weights = DType::bf16;
  bf16.accumulate = DType::f32;
  bf16.exp_ulp = 2;
  bf16.max = MaxPolicy::running;
  bf16.folded_exp2 = false;
  EXPECT_EQ(m.arithmetic.usual_for(DType::bf16), bf16);
  EXPECT_THROW((void)m.arithmetic.usual_for(DType::f64), std::out_of_range);
}

TEST(ParseManifest, TakesTheLeast) {
  const Manifest m = parse(R"({"name": "x", "dtypes": ["f64"]})");
  Manifest expected;
  expected.name = "x";
  expected.dtypes = {DType::f64};
  expected.arithmetic.usual[DType::f64] = universal_arithmetic(DType::f64, DType::f64);
  expected.thread_safe = false;
  EXPECT_EQ(m, expected);
}

TEST(ParseManifest, ReadsEveryOtherKey) {
  const Manifest m =
      parse(with(R"("operations": ["multihead", "attention"], "claims": ["deterministic", "deterministic"],
      "out_dtypes": {"bf16": ["f32", "bf16"]}, "fully_masked_row": "uniform", "scale": "inv-sqrt-dk",
      "masks": ["additive"], "mask_dtypes": ["f32", "f64"], "mask_conventions": ["pre-scale", "post-scale"],
      "causal": ["none", "bottom-right"], "grouped_query": true, "strides": true, "lse": true,
      "shared_memory": true, "limits": {"value_dim": "head_dim", "max_heads": 32, "heads_multiple": 2, "self_attention_only": true})"));
  EXPECT_TRUE(m.attention);
  EXPECT_TRUE(m.multihead);
  EXPECT_EQ(m.claims, std::vector{Claim::deterministic});
  EXPECT_EQ(m.out_dtypes, (std::map<DType, std::vector<DType>>{{DType::bf16, {DType::f32}}}));
  EXPECT_EQ(m.fully_masked_row, FullyMaskedRow::uniform);
  EXPECT_FALSE(m.any_scale);
  EXPECT_TRUE(m.additive_masks);
  EXPECT_FALSE(m.bool_masks);
  EXPECT_EQ(m.mask_dtypes, (std::vector{DType::f32, DType::f64}));
  EXPECT_EQ(m.mask_conventions, (std::vector{MaskConvention::pre_scale, MaskConvention::post_scale}));
  EXPECT_EQ(m.causal, std::vector{Causal::bottom_right});
  EXPECT_TRUE(m.grouped_query);
  EXPECT_TRUE(m.strides);
  EXPECT_TRUE(m.lse);
  EXPECT_TRUE(m.value_dim_equals_head_dim);
  EXPECT_EQ(m.max_heads, 32);
  EXPECT_EQ(m.heads_multiple, 2);
  EXPECT_TRUE(m.self_attention_only);
  EXPECT_TRUE(m.shared_memory);
  EXPECT_EQ(parse(with(R"("out_dtypes": ["f32"])")).out_dtypes,
            (std::map<DType, std::vector<DType>>{{DType::bf16, {DType::f32}}}));
  EXPECT_FALSE(parse(with(R"("masks": [])")).additive_masks);
}

TEST(ParseManifest, ReadsEveryKeyOfArithmetic) {
  EXPECT_EQ(arithmetic_with(R"("score_sums": "f64")").score_sums, DType::f64);
  EXPECT_EQ(arithmetic_with(R"("accumulate": "bf16")").accumulate, DType::bf16);
  EXPECT_EQ(arithmetic_with(R"("weights": "f16")").weights, DType::f16);
  EXPECT_TRUE(arithmetic_with(R"("weights_in_denominator": true)").weights_in_denominator);
  EXPECT_FALSE(arithmetic_with(R"("weights_in_denominator": false)").weights_in_denominator);
  EXPECT_EQ(arithmetic_with(R"("rounding": "toward-zero")").rounding, Rounding::toward_zero);
  EXPECT_EQ(arithmetic_with(R"("rounding": "nearest")").rounding, Rounding::nearest);
  EXPECT_EQ(arithmetic_with(R"("exp_ulp": 1.5)").exp_ulp, 1.5);
  const auto tanh_of = [](std::string_view tanh) { return parse(capped(tanh)).arithmetic.usual_for(DType::f32).tanh; };
  EXPECT_EQ(tanh_of(R"({"ulp": 2.5})"), (TanhError{TanhMeasure::ulp, 2.5}));
  EXPECT_EQ(tanh_of(R"({"relative": 5e-4})"), (TanhError{TanhMeasure::relative, 5e-4}));
  EXPECT_EQ(tanh_of(R"({"absolute": 1e-6})"), (TanhError{TanhMeasure::absolute, 1e-6}));
  EXPECT_EQ(arithmetic_with("").tanh.measure, TanhMeasure::unstated);
  EXPECT_EQ(arithmetic_with(R"("max": "none")").max, MaxPolicy::none);
  EXPECT_EQ(arithmetic_with(R"("max": "running")").max, MaxPolicy::running);
  EXPECT_EQ(arithmetic_with(R"("max": "lazy", "lazy_nats": 8)").max, MaxPolicy::lazy);
  EXPECT_EQ(arithmetic_with(R"("max": "lazy", "lazy_nats": 8)").lazy_nats, 8.0);
  EXPECT_FALSE(arithmetic_with(R"("base2": false)").base2);
  EXPECT_FALSE(arithmetic_with(R"("base2": false)").folded_exp2) << "nothing to fold into";
  EXPECT_TRUE(arithmetic_with(R"("base2": true, "folded_exp2": true)").folded_exp2);
  EXPECT_FALSE(arithmetic_with(R"("folded_exp2": false)").folded_exp2);
  EXPECT_FALSE(arithmetic_with(R"("split_merge": false)").split_merge);
  EXPECT_FALSE(arithmetic_with(R"("normalise_first": false)").normalise_first);
  EXPECT_TRUE(arithmetic_with(R"("flushes_subnormals": true)").flushes_subnormals);
  EXPECT_TRUE(arithmetic_with(R"("flushes_inputs": true)").flushes_inputs);
  EXPECT_EQ(arithmetic_with(R"("prescaled_q": "bf16")").prescaled_q, DType::bf16);
  EXPECT_EQ(arithmetic_with(R"("prescaled_q": null)").prescaled_q, std::nullopt);
  EXPECT_EQ(arithmetic_with(R"("mask_format": "f16")").mask_format, DType::f16);
  EXPECT_EQ(arithmetic_with(R"("block": 64)").block, 64);
  EXPECT_EQ(arithmetic_with(R"("block": 0)").block, 0) << "never rescaled";
  EXPECT_FALSE(arithmetic_with(R"("bias_in_sum": false)").bias_in_sum);
  EXPECT_EQ(arithmetic_with(R"("division_roundings": 1)").division_roundings, 1);
  EXPECT_EQ(arithmetic_with(R"("stored": {"raw": "f16"})").stored_raw, DType::f16);
  EXPECT_EQ(arithmetic_with(R"("stored": {"scaled": "f16"})").stored_scaled, DType::f16);
  EXPECT_EQ(arithmetic_with(R"("stored": {"biased": "f16", "raw": null})").stored_biased, DType::f16);
}

TEST(ParseManifest, TakesScoresForStoredOnlyWhereTheyAreNarrower) {
  EXPECT_EQ(arithmetic_with(R"("scores": "bf16")").stored_biased, DType::bf16);
  EXPECT_EQ(arithmetic_with(R"("scores": "f32")").stored_biased, std::nullopt);
  EXPECT_EQ(arithmetic_with(R"("scores": "f64")").stored_biased, std::nullopt);
  EXPECT_EQ(arithmetic_with(R"("score_sums": "f64", "scores": "f32")").stored_biased, DType::f32);
  // f16 has more digits than bf16 and less range: values do get lost, either way round.
  EXPECT_EQ(arithmetic_with(R"("score_sums": "bf16", "scores": "f16")").stored_biased, DType::f16);
  EXPECT_EQ(arithmetic_with(R"("score_sums": "f16", "scores": "bf16")").stored_biased, DType::bf16);
  EXPECT_EQ(arithmetic_fault(R"("scores": "bf16", "stored": {"biased": "bf16"})"),
            "mine: \"arithmetic\".\"scores\" is \"bf16\"; \"stored\".\"biased\" says the same; state one of the two");
}

TEST(ParseManifest, LimitsEveryNumber) {
  const auto with = [](const std::string& key, const std::string& number) {
    return fault_of(R"({"name": "it", "dtypes": ["f32"], )" + key + number + "}}");
  };
  struct Row {
    std::string key;   // all that stands before the number
    std::string most;  // the largest that is taken
    std::string more, rule;
  };
  const std::string arithmetic = R"("arithmetic": {)", limits = R"("limits": {)";
  for (const Row& row :
       {Row{limits + R"("head_dim_multiple": )", "65536", "100000007", "a whole number from 1 to 65536"},
        Row{limits + R"("head_dim_multiple": )", "65536", "65537", "a whole number from 1 to 65536"},
        Row{limits + R"("heads_multiple": )", "65536", "65537", "a whole number from 1 to 65536"},
        Row{limits + R"("max_head_dim": )", "4611686018427387904", "4611686018427387905", "1 to 4611686018427387904"},
        Row{limits + R"("max_queries": )", "4611686018427387904", "1e30", "at least 1"},
        Row{limits + R"("max_heads": )", "4611686018427387904", "1e30", "at least 1"},
        Row{limits + R"("alignment": )", "4096", "8192", "a power of two, in bytes, of at most 4096"},
        Row{arithmetic + R"("block": )", "2147483647", "2147483648", "a whole number from 0 to 2147483647"},
        Row{arithmetic + R"("summation_depth": )", "2147483647", "2147483648", "from 1 to 2147483647"},
        Row{arithmetic + R"("division_roundings": )", "64", "65", "a whole number from 1 to 64"},
        // In f32, whose scores are summed in it: u is 2^-24, and the largest number 2^128.
        Row{arithmetic + R"("exp_ulp": )", "8388608", "8388609",
            "at most 8388608, where exp in f32 is wrong by as much as it is"},
        Row{arithmetic + R"("max": "lazy", "lazy_nats": )", "88.7", "88.8",
            "at most 88.72283905, whose exp is the largest number of f32"}}) {
    EXPECT_EQ(with(row.key, row.most), "") << row.key;
    const std::string refusal = with(row.key, row.more);
    EXPECT_NE(refusal.find("it must be "), std::string::npos) << row.key << refusal;
    EXPECT_NE(refusal.find(row.rule), std::string::npos) << refusal;
  }
  EXPECT_NE(arithmetic_fault(R"("summation_depth": {"block": 2147483648})").find("from 1 to 2147483647"),
            std::string::npos);
  EXPECT_NE(arithmetic_fault(R"("summation_depth": {"block": 2, "depth": 2147483648})").find("from 1 to 2147483647"),
            std::string::npos);
  // By the format that exp is counted in.
  EXPECT_EQ(with(arithmetic + R"("score_sums": "f64", "exp_ulp": )", "1e15"), "");
  EXPECT_NE(with(arithmetic + R"("score_sums": "f16", "exp_ulp": )", "1025"), "");
}

TEST(ParseManifest, ReadsTheDepthOfSums) {
  EXPECT_EQ(arithmetic_with(R"("summation_depth": "n")").summation_depth, std::nullopt);
  EXPECT_EQ(arithmetic_with(R"("summation_depth": 12)").summation_depth, 12);
  const Arithmetic blocks = arithmetic_with(R"("summation_depth": {"block": 16})");
  EXPECT_EQ(blocks.blocked_sums, (BlockedSums{16, 16, false}));
  const Arithmetic tree = arithmetic_with(R"("summation_depth": {"block": 8, "depth": 3, "merges": "pairwise"})");
  EXPECT_EQ(tree.blocked_sums, (BlockedSums{8, 3, true}));
  EXPECT_EQ(arithmetic_fault(R"("summation_depth": "m")"),
            "mine: \"arithmetic\".\"summation_depth\" is \"m\"; it must be \"n\", a whole number of at least 1, or an "
            "object with \"block\"");
  EXPECT_EQ(arithmetic_fault(R"("summation_depth": 0)"),
            "mine: \"arithmetic\".\"summation_depth\" is 0; it must be a whole number from 1 to 2147483647");
  EXPECT_EQ(
      arithmetic_fault(R"("summation_depth": {"depth": 3})"),
      "mine: \"arithmetic\".\"summation_depth\".\"block\" is missing; blocked sums state how many keys a block has");
  EXPECT_EQ(arithmetic_fault(R"("summation_depth": {"block": 3, "merge": "pairwise"})"),
            "mine: \"arithmetic\".\"summation_depth\": unknown key \"merge\"; did you mean \"merges\"?");
}

TEST(AccumulationDepth, CountsBlocksAndMerges) {
  Arithmetic a;
  EXPECT_EQ(accumulation_depth(a, 1000, 900), 900);
  a.summation_depth = 12;
  EXPECT_EQ(accumulation_depth(a, 1000, 900), 12);
  EXPECT_EQ(accumulation_depth(a, 1000, 5), 5);
  a.summation_depth = std::nullopt;
  a.blocked_sums = BlockedSums{16, 16, false};
  EXPECT_EQ(accumulation_depth(a, 1000, 1000), 16 + 63);
  EXPECT_EQ(accumulation_depth(a, 1000, 30), 30) << "5 keys of each of 63 blocks would still be 63 merges";
  EXPECT_EQ(accumulation_depth(a, 0, 0), 0);
  a.blocked_sums = BlockedSums{1, 1, true};
  EXPECT_EQ(accumulation_depth(a, 1024, 1024), 11);
  EXPECT_EQ(accumulation_depth(a, 1025, 1025), 12);
  EXPECT_EQ(accumulation_depth(a, 1, 1), 1);
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  a.blocked_sums = BlockedSums{1, huge, false};
  EXPECT_EQ(accumulation_depth(a, huge, huge), huge);
}

TEST(ParseManifest, SeparatesOneForAllFromOnePerDtype) {
  EXPECT_EQ(parse(with(R"("arithmetic": {"accumulate": "f64"})")).arithmetic.usual_for(DType::bf16).accumulate,
            DType::f64);
  const Manifest m = parse(with(R"("arithmetic": {"bf16": {"accumulate": "f64"}})"));
  EXPECT_EQ(m.arithmetic.usual_for(DType::bf16).accumulate, DType::f64);
  EXPECT_EQ(m.arithmetic.usual_for(DType::f32), universal_arithmetic(DType::f32, DType::f32));
  EXPECT_EQ(
      fault_of(with(R"("arithmetic": {"bf16": {}, "accumulate": "f64"})")),
      "mine: \"arithmetic\": unknown key \"accumulate\"; known: \"f64\", \"f32\", \"f16\", \"bf16\", \"f8_e4m3\", "
      "\"f8_e5m2\"");
  EXPECT_EQ(fault_of(with(R"("arithmetic": {"f16": {}})")),
            "mine: \"arithmetic\".\"f16\" is stated; \"dtypes\" does not list it");
  EXPECT_EQ(fault_of(with(R"("arithmetic": {"bf16": {"acumulate": "f64"}})")),
            "mine: \"arithmetic\".\"bf16\": unknown key \"acumulate\"; did you mean \"accumulate\"?");
}

TEST(ParseManifest, NamesWhatIsWrong) {
  const std::map<std::string, std::string> lines{
      {R"([])", "is []; it must be an object"},
      {R"({"dtypes": ["f32"]})", "\"name\" is missing; a manifest states it, as \"my kernel\""},
      {R"({"name": 3, "dtypes": ["f32"]})", "\"name\" is 3; it must be a string"},
      {R"({"name": "", "dtypes": ["f32"]})", "\"name\" is \"\"; it must not be empty"},
      {R"({"name": "x"})", "\"dtypes\" is missing; a manifest states them, as [\"f32\"]"},
      {R"({"name": "x", "dtypes": []})", "\"dtypes\" is []; it must list at least one"},
      {R"({"name": "x", "dtypes": "f32"})", "\"dtypes\" is \"f32\"; it must be an array of strings"},
      {R"({"name": "x", "dtypes": ["f32", 7]})", "\"dtypes\" is [\"f32\",7]; it must be an array of strings"},
      {R"({"name": "x", "dtypes": ["fp32"]})", "\"dtypes\" holds \"fp32\", which is unknown; did you mean \"f32\"?"},
      {R"({"name": "x", "dtypes": ["bool"]})",
       "\"dtypes\" holds \"bool\", which is unknown; known: \"f64\", \"f32\", \"f16\", \"bf16\", \"f8_e4m3\", "
       "\"f8_e5m2\""},
      {with(R"("abi": 2)"), "\"abi\" is 2; this version speaks 1; compile the kernel against its <attest/kernel.h>"},
      {with(R"("abi": 2, "news": [])"),
       "\"abi\" is 2; this version speaks 1; compile the kernel against its <attest/kernel.h>"},
      {with(R"("abi": "1")"),
       "\"abi\" is \"1\"; this version speaks 1; compile the kernel against its <attest/kernel.h>"},
      {with(R"("claimes": [])"), "unknown key \"claimes\"; did you mean \"claims\"?"},
      {with(R"("claims": ["batch_invariant"])"),
       "\"claims\" holds \"batch_invariant\", which is unknown; did you mean \"batch-invariant\"?"},
      {with(R"("operations": [])"), "\"operations\" is []; it must list at least one"},
      {with(R"("lse": "yes")"), "\"lse\" is \"yes\"; it must be true or false"},
      {with(R"("shared_memory": 1)"), "\"shared_memory\" is 1; it must be true or false"},
      {with(R"("shares_memory": true)"), "unknown key \"shares_memory\"; did you mean \"shared_memory\"?"},
      {with(R"("fully_masked_row": "NaN")"),
       "\"fully_masked_row\" is \"NaN\"; that word is unknown; did you mean \"nan\"?"},
      {with(R"("out_dtypes": {"f64": ["f32"]})"), "\"out_dtypes\".\"f64\" is stated; \"dtypes\" does not list it"},
      {with(R"("masks": ["bool"], "mask_dtypes": ["f64"])"),
       "\"mask_dtypes\" is [\"f64\"]; \"masks\" does not list \"additive\""},
      {with(R"("mask_conventions": [])"),
       "\"mask_conventions\" is []; additive masks need one; without them state \"masks\": [\"bool\"] or []"},
      {with(R"("limits": {"max_keys": 0})"), "\"limits\".\"max_keys\" is 0; it must be a whole number of at least 1"},
      {with(R"("limits": {"max_keys": -5})"), "\"limits\".\"max_keys\" is -5; it must be a whole number of at least 1"},
      {with(R"("limits": {"max_keys": 2.5})"),
       "\"limits\".\"max_keys\" is 2.5; it must be a whole number of at least 1"},
      {with(R"("limits": {"max_keys": 9223372036854775808})"),
       "\"limits\".\"max_keys\" is 9223372036854775808; it must be a whole number from 1 to 4611686018427387904"},
      {with(R"("limits": {"max_key": 5})"), "\"limits\": unknown key \"max_key\"; did you mean \"max_keys\"?"},
      {with(R"("limits": {"head_dim_multiple": 8, "max_head_dim": 7})"),
       "\"limits\".\"max_head_dim\" is 7; no multiple of 8 (head_dim_multiple) is so small"},
      {with(R"("limits": {"heads_multiple": 2, "max_heads": 1})"),
       "\"limits\".\"max_heads\" is 1; no multiple of 2 (heads_multiple) is so small"},
      {with(R"("limits": {"alignment": 24})"),
       "\"limits\".\"alignment\" is 24; it must be a power of two, in bytes, of at most 4096"},
      {with(R"("limits": {"alignment": 8192})"),
       "\"limits\".\"alignment\" is 8192; it must be a power of two, in bytes, of at most 4096"},
      {with(R"("limits": {"self_attention_only": true})"),
       "\"limits\".\"self_attention_only\" is true; only \"operations\" with \"multihead\" have it"},
      {with(R"("limits": 3)"), "\"limits\" is 3; it must be an object"},
      {with(R"("arithmetic": {"weights": "bool"})"),
       "\"arithmetic\".\"weights\" is \"bool\"; that word is unknown; known: \"f64\", \"f32\", \"f16\", \"bf16\", "
       "\"f8_e4m3\", \"f8_e5m2\""},
      {with(R"("arithmetic": {"weights": "f128"})"),
       "\"arithmetic\".\"weights\" is \"f128\"; that word is unknown; known: \"f64\", \"f32\", \"f16\", \"bf16\", "
       "\"f8_e4m3\", \"f8_e5m2\""},
      {with(R"("arithmetic": {"exp_ulp": 0})"),
       "\"arithmetic\".\"exp_ulp\" is 0; it must be a finite number greater than 0"},
      {capped(R"({"ulp": 2, "relative": 1e-4})"),
       "\"arithmetic\".\"tanh\" is {\"relative\":0.0001,\"ulp\":2}; it states one error, as {\"ulp\": 2.5}, {\"relative\": "
       "5e-4} or {\"absolute\": 1e-6}"},
      {capped(R"({})"),
       "\"arithmetic\".\"tanh\" is {}; it states one error, as {\"ulp\": 2.5}, {\"relative\": 5e-4} or {\"absolute\": "
       "1e-6}"},
      {capped(R"({"relative": 0})"),
       "\"arithmetic\".\"tanh\".\"relative\" is 0; it must be a finite number greater than 0"},
      {capped(R"({"absolute": 2})"),
       "\"arithmetic\".\"tanh\".\"absolute\" is 2; it must be at most 1, where tanh is wrong by as much as it is"},
      {capped("2"), "\"arithmetic\".\"tanh\" is 2; it must be an object"},
      {with(R"("arithmetic": {"tanh": {"ulp": 2}})"),
       "\"arithmetic\" is {\"tanh\":{\"ulp\":2}}; it states \"tanh\" or \"stored\".\"capped\", and \"variants\" lists no "
       "\"softcap\""},
      {with(R"("arithmetic": {"stored": {"capped": "bf16"}})"),
       "\"arithmetic\" is {\"stored\":{\"capped\":\"bf16\"}}; it states \"tanh\" or \"stored\".\"capped\", and \"variants\" "
       "lists no \"softcap\""},
      {with(R"("arithmetic": {"max": "lazy"})"),
       "\"arithmetic\".\"max\" is \"lazy\"; a lazy maximum states by how much it may lag, as \"lazy_nats\": 8"},
      {with(R"("arithmetic": {"max": "none", "lazy_nats": 8})"),
       "\"arithmetic\".\"lazy_nats\" is 8; only \"max\": \"lazy\" has it"},
      {with(R"("arithmetic": {"base2": false, "folded_exp2": true})"),
       "\"arithmetic\".\"folded_exp2\" is true; with \"base2\": false there is no exp2 to fold into"},
      {with(R"("arithmetic": {"stored": {"raw": 16}})"),
       "\"arithmetic\".\"stored\".\"raw\" is 16; it must be a string"},
      {with(R"("arithmetic": 3)"), "\"arithmetic\" is 3; it must be an object"},
      {R"({"name": "x", "name": "y", "dtypes": ["f32"]})", "has \"name\" twice in one object"},
      {with(R"("arithmetic": {"f32": {}, "f32": {}})"), "has \"f32\" twice in one object"},
      {R"({"name": "x")", "is not JSON: wrong at byte 13; it begins with \"{\"name\": \"x\"\""},
      {"", "is not JSON: wrong at byte 1; it begins with \"\""},
      {"Loading model...\n", "is not JSON: wrong at byte 1; it begins with \"Loading model...\\x0a\""},
      {std::string("{\"name\": \"x\", \"dtypes\": [\"f32\"]}\0{}", 35), "is not JSON: a NUL at byte 33"},
      {"{\"name\": \"\xff\", \"dtypes\": [\"f32\"]}",
       "is not JSON: wrong at byte 11; it begins with \"{\"name\": \"\\xff\", \"dtypes\": [\"f32\"]}\""},
      {with(R"("arithmetic": {"exp_ulp": 1e999})"),
       "is not JSON that can be read: a number beyond what a double holds"}};
  for (const auto& [json, line] : lines) EXPECT_EQ(fault_of(json), "mine: " + line) << json;
}

TEST(ParseManifest, SurvivesNesting) {
  const std::string open(1'000'000, '[');
  EXPECT_EQ(fault_of(open), "mine: nests more than 16 levels");
  EXPECT_EQ(fault_of(open + std::string(open.size(), ']')), "mine: nests more than 16 levels");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(fault_of(objects), "mine: nests more than 16 levels");
}

TEST(ToJson, IsReadBackEqual) {
  for (const std::string& json :
       {std::string(example), with(R"("lse": true)"),
        with(R"("operations": ["multihead"], "out_dtypes": ["f64", "f32"], "claims": ["batch-invariant"], "masks": [],
             "scale": "inv-sqrt-dk", "causal": ["top-left", "bottom-right"], "limits": {"self_attention_only": true,
             "max_heads": 3, "max_queries": 5, "value_dim": "head_dim"}, "arithmetic": {"bf16": {"prescaled_q": null,
             "stored": {"raw": "f16", "scaled": "bf16"}, "scores": "bf16", "max": "lazy", "lazy_nats": 5.545177444479562,
             "exp_ulp": 0.1, "summation_depth": {"block": 32, "depth": 5, "merges": "pairwise"}, "mask_format": "f16",
             "rounding": "toward-zero"}, "f32": {"summation_depth": 7, "base2": false, "max": "none"}})")}) {
    const Manifest m = parse(json);
    EXPECT_EQ(parse(to_json(m)), m) << to_json(m);
  }
}

/// batch 1, heads 4, kv_heads 4, M 3, N 5, dk = dv = 16, scale 1/sqrt(dk).
Case plain_case(DType dtype = DType::f32) {
  Case c = test::attention_of({.heads = 4, .queries = 3, .keys = 5, .dk = 16, .dv = 16},
                              [&](Slot, const Shape& shape) { return Tensor(dtype, shape); });
  c.scale = 0.25;
  return c;
}

TEST(WhyUnsupported, IsEmptyForWhatTheManifestTakes) {
  EXPECT_EQ(why_unsupported(parse(example), plain_case()), "");
  Case c = plain_case();
  c.mask_convention = MaskConvention::pre_scale;
  EXPECT_EQ(why_unsupported(parse(example), c), "") << "without a mask the convention says nothing";
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 5});
  EXPECT_EQ(why_unsupported(parse(example), c), "") << "a bool mask neither";
}

TEST(WhyUnsupported, NamesTheLimit) {
  const auto why = [](std::string_view keys, const Case& c) { return why_unsupported(parse(with(keys)), c); };
  Case c = plain_case();
  EXPECT_EQ(why(R"("lse": true)", plain_case(DType::f16)), "is in f16; the manifest's dtypes are f32, bf16");
  EXPECT_EQ(why(R"("operations": ["multihead"])", c), "is for attention; the manifest's operations do not list it");
  EXPECT_EQ(why(R"("limits": {"max_queries": 2})", c), "has 3 queries; the manifest's max_queries is 2");
  EXPECT_EQ(why(R"("limits": {"max_queries": 3})", c), "");
  EXPECT_EQ(why(R"("limits": {"max_keys": 4})", c), "has 5 keys; the manifest's max_keys is 4");
  EXPECT_EQ(why(R"("limits": {"max_keys": 5})", c), "");
  EXPECT_EQ(why(R"("limits": {"max_heads": 3})", c), "has 4 heads; the manifest's max_heads is 3");
  EXPECT_EQ(why(R"("limits": {"heads_multiple": 3})", c), "has 4 heads; the manifest's heads_multiple is 3");
  EXPECT_EQ(why(R"("limits": {"heads_multiple": 4})", c), "");
  EXPECT_EQ(why(R"("limits": {"max_head_dim": 8})", c), "has dk 16; the manifest's max_head_dim is 8");
  EXPECT_EQ(why(R"("limits": {"head_dim_multiple": 32})", c), "has dk 16; the manifest's head_dim_multiple is 32");
  c.scale = 0.3;
  EXPECT_EQ(why(R"("scale": "inv-sqrt-dk")", c), "has scale 0.3; the manifest's is inv-sqrt-dk, 0.25");
  EXPECT_EQ(why(R"("scale": "any")", c), "");
  c = plain_case();
  EXPECT_EQ(why(R"("scale": "inv-sqrt-dk")", c), "");
  c[Slot::v] = Tensor(DType::f32, {1, 4, 5, 24});
  EXPECT_EQ(why(R"("limits": {"value_dim": "head_dim"})", c),
            "has dk 16 and dv 24; the manifest's value_dim is head_dim");
  EXPECT_EQ(why(R"("limits": {"head_dim_multiple": 16})", c), "has dv 24; the manifest's head_dim_multiple is 16");
  EXPECT_EQ(why(R"("limits": {"max_head_dim": 16})", c), "has dv 24; the manifest's max_head_dim is 16");
  EXPECT_EQ(why(R"("limits": {"head_dim_multiple": 8})", c), "");
  c = plain_case();
  c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 2, 5, 16});
  EXPECT_EQ(why(R"("lse": true)", c), "has 4 heads on 2 of keys and values; the manifest's grouped_query is false");
  EXPECT_EQ(why(R"("grouped_query": true)", c), "");
}

TEST(Variants, AreWhatAManifestListsOfThem) {
  EXPECT_TRUE(parse(with(R"("lse": true)")).variants.empty());
  EXPECT_EQ(to_json(parse(with(R"("lse": true)"))).find("variants"), std::string::npos);
  const auto window = [](std::string_view keys) { return parse(with(keys)).variants.at("window"); };
  const VariantTerms unstated = window(R"("variants": {"window": {}})");
  EXPECT_TRUE(unstated.left && unstated.right);
  EXPECT_EQ(unstated.alignment, (std::vector{Causal::top_left, Causal::bottom_right}));
  EXPECT_EQ(window(R"("causal": ["bottom-right"], "variants": {"window": {}})").alignment,
            std::vector{Causal::bottom_right})
      << "as the causal form";
  EXPECT_EQ(window(R"("causal": ["bottom-right"], "variants": {"window": {"alignment": ["top-left"]}})").alignment,
            std::vector{Causal::top_left});
  const Manifest m = parse(with(
      R"("causal": ["top-left"], "variants": {"window": {"right": false, "requires": ["causal"], "excludes": ["mask"]}})"));
  EXPECT_EQ(parse(to_json(m)), m);
  EXPECT_THROW(
      static_cast<void>(parse_manifest(
          R"({"name": "x", "dtypes": ["f32"], "operations": ["multihead"], "variants": {"window": {}}})", "x")),
      UsageError);
}

TEST(Manifest, SaysHowChunksAreAligned) {
  const auto chunk = [](std::string_view keys) { return parse(with(keys)).variants.at("chunk"); };
  EXPECT_EQ(chunk(R"("causal": ["bottom-right"], "variants": {"chunk": {}})").alignment,
            (std::vector{Causal::bottom_right}));
  EXPECT_EQ(chunk(R"("variants": {"chunk": {"alignment": ["top-left"]}})").alignment, (std::vector{Causal::top_left}));
  EXPECT_NE(
      fault_of(with(R"("variants": {"chunk": {"left": true}})")).find(R"("variants"."chunk": unknown key "left")"),
      std::string::npos);
  Case c = plain_case();
  c.attention_chunk = 2, c.alignment = Causal::bottom_right;
  const auto why = [&](std::string_view keys) { return why_unsupported(parse(with(keys)), c); };
  EXPECT_EQ(why(R"("variants": {"window": {}})"), "has the variant chunk; the manifest's variants do not list it");
  EXPECT_EQ(why(R"("variants": {"chunk": {}})"), "");
  EXPECT_EQ(why(R"("variants": {"chunk": {"alignment": ["top-left"]}})"),
            "has chunks of keys aligned bottom-right; the manifest's variants.chunk.alignment lists top-left");
  c.window_left = 1;
  EXPECT_EQ(why(R"("variants": {"window": {"excludes": ["chunk"]}, "chunk": {}})"),
            "has the variant window with chunk; the manifest's variants.window.excludes lists it");
}

TEST(WhyUnsupported, NamesTheVariant) {
  const auto why = [](std::string_view keys, const Case& c) { return why_unsupported(parse(with(keys)), c); };
  Case c = plain_case();
  c.window_left = 2, c.alignment = Causal::bottom_right;
  EXPECT_EQ(why(R"("lse": true)", c), "has the variant window; the manifest's variants do not list it");
  EXPECT_EQ(why(R"("variants": {"window": {}})", c), "");
  EXPECT_EQ(why(R"("variants": {"window": {"left": false}})", c),
            "has a window with a left end; the manifest's variants.window.left is false");
  EXPECT_EQ(why(R"("variants": {"window": {"right": false}})", c), "");
  EXPECT_EQ(why(R"("variants": {"window": {"alignment": ["top-left"]}})", c),
            "has windows aligned bottom-right; the manifest's variants.window.alignment lists top-left");
  EXPECT_EQ(why(R"("variants": {"window": {"requires": ["mask"]}})", c),
            "has the variant window without mask; the manifest's variants.window.requires lists it");
  EXPECT_EQ(why(R"("grouped_query": true, "variants": {"window": {"excludes": ["unequal-lengths"]}})", c),
            "has the variant window with unequal-lengths; the manifest's variants.window.excludes lists it");
  c.window_right = 0;
  EXPECT_EQ(why(R"("variants": {"window": {"right": false}})", c),
            "has a window with a right end; the manifest's variants.window.right is false");
  // A causal form aligns its window, whatever the manifest's own would be.
  c.causal = c.alignment = Causal::bottom_right;
  EXPECT_EQ(why(R"("causal": ["bottom-right"], "variants": {"window": {"alignment": ["top-left"]}})", c), "");
}

/// A manifest with slopes, and these keys of them.
std::string sloped(std::string_view keys, std::string_view others = R"("causal": ["bottom-right"])") {
  return with(std::string(others) + R"(, "variants": {"alibi": {)" + std::string(keys) + "}}");
}

TEST(Slopes, AreWhatAManifestSaysOfThem) {
  const auto terms = [](std::string_view json) { return parse(json).variants.at("alibi"); };
  const VariantTerms unstated = terms(sloped(""));
  EXPECT_EQ(unstated.form, SlopeForm::distance);
  EXPECT_FALSE(unstated.per_batch);
  EXPECT_EQ(unstated.alignment, std::vector{Causal::bottom_right}) << "as the causal form";
  EXPECT_EQ(terms(sloped("", R"("lse": true)")).alignment, (std::vector{Causal::top_left, Causal::bottom_right}));
  EXPECT_EQ(terms(sloped(R"("alignment": ["top-left"])")).alignment, std::vector{Causal::top_left});
  EXPECT_TRUE(terms(sloped(R"("per_batch": true)")).per_batch);
  for (const auto& [word, form] : std::map<std::string, SlopeForm>{{"distance", SlopeForm::distance},
                                                                   {"column", SlopeForm::column},
                                                                   {"column-divided", SlopeForm::column_divided}}) {
    const Manifest m = parse(sloped(R"("form": ")" + word + "\""));
    EXPECT_EQ(m.variants.at("alibi").form, form) << word;
    // Every arithmetic says it, as the bound asks that.
    for (const DType dtype : m.dtypes) EXPECT_EQ(m.arithmetic.usual_for(dtype).slopes, form) << word;
    EXPECT_EQ(parse(to_json(m)), m) << to_json(m);
  }
  const Manifest all = parse(sloped(R"("form": "column-divided", "per_batch": true, "alignment": ["bottom-right"],
      "requires": ["causal"], "excludes": ["window", "mask"])",
                                    R"("causal": ["bottom-right"], "lse": true,
      "lse_convention": {"alibi": "column", "empty": "+inf"})"));
  EXPECT_EQ(parse(to_json(all)), all) << to_json(all);
}

TEST(Variants, SayTheirArithmeticWhereNothingElseDoes) {
  for (const std::string_view others : {R"("scale": "any")", R"("arithmetic": {})", R"("arithmetic": {"f32": {}})"}) {
    const Manifest m = parse(
        with(std::string(others) + R"(, "variants": {"sink": {"in_max": false}, "dropout": {"applied": "values"}})"));
    for (const DType dtype : m.dtypes) {
      EXPECT_FALSE(m.arithmetic.usual_for(dtype).sink_in_max) << others;
      EXPECT_EQ(m.arithmetic.usual_for(dtype).dropout, DropoutPlace::values) << others;
    }
  }
}

TEST(Slopes, AreRefusedWhereTheyCannotBeMeant) {
  for (const std::string_view form : {"column", "column-divided"})
    EXPECT_EQ(fault_of(sloped(R"("form": ")" + std::string(form) + "\"", R"("causal": [])")),
              R"(mine: "variants"."alibi"."form" is ")" + std::string(form) +
                  R"("; the others are those of a causal form, and "causal" lists none)");
  EXPECT_NE(fault_of(sloped(R"("form": "columns")")).find(R"("form" is "columns"; that word is unknown)"),
            std::string::npos);
  EXPECT_NE(fault_of(sloped(R"("per_batch": "yes")")).find(R"("per_batch" is "yes"; it must be true or false)"),
            std::string::npos);
  EXPECT_NE(fault_of(sloped(R"("alignment": [])")).find(R"(it must list "top-left", "bottom-right" or both)"),
            std::string::npos);
  EXPECT_NE(fault_of(sloped(R"("alignment": ["none"])")).find(R"(it must list "top-left", "bottom-right" or both)"),
            std::string::npos);
  EXPECT_NE(fault_of(sloped(R"("slopes": true)")).find(R"("variants"."alibi": unknown key "slopes")"),
            std::string::npos);
}

/// A manifest that returns log-sum-exps, so.
std::string returning(std::string_view convention, std::string_view others = R"("variants": {"alibi": {}})") {
  return with(R"("lse": true, "lse_convention": {)" + std::string(convention) + "}, " + std::string(others));
}

TEST(LseConvention, IsWhatAManifestSaysOfIt) {
  EXPECT_EQ(parse(with(R"("lse": true)")).lse_convention, LseConvention());
  EXPECT_EQ(parse(returning("")).lse_convention, LseConvention());
  EXPECT_EQ(to_json(parse(returning(""))).find("lse_convention"), std::string::npos) << "as where nothing is said";
  EXPECT_EQ(parse(returning(R"("alibi": "definition", "empty": "-inf")")).lse_convention, LseConvention());
  for (const auto& [word, empty] : std::map<std::string, EmptyLse>{
           {"-inf", EmptyLse::minus_infinity}, {"+inf", EmptyLse::plus_infinity}, {"nan", EmptyLse::nan}}) {
    const Manifest m = parse(returning(R"("alibi": "column", "empty": ")" + word + "\""));
    EXPECT_EQ(m.lse_convention, (LseConvention{.of_columns = true, .empty = empty})) << word;
    EXPECT_TRUE(m.arithmetic.usual_for(DType::bf16).lse_of_columns);
    EXPECT_EQ(parse(to_json(m)), m) << to_json(m);
  }
  // Of empty rows a kernel without slopes has something to say, too.
  EXPECT_EQ(parse(returning(R"("empty": "nan")", R"("scale": "any")")).lse_convention.empty, EmptyLse::nan);
}

TEST(LseConvention, IsRefusedWhereItCannotBeMeant) {
  EXPECT_EQ(
      fault_of(with(R"("lse_convention": {"empty": "nan"})")),
      R"(mine: "lse_convention" is {"empty":"nan"}; it says in which form log-sum-exps come, and "lse" is false)");
  EXPECT_EQ(fault_of(returning(R"("alibi": "column")", R"("variants": {"sink": {}})")),
            R"(mine: "lse_convention"."alibi" is "column"; "variants" lists no "alibi")");
  EXPECT_NE(fault_of(returning(R"("alibi": "columns")")).find(R"("alibi" is "columns"; that word is unknown)"),
            std::string::npos);
  EXPECT_NE(fault_of(returning(R"("empty": "inf")")).find(R"("empty" is "inf"; that word is unknown)"),
            std::string::npos);
  EXPECT_NE(fault_of(returning(R"("sink": "without")")).find(R"("lse_convention": unknown key "sink")"),
            std::string::npos);
}

TEST(WhyUnsupported, NamesWhatSlopesAsk) {
  const auto why = [](const std::string& json, const Case& c) { return why_unsupported(parse(json), c); };
  Case c = plain_case();
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 4});
  c.alignment = Causal::bottom_right;
  EXPECT_EQ(why(with(R"("lse": true)"), c), "has the variant alibi; the manifest's variants do not list it");
  EXPECT_EQ(why(sloped(""), c), "");
  EXPECT_EQ(why(sloped(R"("alignment": ["top-left"])"), c),
            "has ALiBi slopes aligned bottom-right; the manifest's variants.alibi.alignment lists top-left");
  EXPECT_EQ(why(sloped(R"("excludes": ["unequal-lengths"])"), c),
            "has the variant alibi with unequal-lengths; the manifest's variants.alibi.excludes lists it");
  // A causal form says what positions are.
  c.causal = Causal::bottom_right;
  EXPECT_EQ(why(sloped(R"("alignment": ["top-left"])"), c), "");
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    const Shape& one = c[slot].shape();
    c[slot] = Tensor(DType::f32, {3, one[1], one[2], one[3]});
  }
  EXPECT_EQ(why(sloped(""), c), "") << "all entries of the batch share them";
  c[Slot::alibi_slopes] = Tensor(DType::f32, {3, 4});
  EXPECT_EQ(why(sloped(""), c),
            "has slopes for each of 3 entries of a batch; the manifest's variants.alibi.per_batch is false");
  EXPECT_EQ(why(sloped(R"("per_batch": true)"), c), "");
}

TEST(WhyUnsupported, NamesTheMask) {
  const auto why = [](std::string_view keys, const Case& c) { return why_unsupported(parse(with(keys)), c); };
  Case c = plain_case();
  c.causal = Causal::bottom_right;
  EXPECT_EQ(why(R"("causal": ["top-left"])", c), "is causal bottom-right; the manifest's causal lists top-left");
  EXPECT_EQ(why(R"("lse": true)", c), "is causal bottom-right; the manifest's causal lists none");
  EXPECT_EQ(why(R"("causal": ["bottom-right"])", c), "");
  c = plain_case();
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 5});
  EXPECT_EQ(why(R"("masks": ["additive"])", c), "has a bool mask; the manifest's masks do not list bool");
  EXPECT_EQ(why(R"("masks": ["bool"])", c), "");
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 3, 5});
  EXPECT_EQ(why(R"("masks": ["bool"])", c), "has an additive mask; the manifest's masks do not list additive");
  EXPECT_EQ(why(R"("masks": ["additive"])", c), "");
  c.mask_convention = MaskConvention::pre_scale;
  EXPECT_EQ(why(R"("lse": true)", c), "has a pre-scale mask; the manifest's mask_conventions are post-scale");
  EXPECT_EQ(why(R"("mask_conventions": ["pre-scale"])", c), "");
  c[Slot::mask] = Tensor(DType::f64, {1, 1, 3, 5});
  EXPECT_EQ(why(R"("mask_dtypes": ["bf16"])", c), "has a mask in f64; the manifest's mask_dtypes are bf16");
  EXPECT_EQ(why(R"("mask_dtypes": ["f64"], "mask_conventions": ["pre-scale"])", c), "");
}

TEST(WhyUnsupported, KnowsMultihead) {
  const auto why = [](std::string_view keys, const Case& c) { return why_unsupported(parse(with(keys)), c); };
  Case c;
  c.operation = Operation::multihead;
  c.heads = 2;
  c[Slot::q] = c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 3, 8});
  c[Slot::w_q] = c[Slot::w_k] = Tensor(DType::f32, {8, 12});
  c[Slot::w_v] = Tensor(DType::f32, {8, 14});
  EXPECT_EQ(why(R"("lse": true)", c), "is for multihead; the manifest's operations do not list it");
  constexpr std::string_view both = R"("operations": ["attention", "multihead"])";
  EXPECT_EQ(why(both, c), "");
  const auto limits = [&](std::string_view keys) {
    return std::string(both) + ", \"limits\": {" + std::string(keys) + "}";
  };
  EXPECT_EQ(why(limits(R"("value_dim": "head_dim")"), c), "has dk 6 and dv 7; the manifest's value_dim is head_dim");
  EXPECT_EQ(why(limits(R"("self_attention_only": true)"), c), "");
  EXPECT_EQ(why(std::string(both) + R"(, "scale": "inv-sqrt-dk")", c),
            "has scale 1; the manifest's is inv-sqrt-dk, 0.4082482904638631");
  c.scale = 1 / std::sqrt(6.0);
  EXPECT_EQ(why(std::string(both) + R"(, "scale": "inv-sqrt-dk")", c), "");
  c[Slot::v].set(0, 1.0);
  EXPECT_EQ(why(limits(R"("self_attention_only": true)"), c),
            "has keys or values other than its queries; the manifest's self_attention_only is true");
}

}  // namespace
}  // namespace attest
