// The JSON Schemas that are installed describe what the program writes: every member, and nothing else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/kernel/manifest_json/keys.h"
#include "core/support/files.h"
#include "reports/judge/contract.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

using nlohmann::json;

json schema_of(const std::string& name) {
  return parsed_json(read_file(source_folder() + "/reports/schemas/" + name + ".schema.json"));
}

bool is_of_type(const json& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "integer" ? value.is_number_integer()
         : type == "number"  ? value.is_number()
                             : false;
}

/// The keywords of JSON Schema that the files use, read strictly: a member that nothing describes is wrong, too, though
/// they are open for those of later versions.
class Checker {
 public:
  explicit Checker(const json& root) : root_(root) {}

  /// What is wrong with the value; empty: nothing.
  [[nodiscard]] std::string wrong(const json& value) const { return wrong(value, root_, "$"); }

 private:
  [[nodiscard]] std::string wrong(const json& value, const json& schema, const std::string& at) const {
    static const std::set<std::string> known{
        "$schema", "title",    "description", "$defs", "$ref",  "type",     "const",      "enum",
        "minimum", "minItems", "minLength",   "anyOf", "items", "required", "properties", "additionalProperties"};
    if (schema.is_boolean()) return schema.get<bool>() ? "" : at + " is not allowed";
    for (const auto& [keyword, ignored] : schema.items())
      if (!known.contains(keyword)) return fmt::format("{}: this test does not know {}", at, keyword);
    if (schema.contains("$ref"))
      return wrong(value, root_.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))), at);
    if (schema.contains("anyOf")) {
      std::string all;
      for (const json& one : schema["anyOf"]) {
        const std::string fault = wrong(value, one, at);
        if (fault.empty()) return {};
        all += "\n  or " + fault;
      }
      return all;
    }
    if (schema.contains("const") && value != schema["const"]) return fmt::format("{} is {}", at, value.dump());
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      return fmt::format("{} is {}", at, value.dump());
    if (schema.contains("type")) {
      const json& types = schema["type"];
      const auto is = [&](const json& type) { return is_of_type(value, type.get<std::string>()); };
      if (types.is_array() ? std::none_of(types.begin(), types.end(), is) : !is(types))
        return fmt::format("{} is no {}: {}", at, types.dump(), value.dump());
    }
    if (value.is_number() && schema.contains("minimum") && value < schema["minimum"]) return at + " is too small";
    if (value.is_string() && value.get<std::string>().size() < schema.value("minLength", 0U)) return at + " is short";
    return value.is_array() ? wrong_item(value, schema, at) : value.is_object() ? wrong_member(value, schema, at) : "";
  }

  [[nodiscard]] std::string wrong_item(const json& value, const json& schema, const std::string& at) const {
    if (value.size() < schema.value("minItems", 0U)) return at + " is short";
    for (std::size_t i = 0; schema.contains("items") && i < value.size(); ++i)
      if (std::string fault = wrong(value[i], schema["items"], fmt::format("{}[{}]", at, i)); !fault.empty())
        return fault;
    return {};
  }

  [[nodiscard]] std::string wrong_member(const json& value, const json& schema, const std::string& at) const {
    static const json none = json::array();
    for (const json& name : schema.contains("required") ? schema["required"] : none)
      if (!value.contains(name.get<std::string>())) return fmt::format("{} lacks {}", at, name.dump());
    const json described = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      const bool listed = described.contains(name);
      if (!listed && !schema.contains("additionalProperties")) return fmt::format("{}.{} is not described", at, name);
      const json& rule = listed ? described[name] : schema["additionalProperties"];
      if (std::string fault = wrong(member, rule, fmt::format("{}.{}", at, name)); !fault.empty()) return fault;
    }
    return {};
  }

  const json& root_;
};

