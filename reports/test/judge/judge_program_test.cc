// attest judge, as a user runs it: what is a pass, what is none, and that nothing of it is the kernel's to decide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include "core/isolation/walls/walls.h"
#include "core/journal/journal.h"
#include "core/support/files.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

using nlohmann::json;

/// Of f32, small shapes, causal or not.
void write_contract(const fake::Folder& folder, const std::string& more = "") {
  write_file_atomically(folder / "small.json", R"({"schema": "attest-contract/1", "name": "small", "files": ["."], )" +
                                                   more +
                                                   R"("kernel": {"dtypes": ["f32"], "masks": [], "causal": ["top-left"],
                                          "limits": {"min_keys": 1, "min_queries": 1}},
                               "shapes": ["1,2,2,40,40,16", "1,1,1,5,70,8"]})");
}

json judgement_of(const fake::Folder& folder, const std::string& run) {
  return parsed_json(read_file(folder / (run + "/judgement.json")));
}

TEST(JudgeProgram, TellsFirstHowMuchWasJudged) {
  const fake::Folder folder;
  write_contract(folder, R"("cases": 60, )");
  const ShellResult told =
      shell(folder, "$attest judge --contract small.json --kernel builtin:flash --no-walls --out run 2> /dev/null");
  EXPECT_TRUE(told.output.starts_with("judged 4 of 4 shapes × dtypes × forms of small (100 %;")) << told.output;
  EXPECT_THAT(told.output, Says("1,2,2,40,40,16", "plain · top-left", "report: run/report.html"));
  const json judgement = judgement_of(folder, "run");
  EXPECT_EQ(judgement["share"], 1.0);
  EXPECT_GT(judgement["cases"], 1000);
  EXPECT_GE(judgement["calls"], judgement["cases"]);
  EXPECT_LE(judgement["worst"], 1.0);
}

TEST(JudgeProgram, FailsWhatRefusesWithinTheContract) {
  const fake::Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_contract(folder, R"("cases": 20, )");
  write_python(folder, "mine",
               "def attention(q, k, v, causal='none', scale=1.0):\n"
               "    if q.shape[2] > 4: raise attest_adapter.Unsupported('above four queries')\n"
               "    s = scale * (q @ k.swapaxes(-1, -2))\n"
               "    if causal != 'none': s = numpy.where(numpy.tri(*s.shape[-2:], dtype=bool), s, -numpy.inf)\n"
               "    w = numpy.exp(s - s.max(-1, keepdims=True))\n"
               "    return ((w / w.sum(-1, keepdims=True)) @ v).astype(q.dtype)\n",
               "'dtypes': ['f32'], 'causal': ['top-left'], 'limits': {'max_queries': 4}");
  const std::string output = output_of(
      folder, "$attest judge --contract small.json --kernel 'exec:/usr/bin/python3 mine.py' --no-walls --out run", 1);
  EXPECT_THAT(output, Says("judged 0 of 4 shapes", "FAIL  mine", "refuses what the contract small asks for"));
  EXPECT_EQ(judgement_of(folder, "run")["verdict"], "fail");
}

TEST(JudgeProgram, DrawsASeedThatNobodyKnowsAndRepeatsItWhenTold) {
  const fake::Folder folder;
  write_contract(folder, R"("cases": 20, )");
  const std::string judge =
      "$attest judge --contract small.json --kernel builtin:flash --no-walls --quiet --jobs 1 --out ";
  for (const char* const run : {"one", "two"}) (void)shell(folder, judge + run);
  const std::string one = judgement_of(folder, "one")["seed"], two = judgement_of(folder, "two")["seed"];
  EXPECT_NE(one, two);
  EXPECT_TRUE(judgement_of(folder, "one")["secret"]);
  (void)shell(folder, judge + "again --seed " + one);
  EXPECT_EQ(judgement_of(folder, "again")["seed"], one);
  EXPECT_FALSE(judgement_of(folder, "again")["secret"]);
  const auto batches = [&](const char* run) {
    std::string text;
    for (const BatchRecord& batch : read_journal(folder / run).batches) text += to_line(batch);
    return text;
  };
  EXPECT_EQ(batches("again"), batches("one"));
  EXPECT_NE(batches("two"), batches("one"));
}

