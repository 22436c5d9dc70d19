// --shapes with what FlashInfer and flashinfer-bench recorded, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/support/files.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

/// A data set "recorded" of one attention with three calls, two of them of one shape, and a norm.
void write_data_set(const fake::Folder& folder) {
  for (const char* const below : {"recorded/definitions/gqa_ragged", "recorded/definitions/rmsnorm",
                                  "recorded/workloads/gqa_ragged", "recorded/workloads/rmsnorm"})
    std::filesystem::create_directories(folder / below);
  write_file_atomically(folder / "recorded/definitions/gqa_ragged/rag.json", R"({
    "name": "rag", "op_type": "gqa_ragged", "tags": ["fi_api:a.b", "stage:prefill"], "axes": {
      "num_qo_heads": {"type": "const", "value": 4}, "num_kv_heads": {"type": "const", "value": 2},
      "head_dim": {"type": "const", "value": 16}, "len_indptr": {"type": "var"},
      "total_q": {"type": "var"}, "total_kv": {"type": "var"}},
    "inputs": {}, "outputs": {}, "reference": ""})");
  write_file_atomically(folder / "recorded/definitions/rmsnorm/norm.json", R"({
    "name": "norm", "op_type": "rmsnorm", "axes": {"hidden_size": {"type": "const", "value": 64}}})");
  const auto call = [](const char* axes) {
    return std::string(R"({"definition": "rag", "solution": null, "workload": {"uuid": "u", "axes": {)") + axes +
           R"(}, "inputs": {}}, "evaluation": null})" + "\n";
  };
  write_file_atomically(folder / "recorded/workloads/gqa_ragged/rag.jsonl",
                        call(R"("len_indptr": 2, "total_q": 23, "total_kv": 37)") +
                            call(R"("len_indptr": 4, "total_q": 9, "total_kv": 100)") +
                            call(R"("len_indptr": 4, "total_q": 8, "total_kv": 101)"));
}

TEST(RecordedShapesProgram, AreCheckedAndTold) {
  const fake::Folder folder;
  write_data_set(folder);
  const std::string check = "$attest check --kernel builtin:flash --dtype f32 --property attention.oracle --cases 6 ";
  const ShellResult told = shell(folder, check + "--shapes recorded --shapes-only --out run 2>&1");
  EXPECT_EQ(told.status, 0) << told.output;
  EXPECT_THAT(told.output,
              Says("--shapes \"recorded\": 1 of 2 definitions is no attention that Attest asks: rmsnorm 1\n",
                   "--shapes \"recorded\": 2 of 3 calls: the sequences of a batch"));
  EXPECT_THAT(read_file(folder / "run/run.jsonl"), Says("all 1,4,2,23,37,16,16 3,4,2,3,34,16,16\""));
  EXPECT_EQ(shell(folder, check + "--shapes recorded --quiet --out quiet 2>&1").output, "");
  expect_status(folder, check + "--shapes recorded/workloads/gqa_ragged/rag.jsonl --quiet --out one");
}

TEST(RecordedShapesProgram, AreRefusedInOneLineBeforeARun) {
  const fake::Folder folder;
  write_data_set(folder);
  const auto refused = [&](const std::string& path) {
    return one_line_of(folder, "$attest check --kernel builtin:flash --out run --shapes " + path, 2);
  };
  EXPECT_THAT(refused("recorded/definitions/rmsnorm"), Says("holds no shape of attention", "rmsnorm 1"));
  write_file_atomically(folder / "recorded/workloads/gqa_ragged/rag.jsonl",
                        R"({"definition": "rag", "workload": {"axes": {"len_indptr": -2}}})");
  EXPECT_THAT(refused("recorded"), Says("rag.jsonl\":1: \"workload\".\"axes\".\"len_indptr\" is -2"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(RecordedShapesProgram, AreOfAContractToo) {
  const fake::Folder folder;
  write_data_set(folder);
  std::filesystem::create_directories(folder / "contracts");
  write_file_atomically(folder / "contracts/c.json", R"({"schema": "attest-contract/1", "name": "c", "cases": 40,
    "kernel": {"dtypes": ["f32"], "masks": [], "causal": [], "grouped_query": true}, "shapes_from": "../recorded"})");
  const ShellResult told =
      shell(folder, "$attest judge --contract contracts/c.json --kernel builtin:flash --no-walls --out run 2>&1");
  EXPECT_THAT(told.output,
              Says("\"shapes_from\"", "rmsnorm 1", "judged 2 of 2 shapes", "1,4,2,23,37,16", "3,4,2,3,34,16"));
}

}  // namespace
}  // namespace attest