TEST(Schemas, DescribeWhatRunsWrite) {
  const fake::Folder folder;
  const std::string few = " --cases 12 --property 'attention.*' --no-large --quiet --jobs 2 > /dev/null 2>&1; ";
  const ShellResult made = shell(
      folder,
      "$attest check --kernel builtin:flash --kernel core:mpfr --out held --alarm" + few +
          "$attest check --kernel fault:scale-ignored --kernel fault:sum-not-rescaled --dtype f32 --out violated" +
          few + "$attest check --kernel builtin:flash --against builtin:online --dtype f32 --shard 0/2 --out compared" +
          few +
          "$attest check --kernel builtin:flash --dtype f32 --case violated/cases/*--k*.safetensors --out captured"
          " --quiet > /dev/null 2>&1; "
          "$attest fuzz --kernel fault:scale-ignored --dtype f32 --runs 200 --quiet --out fuzzed > /dev/null 2>&1; "
          "$attest merge held -o merged/");
  EXPECT_EQ(made.status, 0) << made.output;
  const json summary = schema_of("summary"), line = schema_of("journal"), manifest = schema_of("manifest");
  std::set<std::string> kinds;
  for (const char* const run : {"held", "violated", "compared", "captured", "fuzzed", "merged"}) {
    SCOPED_TRACE(run);
    EXPECT_EQ(Checker(summary).wrong(summary_of(folder, run)), "");
    std::istringstream lines(read_file(folder / (std::string(run) + "/run.jsonl")));
    for (std::string text; std::getline(lines, text);) {
      const json record = parsed_json(text);
      kinds.insert(record["kind"].get<std::string>());
      ASSERT_EQ(Checker(line).wrong(record), "") << text.substr(0, 2000);
      if (record.contains("manifest")) {
        ASSERT_EQ(Checker(manifest).wrong(record["manifest"]), "") << text;
      }
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"batch", "finding", "kernel", "meta", "run"}));
}

TEST(Schemas, DescribeContractsAndJudgements) {
  const fake::Folder folder;
  const json contract = schema_of("contract"), judgement = schema_of("judgement");
  for (const std::string& name : starter_contracts())
    EXPECT_EQ(Checker(contract).wrong(parsed_json(starter_contract(name))), "") << name;
  write_file_atomically(folder / "small.json", R"({"schema": "attest-contract/1", "name": "small", "cases": 40,
    "kernel": {"dtypes": ["f32"], "masks": [], "limits": {"min_keys": 1}}, "shapes": ["1,1,1,4,4,8"]})");
  EXPECT_EQ(Checker(contract).wrong(parsed_json(read_file(folder / "small.json"))), "");
  const std::string judge = "$attest judge --contract small.json --no-walls --quiet --out ";
  expect_status(folder, judge + "right --kernel builtin:flash");
  expect_status(folder, judge + "wrong --kernel fault:scale-ignored", 1);
  for (const char* const run : {"right", "wrong"}) {
    SCOPED_TRACE(run);
    EXPECT_EQ(Checker(judgement).wrong(parsed_json(read_file(folder / (std::string(run) + "/judgement.json")))), "");
  }
}

TEST(Schemas, DescribeSurveys) {
  const fake::Folder folder;
  std::string list;
  for (const char* const kernel : {"builtin:flash", "fault:scale-ignored", "exec:./none"})
    list += fmt::format(
        "[[path]]\nlibrary = \"Own\"\nversions = [\"1\"]\npath = \"{0}\"\nkernel = \"{0}\"\ndtypes = [\"f32\"]\n",
        kernel);
  write_file_atomically(folder / "paths.toml", list);
  expect_status(folder, "$attest survey paths.toml --out s --cases 5 --quiet");
  EXPECT_EQ(Checker(schema_of("survey")).wrong(parsed_json(read_file(folder / "s/survey.json"))), "");
  EXPECT_NE(Checker(schema_of("survey")).wrong(parsed_json(R"({"schema": "attest-survey/1", "rows": [{}]})")), "");
}

TEST(Schemas, RefuseWhatNobodyWrites) {
  const json summary = schema_of("summary"), manifest = schema_of("manifest"), line = schema_of("journal");
  const json right = parsed_json(R"({"name": "mine", "dtypes": ["f32"]})");
  EXPECT_EQ(Checker(manifest).wrong(right), "");
  const json mistakes = parsed_json(R"({"name": "", "dtypes": [], "causal": "none", "nam": 1})");
  for (const auto& [key, value] : mistakes.items()) {
    json changed = right;
    changed[key] = value;
    EXPECT_NE(Checker(manifest).wrong(changed), "") << key;
  }
  EXPECT_THAT(Checker(manifest).wrong({{"name", "mine"}}), Says("$ lacks \"dtypes\""));
  EXPECT_NE(Checker(summary).wrong({{"schema", "attest-summary/1"}}), "");
  EXPECT_NE(Checker(line).wrong({{"kind", "batch"}, {"line", 1}, {"crc", "00000000"}}), "");
}

/// No key more and none less than the program knows.
TEST(Schemas, HaveTheKeysOfAManifest) {
  std::set<std::string> described, known;
  const json properties = schema_of("manifest")["properties"];
  for (const auto& [key, ignored] : properties.items()) described.insert(key);
  for (const std::string_view key : manifest_keys()) known.emplace(key);
  EXPECT_EQ(described, known);
}

}  // namespace
}  // namespace attest