/// The order in which properties are asked is the secret's, too.
TEST(JudgeProgram, AsksInAnOrderOfItsOwn) {
  const fake::Folder folder;
  write_contract(folder, R"("cases": 20, )");
  std::set<std::string> orders;
  for (const char* const run : {"one", "two", "three"}) {
    (void)shell(folder, std::string("$attest judge --contract small.json --kernel builtin:flash --no-walls --quiet "
                                    "--jobs 1 --out ") +
                            run);
    std::string order;
    for (const BatchRecord& batch : read_journal(folder / run).batches)
      if (order.size() < 400) order += batch.subject.property + ' ';
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3U);
}

/// A benchmark of a function that is right for the judge's small problems; its timed calls are others.
/// So many are kept, at random, that both forms are among them but once in 2^39 runs.
std::string benchmark(const std::string& body) {
  return "import sys\nsys.path.insert(0, '" + source_folder() +
         "/core/adapters/python')\nimport attest\nimport numpy\n"
         "def mine(q, k, v, mask=None, scale=None, is_causal=False):\n"
         "    s = q @ k.swapaxes(-1, -2) * numpy.float32(scale or q.shape[-1] ** -0.5)\n"
         "    if is_causal: s = numpy.where(numpy.tri(*s.shape[-2:], dtype=bool), s, numpy.float32(-numpy.inf))\n"
         "    w = numpy.exp(s - s.max(-1, keepdims=True))\n"
         "    out = (w / w.sum(-1, keepdims=True)) @ v\n" +
         body +
         "    return out\n"
         "mine = attest.observe(mine, 'calls', most=40)\n"
         "draw = numpy.random.default_rng(5)\n"
         "def tensor(*shape): return draw.standard_normal(shape, numpy.float32)\n"
         "for call in range(200):\n"
         "    mine(tensor(1, 2, 40, 16), tensor(1, 2, 40, 16), tensor(1, 2, 40, 16), is_causal=call % 2 == 0)\n"
         "assert mine.calls == 200 and not mine.left_out, mine.left_out\n";
}

TEST(JudgeProgram, JudgesTheCallsThatCount) {
  const fake::Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_contract(folder);
  write_file_atomically(folder / "right.py", benchmark(""));
  write_file_atomically(folder / "wrong.py", benchmark("    if q.shape[2] == 40: out[:, :, -1] = v[:, :, -1]\n"));
  expect_status(folder, "/usr/bin/python3 right.py && mv calls right && /usr/bin/python3 wrong.py && mv calls wrong");
  const std::string right = output_of(folder, "$attest judge --contract small.json --captured right --out one", 4);
  // One of the contract's two shapes was never called.
  EXPECT_THAT(right, Says("judged 2 of 4 shapes", "UNDECIDED", "40 cases"));
  EXPECT_LE(judgement_of(folder, "one")["worst"], 1.0);
  const std::string wrong = output_of(folder, "$attest judge --contract small.json --captured wrong --out two", 1);
  EXPECT_THAT(wrong, Says("FAIL", "40 cases violate the contract"));
  // The same call twice, answered rightly and then wrongly.
  expect_status(folder,
                "mkdir twice && cp right/call-0000.safetensors twice/a.safetensors && cp twice/a.safetensors "
                "twice/b.safetensors && /usr/bin/python3 -c \"import json, struct; "
                "data = bytearray(open('twice/b.safetensors', 'rb').read()); "
                "head = 8 + struct.unpack('<Q', data[:8])[0]; "
                "begin, end = json.loads(data[8:head])['found']['data_offsets']; "
                "data[head + begin:head + end] = bytes(end - begin); "
                "open('twice/b.safetensors', 'wb').write(data)\"");
  EXPECT_THAT(output_of(folder, "$attest judge --contract small.json --captured twice --out three", 1),
              Says("FAIL", "1 cases violate the contract"));
  // One call beside the forty has columns that the contract is not about.
  EXPECT_THAT(right, NeverSays("outside"));
  EXPECT_EQ(judgement_of(folder, "one")["outside"], 0);
  expect_status(folder,
                "sed 's/40, 16/40, 24/g' right.py > wide.py && /usr/bin/python3 wide.py && "
                "cp calls/call-0000.safetensors right/wide.safetensors && "
                "sed 's/\"min_queries\": 1/&, \"head_dims\": [8, 16]/' small.json > narrow.json");
  EXPECT_THAT(output_of(folder, "$attest judge --contract narrow.json --captured right --out four", 4),
              Says("1 of 41 calls are outside the contract and were not judged", "40 cases"));
  EXPECT_EQ(judgement_of(folder, "four")["outside"], 1);
  EXPECT_THAT(one_line_of(folder, "mkdir none; $attest judge --contract small.json --captured none", 2),
              Says("attest.observe"));
}

