#include "reports/judge/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/support/errors.h"
#include "core/test/says.h"
#include "core/test/temporary_folder.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using nlohmann::json;

json small() {
  return parsed_json(R"({"schema": "attest-contract/1", "name": "small",
    "kernel": {"dtypes": ["f32"], "masks": ["bool"], "causal": ["top-left"]},
    "shapes": ["1,1,1,4,4,8", "2,2,1,3,5,8,4"]})");
}

std::string why_refused(const json& contract) {
  try {
    (void)parse_contract(contract.dump(), "mine.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "it was read";
}

TEST(Contract, TakesShapesThatWereRecorded) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "one.json") << R"({"name": "one", "op_type": "single_decode", "axes": {
    "num_qo_heads": {"type": "const", "value": 2}, "num_kv_heads": {"type": "const", "value": 2},
    "head_dim": {"type": "const", "value": 8}, "kv_len": {"type": "var"}}})";
  std::ofstream(folder.path() / "calls.jsonl") << R"({"definition": "one", "workload": {"axes": {"kv_len": 5}}})"
                                                  "\n"
                                               << R"({"definition": "one", "workload": {"axes": {"kv_len": 700}}})"
                                                  "\n"
                                               << R"({"definition": "one", "workload": {"axes": {"kv_len": 6}}})"
                                                  "\n";
  json text = small();
  text["kernel"]["limits"]["max_keys"] = 512;
  text["shapes"] = {"1,2,2,1,6,8", "1,1,1,4,4,8"};
  text["shapes_from"] = "calls.jsonl";
  const Contract contract = parse_contract(text.dump(), "mine.json", folder.path());
  ASSERT_EQ(contract.shapes.size(), 3U);
  EXPECT_EQ(contract.shapes[2].keys, 5);
  EXPECT_EQ(contract.cells.size(), 12U);
  ASSERT_EQ(contract.notes.size(), 1U);
  EXPECT_THAT(contract.notes[0],
              Says("\"shapes_from\"", "calls.jsonl", "1 of 3 shapes are left out", "1,2,2,1,700,8: it"));
  // They are enough.
  text.erase("shapes");
  EXPECT_EQ(parse_contract(text.dump(), "mine.json", folder.path()).shapes.size(), 2U);
  // As a file, from where the file lies.
  std::ofstream(folder.path() / "contract.json") << text.dump();
  EXPECT_EQ(read_contract((folder.path() / "contract.json").string()).shapes.size(), 2U);
  EXPECT_THAT(why_refused(text), Says("mine.json: ", "cannot read"));
  text["shapes_from"] = (folder.path() / "calls.jsonl").string();
  text["kernel"]["limits"]["max_keys"] = 4;
  EXPECT_THAT(why_refused(text), Says("mine.json: \"shapes_from\"", "3 of 3 shapes are left out"));
}

TEST(Contract, StatesWhatIsHeldAgainstAKernel) {
  json text = small();
  text["kernel"]["grouped_query"] = true;
  text["cases"] = 50;
  text["share"] = 0.5;
  text["time_limit"] = "500ms";
  text["memory"] = "1GiB";
  text["files"] = {"weights"};
  text["processes"] = 3;
  text["watch"] = "20s";
  text["other_shapes"] = false;
  const Contract contract = parse_contract(text.dump(), "mine.json");
  EXPECT_EQ(contract.name, "small");
  EXPECT_EQ(contract.law.dtypes, std::vector{DType::f32});
  ASSERT_EQ(contract.shapes.size(), 2U);
  EXPECT_EQ(contract.shapes[1].dv, 4);
  EXPECT_EQ(contract.cases, 50);
  EXPECT_EQ(contract.share, 0.5);
  EXPECT_EQ(contract.time_limit.count(), 500);
  EXPECT_EQ(contract.first_time_limit.count(), 60'000);
  EXPECT_EQ(contract.memory, std::uint64_t{1} << 30U);
  EXPECT_EQ(contract.files, std::vector<std::filesystem::path>{"weights"});
  EXPECT_EQ(contract.processes, 3);
  EXPECT_EQ(contract.watch.count(), 20'000);
  EXPECT_FALSE(contract.other_shapes);
  // Two shapes, with and without a mask, causal and not.
  EXPECT_EQ(contract.cells.size(), 8U);
}

TEST(Contract, RefusesWhatIsNoContractInOneLine) {
  const auto refusal = [](auto&& change) {
    json text = small();
    change(text);
    std::string why = why_refused(text);
    EXPECT_TRUE(why.starts_with("mine.json")) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    return why;
  };
  EXPECT_THAT(refusal([](json& c) { c["schema"] = "attest-contract/9"; }), Says("attest-contract/9", "reads"));
  EXPECT_THAT(refusal([](json& c) { c.erase("name"); }), Says("\"name\" is missing"));
  EXPECT_THAT(refusal([](json& c) { c.erase("kernel"); }), Says("\"kernel\" is missing"));
  EXPECT_THAT(refusal([](json& c) { c["kernel"]["name"] = "mine"; }), Says("leave it out"));
  EXPECT_THAT(refusal([](json& c) { c["kernel"]["dtype"] = "f32"; }), Says("\"kernel\"", "dtypes"));
  EXPECT_THAT(refusal([](json& c) { c.erase("shapes"); }), Says("at least one shape"));
  EXPECT_THAT(refusal([](json& c) { c["shapes"] = {"1,2,3"}; }), Says("1,2,3"));
  EXPECT_THAT(refusal([](json& c) { c["share"] = 1.5; }), Says("\"share\" is 1.5"));
  EXPECT_THAT(refusal([](json& c) { c["time_limit"] = "soon"; }), Says("\"time_limit\"", "soon"));
  EXPECT_THAT(refusal([](json& c) { c["seed"] = 7; }), Says("\"seed\""));
  // Without grouped queries the second shape cannot be, and no kernel could pass.
  EXPECT_THAT(why_refused(small()), Says("2,2,1,3,5,8,4", "grouped_query is false"));
  EXPECT_THAT(refusal([](json& c) {
                c["kernel"]["grouped_query"] = true;
                c["cases"] = 15;
              }),
              Says("\"cases\" is 15", "16 is the least"));
  EXPECT_THAT(refusal([](json& c) { c["kernel"]["operations"] = {"multihead"}; }), Says("attention"));
}

TEST(Contract, HasSomeToBeginWith) {
  const std::vector<std::string> names = starter_contracts();
  EXPECT_THAT(names, testing::IsSupersetOf({"decode-f16", "flash-bf16", "sdpa-f32"}));
  for (const std::string& name : names) {
    const Contract contract = read_contract(name);
    EXPECT_EQ(contract.name, name);
    for (const DType dtype : contract.law.dtypes) {
      const auto is_of_dtype = [&](const ContractCell& cell) { return cell.dtype == dtype; };
      EXPECT_TRUE(std::ranges::any_of(contract.cells, is_of_dtype)) << name;
    }
  }
  EXPECT_THROW((void)starter_contract("flash-bf17"), UsageError);
  EXPECT_THROW((void)read_contract("no such file"), UsageError);
}

TEST(Contract, TellsAnAlignmentThatItDoesNotOffer) {
  const Contract contract = read_contract("flash-bf16");
  Manifest own = contract.law;
  EXPECT_EQ(asks_beyond(contract, own), "");
  own.alignment = 64;
  EXPECT_THAT(asks_beyond(contract, own), Says("64 bytes", "offers 16 bytes"));
}

}  // namespace
}  // namespace attest
