// Limits of shape and of form: how a manifest states them, which contradict each other, and when a case is ruled out.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "core/kernel/limits.h"
#include "core/problem/memory.h"
#include "core/test/cases.h"

namespace attest {
namespace {

Manifest parse(const std::string& keys) {
  return parse_manifest(R"({"name": "x", "dtypes": ["f32"], "operations": ["attention", "multihead"], )" + keys + "}",
                        "mine");
}
Manifest with_limits(const std::string& limits) {
  return parse(R"("limits": {)" + limits + "}");
}
std::string fault_of(const std::string& keys) {
  try {
    static_cast<void>(parse(keys));
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(ManifestLimits, AreReadAndWrittenBackEqual) {
  const Manifest m = parse(R"("grouped_query": true, "strides": true, "causal": ["top-left"], "masks": ["bool"],
      "limits": {"head_dims": [128, 64, 64], "value_dims": [128], "group_sizes": [8, 1], "queries_multiple": 64,
      "keys_multiple": 32, "min_queries": 2, "min_keys": 3, "same_lengths": true, "model_dim": "heads*head_dim",
      "zero_strides": false}, "requires": ["causal"], "excludes": [["mask", "top-left"], ["bool-mask", "grouped-query"]],
      "tiles": {"queries": [128], "keys": [64, 32], "splits": [4]})");
  EXPECT_EQ(m.head_dims, (std::vector<std::int64_t>{64, 128})) << "ascending, each once";
  EXPECT_EQ(m.value_dims, (std::vector<std::int64_t>{128}));
  EXPECT_EQ(m.group_sizes, (std::vector<std::int64_t>{1, 8}));
  EXPECT_EQ(m.queries_multiple, 64);
  EXPECT_EQ(m.keys_multiple, 32);
  EXPECT_EQ(m.min_queries, 2);
  EXPECT_EQ(m.min_keys, 3);
  EXPECT_TRUE(m.same_lengths);
  EXPECT_TRUE(m.model_dim_is_heads);
  EXPECT_FALSE(m.zero_strides);
  EXPECT_EQ(m.required, std::vector{Feature::causal});
  EXPECT_EQ(m.excluded, (std::vector<std::vector<Feature>>{{Feature::mask, Feature::top_left},
                                                           {Feature::bool_mask, Feature::grouped_query}}));
  EXPECT_EQ(m.tiles, (Tiles{.queries = {128}, .keys = {32, 64}, .splits = {4}}));
  EXPECT_EQ(parse_manifest(to_json(m), "written"), m) << to_json(m);
  const Manifest plain = parse(R"("lse": false)");
  for (const std::string_view key :
       {"head_dims", "keys_multiple", "min_", "same", "model", "zero", "requires", "tiles"})
    EXPECT_EQ(to_json(plain).find(key), std::string::npos) << key << " is not stated";
}

TEST(ManifestLimits, RefuseWhatContradictsItself) {
  const std::map<std::string, std::string> lines{
      {R"("limits": {"head_dims": []})",
       "\"limits\".\"head_dims\" is []; it must be an array of whole numbers from 1 to 2147483647, at least one"},
      {R"("limits": {"head_dims": 64})",
       "\"limits\".\"head_dims\" is 64; it must be an array of whole numbers from 1 to 2147483647, at least one"},
      {R"("limits": {"head_dims": [64, 0]})",
       "\"limits\".\"head_dims\" is [64,0]; it must be an array of whole numbers from 1 to 2147483647, at least one"},
      {R"("limits": {"head_dims": [64], "head_dim_multiple": 8})",
       "\"limits\".\"head_dims\" is [64]; it lists all there are; leave \"head_dim_multiple\" and \"max_head_dim\" out"},
      {R"("limits": {"value_dims": [64], "value_dim": "head_dim"})",
       "\"limits\".\"value_dims\" is [64]; \"value_dim\" ties dv to dk; state one of the two"},
      {R"("limits": {"keys_multiple": 0})",
       "\"limits\".\"keys_multiple\" is 0; it must be a whole number from 1 to 65536"},
      {R"("limits": {"queries_multiple": 64, "max_queries": 63})",
       "\"limits\".\"max_queries\" is 63; no multiple of 64 (queries_multiple) from 0 (min_queries) on is so small"},
      {R"("limits": {"keys_multiple": 64, "min_keys": 65, "max_keys": 127})",
       "\"limits\".\"max_keys\" is 127; no multiple of 64 (keys_multiple) from 65 (min_keys) on is so small"},
      {R"("limits": {"keys_multiple": 64, "queries_multiple": 48, "same_lengths": true, "max_keys": 128})",
       "\"limits\".\"same_lengths\" is true; no length is within the limits of queries and within those of keys"},
      {R"("limits": {"group_sizes": [4]})",
       "\"limits\".\"group_sizes\" is [4]; \"grouped_query\" is false, and a group has 1 head"},
      {R"("grouped_query": true, "limits": {"group_sizes": [4], "max_heads": 3})",
       "\"limits\".\"group_sizes\" is [4]; \"max_heads\" is 3, and the smallest group takes 4"},
      {R"("limits": {"zero_strides": false})",
       "\"limits\".\"zero_strides\" is false; \"strides\" is false, and none are sent"},
      {R"("requires": ["causal"])", "\"requires\" is [\"causal\"]; no other key of the manifest offers \"causal\""},
      {R"("causal": ["none"], "requires": ["causal"])",
       "\"requires\" is [\"causal\"]; no other key of the manifest offers \"causal\""},
      {R"("requires": ["causl"])", "\"requires\" holds \"causl\", which is unknown; did you mean \"causal\"?"},
      {R"("requires": ["additive-mask", "bool-mask"])",
       "\"requires\" is [\"additive-mask\",\"bool-mask\"]; no problem has two causal forms or two masks"},
      {R"("excludes": ["mask", "causal"])",
       "\"excludes\" is [\"mask\",\"causal\"]; it must be an array of lists of words, as [[\"mask\", \"causal\"]]"},
      {R"("excludes": [[]])",
       "\"excludes\" is [[]]; it must be an array of lists of words, as [[\"mask\", \"causal\"]]"},
      {R"("excludes": [["mask", "cuasal"]])",
       "\"excludes\" holds \"cuasal\", which is unknown; did you mean \"causal\"?"},
      {R"("requires": ["mask", "bool-mask"], "excludes": [["mask", "bool-mask"]])",
       "\"excludes\" is [[\"mask\",\"bool-mask\"]]; \"requires\" lists all of one list"},
      {R"("variants": {"windw": {}})", "\"variants\": unknown key \"windw\"; did you mean \"window\"?"},
      {R"("variants": ["window"])", "\"variants\" is [\"window\"]; it must be an object"},
      {R"("variants": {"window": {"lefts": true}})",
       "\"variants\".\"window\": unknown key \"lefts\"; did you mean \"left\"?"},
      {R"("variants": {"window": {"left": false, "right": false}})",
       "\"variants\".\"window\".\"right\" is false; a window has a left end, a right end or both"},
      {R"("variants": {"window": {"alignment": []}})",
       "\"variants\".\"window\".\"alignment\" is []; it must list \"top-left\", \"bottom-right\" or both"},
      {R"("variants": {"window": {"alignment": ["none"]}})",
       "\"variants\".\"window\".\"alignment\" is [\"none\"]; it must list \"top-left\", \"bottom-right\" or both"},
      {R"("variants": {"window": {"requires": ["causal"]}})",
       "\"variants\".\"window\".\"requires\" is [\"causal\"]; no other key of the manifest offers \"causal\""},
      {R"("variants": {"window": {"requires": ["mask"], "excludes": ["mask"]}})",
       "\"variants\".\"window\".\"excludes\" is [\"mask\"]; \"requires\" lists \"mask\""},
      {R"("variants": {"paged": {}})",
       "\"variants\" is {\"paged\":{}}; \"paged\" goes with \"lengths\" of keys, which say how many of a cache's keys "
       "there are"},
      {R"("variants": {"lengths": {"keys": false}, "paged": {}})",
       "\"variants\" is {\"lengths\":{\"keys\":false},\"paged\":{}}; \"paged\" goes with \"lengths\" of keys, which say "
       "how many of a cache's keys there are"},
      {R"("variants": {"append": {}})",
       "\"variants\" is {\"append\":{}}; \"append\" goes with \"lengths\" of keys, which say how many of a cache's keys "
       "there are"},
      {R"("variants": {"lengths": {}, "paged": {"table_tail": "none"}})",
       "\"variants\".\"paged\".\"table_tail\" is \"none\"; that word is unknown; known: \"valid\", \"any\""},
      {R"("requires": ["window"])", "\"requires\" is [\"window\"]; no other key of the manifest offers \"window\""},
      {R"("requires": ["lse"])", "\"requires\" is [\"lse\"]; no other key of the manifest offers \"lse\""},
      {R"("variants": {"window": {"requires": ["lse"]}})",
       "\"variants\".\"window\".\"requires\" is [\"lse\"]; no other key of the manifest offers \"lse\""},
      {R"("lse": true, "requires": ["lse"], "variants": {"window": {"excludes": ["lse"]}})",
       "\"requires\" is [\"lse\"]; \"variants\".\"window\".\"excludes\" lists \"lse\""},
      {R"("lse": true, "excludes": [["lse", "window"]], "variants": {"window": {"requires": ["lse"]}})",
       "\"excludes\" is [[\"lse\",\"window\"]]; \"variants\".\"window\" requires all of one list"},
      {R"("tiles": {"querys": [64]})", "\"tiles\": unknown key \"querys\"; did you mean \"queries\"?"},
      {R"("tiles": {"keys": 64})",
       "\"tiles\".\"keys\" is 64; it must be an array of whole numbers from 1 to 2147483647, at least one"},
      // Each is known, and a slip of it finds it.
      {R"("limits": {"keys_multiples": 64})",
       "\"limits\": unknown key \"keys_multiples\"; did you mean \"keys_multiple\"?"},
      {R"("limits": {"head_dim": [64]})", "\"limits\": unknown key \"head_dim\"; did you mean \"head_dims\"?"},
      {R"("limits": {"same_length": true})", "\"limits\": unknown key \"same_length\"; did you mean \"same_lengths\"?"},
      {R"("grouped_heads": true)", "unknown key \"grouped_heads\"; did you mean \"grouped_query\"?"}};
  for (const auto& [keys, line] : lines) EXPECT_EQ(fault_of(keys), "mine: " + line) << keys;
  EXPECT_EQ(fault_of(R"("limits": {"keys_multiple": 64})"), "");
  EXPECT_THROW(static_cast<void>(parse_manifest(
                   R"({"name": "x", "dtypes": ["f32"], "limits": {"model_dim": "heads*head_dim"}})", "mine")),
               UsageError)
      << "there is no multihead entry";
}

Case attention(std::int64_t heads, std::int64_t kv_heads, std::int64_t queries, std::int64_t keys, std::int64_t dk,
               std::int64_t dv) {
  Case c;
  c[Slot::q] = Tensor(DType::f32, {1, heads, queries, dk});
  c[Slot::k] = Tensor(DType::f32, {1, kv_heads, keys, dk});
  c[Slot::v] = Tensor(DType::f32, {1, kv_heads, keys, dv});
  return c;
}

TEST(ManifestLimits, RuleCasesOut) {
  const Case c = attention(4, 4, 3, 5, 16, 24);
  const auto why = [](const std::string& limits, const Case& of) { return why_unsupported(with_limits(limits), of); };
  EXPECT_EQ(why(R"("head_dims": [8, 24])", c), "has dk 16; the manifest's head_dims are 8, 24");
  EXPECT_EQ(why(R"("head_dims": [8, 16])", c), "has dv 24; the manifest's head_dims are 8, 16");
  EXPECT_EQ(why(R"("head_dims": [16, 24])", c), "");
  EXPECT_EQ(why(R"("head_dims": [16], "value_dims": [24])", c), "");
  EXPECT_EQ(why(R"("value_dims": [16])", c), "has dv 24; the manifest's value_dims are 16");
  EXPECT_EQ(why(R"("queries_multiple": 2)", c), "has 3 queries; the manifest's queries_multiple is 2");
  EXPECT_EQ(why(R"("keys_multiple": 5)", c), "");
  EXPECT_EQ(why(R"("keys_multiple": 4)", c), "has 5 keys; the manifest's keys_multiple is 4");
  EXPECT_EQ(why(R"("min_queries": 4)", c), "has 3 queries; the manifest's min_queries is 4");
  EXPECT_EQ(why(R"("min_keys": 6)", c), "has 5 keys; the manifest's min_keys is 6");
  EXPECT_EQ(why(R"("min_queries": 3, "min_keys": 5)", c), "");
  EXPECT_EQ(why(R"("same_lengths": true)", c), "has 3 queries and 5 keys; the manifest's same_lengths is true");
  EXPECT_EQ(why(R"("keys_multiple": 64)", attention(1, 1, 3, 0, 1, 1)), "") << "0 is a multiple";
  const Manifest groups = parse(R"("grouped_query": true, "limits": {"group_sizes": [1, 4]})");
  EXPECT_EQ(why_unsupported(groups, attention(4, 4, 1, 1, 1, 1)), "");
  EXPECT_EQ(why_unsupported(groups, attention(8, 2, 1, 1, 1, 1)), "");
  EXPECT_EQ(why_unsupported(groups, attention(4, 2, 1, 1, 1, 1)),
            "has 2 heads to a key-value head; the manifest's group_sizes are 1, 4");
}

TEST(ManifestLimits, SayWhetherALogSumExpIsAskedFor) {
  const Case plain = attention(4, 2, 3, 3, 16, 16);
  Case windowed = plain;
  windowed.window_left = 1;
  windowed.alignment = Causal::top_left;
  const std::string all = R"("grouped_query": true, "lse": true, )";
  const auto asked = [&](const std::string& keys, const Case& c) {
    const Manifest m = parse(all + keys);
    EXPECT_EQ(why_unsupported(m, c), "") << keys << ": a case is ruled out by nothing that is of the call";
    EXPECT_EQ(asks_lse(m, c, /*wanted=*/true), why_no_lse(m, c).empty()) << keys;
    EXPECT_TRUE(asks_lse(m, c, /*wanted=*/true) || !asks_lse(m, c, /*wanted=*/false)) << keys;
    return asks_lse(m, c, false) ? "always" : asks_lse(m, c, true) ? "where wanted" : "never";
  };
  EXPECT_STREQ(asked(R"("variants": {"window": {}})", windowed), "where wanted");
  EXPECT_STREQ(asked(R"("variants": {"window": {"excludes": ["lse"]}})", windowed), "never");
  EXPECT_STREQ(asked(R"("variants": {"window": {"excludes": ["lse"]}})", plain), "where wanted");
  EXPECT_STREQ(asked(R"("variants": {"window": {"requires": ["lse"]}})", windowed), "always");
  EXPECT_STREQ(asked(R"("variants": {"window": {"requires": ["lse"]}})", plain), "where wanted");
  EXPECT_STREQ(asked(R"("requires": ["lse"])", plain), "always");
  EXPECT_STREQ(asked(R"("excludes": [["lse", "grouped-query"]])", plain), "never");
  EXPECT_STREQ(asked(R"("excludes": [["lse", "mask"]])", plain), "where wanted");
  Case many = plain;
  many.operation = Operation::multihead;
  EXPECT_FALSE(asks_lse(parse(R"("lse": true)"), many, /*wanted=*/true));
  EXPECT_EQ(why_no_lse(parse(R"("variants": {"window": {}})"), windowed), "the manifest's lse is false");
  EXPECT_EQ(why_no_lse(parse(all + R"("variants": {"window": {"excludes": ["lse"]}})"), windowed),
            "has the variant window with lse; the manifest's variants.window.excludes lists it");
  EXPECT_EQ(why_no_lse(parse(all + R"("excludes": [["lse", "grouped-query"]])"), plain),
            "has lse with grouped-query; the manifest's excludes lists that");
}

TEST(ManifestLimits, RuleFormsOut) {
  Case c = attention(4, 2, 3, 2, 16, 16);
  const std::string all = R"("grouped_query": true, "causal": ["top-left", "bottom-right"], )";
  const auto why = [&](const std::string& keys) { return why_unsupported(parse(all + keys), c); };
  EXPECT_EQ(why(R"("requires": ["causal"])"), "is without causal; the manifest's requires lists it");
  EXPECT_EQ(why(R"("excludes": [["grouped-query", "fewer-keys"]])"),
            "has grouped-query with fewer-keys; the manifest's excludes lists that");
  EXPECT_EQ(why(R"("excludes": [["grouped-query", "unequal-lengths", "mask"]])"), "") << "there is no mask";
  c.causal = Causal::bottom_right;
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 3, 2});
  EXPECT_EQ(why(R"("requires": ["causal", "bottom-right", "mask", "bool-mask", "grouped-query"])"), "");
  EXPECT_EQ(why(R"("requires": ["top-left"])"), "is without top-left; the manifest's requires lists it");
  EXPECT_EQ(why(R"("requires": ["additive-mask"])"), "is without additive-mask; the manifest's requires lists it");
  EXPECT_EQ(why(R"("excludes": [["mask", "causal"]])"), "has mask with causal; the manifest's excludes lists that");
  EXPECT_EQ(why(R"("excludes": [["additive-mask", "causal"], ["mask", "top-left"]])"), "");
  c = attention(1, 1, 2, 2, 4, 4);
  set_layouts(c, parse_layouts("k=repeated v=padded-rows"));
  EXPECT_EQ(why_unsupported(parse(R"("strides": true, "limits": {"zero_strides": false})"), c),
            "has strides k=repeated v=padded-rows; the manifest's zero_strides is false");
  set_layouts(c, parse_layouts("v=padded-rows"));
  EXPECT_EQ(why_unsupported(parse(R"("strides": true, "limits": {"zero_strides": false})"), c), "");
}

TEST(ManifestLimits, RuleModelsOut) {
  Case c;
  c.operation = Operation::multihead;
  c.heads = 2;
  c[Slot::q] = c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, 3, 8});
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v, Slot::w_o}) c[slot] = Tensor(DType::f32, {8, 8});
  const Manifest m = with_limits(R"("model_dim": "heads*head_dim")");
  EXPECT_EQ(why_unsupported(m, c), "");
  c[Slot::w_o] = Tensor(DType::f32, {8, 6});
  EXPECT_EQ(why_unsupported(m, c), "has c_q 8, d_o 6 and heads*dk 8; the manifest's model_dim is heads*head_dim");
  EXPECT_EQ(why_unsupported(with_limits(R"("model_dim": "any")"), c), "");
}

TEST(AllowedExtents, RoundUpAndElseDown) {
  const AllowedExtents multiples{.multiple = 64, .least = 65, .most = 300};
  EXPECT_EQ(multiples.from(1), 128);
  EXPECT_EQ(multiples.from(257), std::nullopt);
  EXPECT_EQ(multiples.nearest(500), 256);
  EXPECT_TRUE(multiples.has(192));
  EXPECT_FALSE(multiples.has(64));
  EXPECT_FALSE(multiples.has(0));
  EXPECT_EQ((AllowedExtents{.multiple = 64}).from(0), 0);
  const std::vector<std::int64_t> widths{64, 128};
  const AllowedExtents list{.list = widths};
  EXPECT_EQ(list.from(65), 128);
  EXPECT_EQ(list.nearest(512), 128);
  EXPECT_EQ(list.nearest(3), 64);
}

}  // namespace
}  // namespace attest