/// A kernel that is right for twelve seconds, in which its cases are done.
TEST(JudgeProgram, AsksAgainAfterASilence) {
  const fake::Folder folder;
  if (!has_numpy(folder)) GTEST_SKIP() << "Python has no numpy";
  write_python(
      folder, "mine",
      "import time\nbegun = time.monotonic()\n"
      "def attention(q, k, v, causal='none', scale=1.0):\n"
      "    s = q @ k.swapaxes(-1, -2) * numpy.float32(scale)\n"
      "    if causal != 'none': s = numpy.where(numpy.tri(*s.shape[-2:], dtype=bool), s, numpy.float32(-numpy.inf))\n"
      "    w = numpy.exp(s - s.max(-1, keepdims=True))\n"
      "    late = time.monotonic() - begun > 12\n"
      "    return (w / w.sum(-1, keepdims=True)) @ (0 * v if late else v)\n",
      "'dtypes': ['f32'], 'causal': ['top-left']");
  const std::string judge =
      "$attest judge --contract small.json --kernel 'exec:/usr/bin/python3 mine.py' --no-walls --jobs 1 --fail-fast --quiet --out ";
  write_contract(folder, R"("cases": 16, "other_shapes": false, )");
  // No walls stand, so that it is no pass either.
  expect_status(folder, judge + "short", 4);
  write_contract(folder, R"("cases": 16, "other_shapes": false, "watch": "14s", )");
  expect_status(folder, judge + "long", 1);
}

/// A task in KernelBench's manner.
void write_model(const fake::Folder& folder, const std::string& answer) {
  write_file_atomically(
      folder / "model_new.py",
      "import torch\n"
      "class ModelNew(torch.nn.Module):\n"
      "    def __init__(self, factor):\n"
      "        super().__init__()\n"
      "        self.factor = factor\n"
      "    def forward(self, Q, K, V):\n"
      "        weights = torch.softmax(Q @ K.transpose(-1, -2) * self.factor / Q.shape[-1] ** 0.5, -1)\n"
      "        return " +
          answer +
          "\n"
          "def get_init_inputs(): return [1.0]\n");
}

TEST(JudgeProgram, JudgesAModelNew) {
  const fake::Folder folder;
  if (shell(folder, "/usr/bin/python3 -c 'import torch'").status != 0) GTEST_SKIP() << "torch cannot be imported";
  if (const std::string why = why_no_walls(Walls{}); !why.empty()) GTEST_SKIP() << why;
  // Behind the walls of a judge who is root a kernel is another user.
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  write_file_atomically(folder / "small.json", R"({"schema": "attest-contract/1", "name": "small", "files": ["."],
    "cases": 40, "kernel": {"dtypes": ["f32"], "masks": [], "scale": "inv-sqrt-dk",
                            "limits": {"min_keys": 1, "min_queries": 1}},
    "shapes": ["1,2,2,40,40,16"]})");
  const std::string judge =
      "$attest judge --contract small.json --kernel 'exec:/usr/bin/python3 -m attest_kernelbench model_new.py' --quiet "
      "--jobs 1 --out ";
  write_model(folder, "weights @ V");
  EXPECT_THAT(output_of(folder, judge + "right"), Says("PASS  model_new.py", "walls"));
  write_model(folder, "0 * (weights @ V)");
  EXPECT_THAT(output_of(folder, judge + "wrong", 1), Says("FAIL  model_new.py"));
  // What forward does not name is a refusal.
  write_model(folder, "weights @ V");
  write_contract(folder, R"("cases": 20, )");
  EXPECT_THAT(output_of(folder, judge + "refusing", 1), Says("FAIL  model_new.py"));
}

TEST(JudgeProgram, TakesAContractFromAKernelThatIsTrusted) {
  const fake::Folder folder;
  const std::string told =
      output_of(folder, "$attest probe --kernel builtin:two-pass --dtype f32 --contract trusted.json");
  EXPECT_THAT(told, Says("contract: trusted.json"));
  json contract = parsed_json(read_file(folder / "trusted.json"));
  EXPECT_EQ(contract["name"], "two-pass");
  EXPECT_GE(contract["shapes"].size(), 3U);
  contract["kernel"]["dtypes"] = {"f32"};
  contract["kernel"].erase("promises");
  contract["kernel"]["arithmetic"] = {{"f32", contract["kernel"]["arithmetic"]["f32"]}};
  contract["shapes"] = {contract["shapes"][0], contract["shapes"][1]};
  contract["cases"] = 100;
  write_file_atomically(folder / "trusted.json", contract.dump());
  // By its own contract it passes, and one that promises less does not.
  expect_status(folder, "$attest judge --contract trusted.json --kernel builtin:two-pass --quiet --out own");
  // Of the one case that this seed draws of a cell the definition says nothing: another is asked.
  expect_status(folder,
                "$attest judge --contract trusted.json --kernel builtin:two-pass --quiet --out excused "
                "--seed 8906109157965731842");
  expect_status(folder, "$attest judge --contract trusted.json --kernel fault:scale-ignored --quiet --out other", 1);
}

TEST(JudgeProgram, SaysWhatAnotherUserMayNotRead) {
  const fake::Folder folder;
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user's kernels are that user's";
  write_contract(folder);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  write_file_atomically(folder / "mine.py", "");
  EXPECT_THAT(one_line_of(folder, "$attest judge --contract small.json --kernel 'exec:python3 mine.py'", 2),
              Says("may be read by its owner alone", "chmod o+rx", "another user"));
}

TEST(JudgeProgram, AnswersMistakesInOneLine) {
  const fake::Folder folder;
  write_contract(folder);
  EXPECT_THAT(one_line_of(folder, "$attest judge --kernel builtin:flash", 2), Says("--contract is missing"));
  EXPECT_THAT(one_line_of(folder, "$attest judge --contract small.json", 2), Says("--kernel is missing"));
  EXPECT_THAT(one_line_of(folder, "$attest judge --contract flash-bf61 --kernel builtin:flash", 2),
              Says("did you mean \"flash-bf16\"?"));
  EXPECT_THAT(one_line_of(folder, "$attest judge --contract small.json --kernel 'builtin:*' --no-walls", 2),
              Says("attest judge judges one"));
  EXPECT_THAT(one_line_of(folder, "$attest judge --print-contract x", 2), Says("known: "));
  EXPECT_THAT(output_of(folder, "$attest judge --print-contract flash-bf16"), Says("attest-contract/1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "attest-run-001"));
}

}  // namespace
}  // namespace attest
