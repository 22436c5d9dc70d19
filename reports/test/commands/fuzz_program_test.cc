// attest fuzz as a user meets it: findings and how they are replayed, what a campaign leaves, exit statuses, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "fuzz/libfuzzer.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in " << text;
}

/// Of all files of a folder.
std::size_t lines_in(const std::filesystem::path& path) {
  std::size_t lines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string text = read_file(entry.path());
    lines += static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
  return lines;
}

TEST(FuzzProgram, FindsShrinksAndReplaysWhatAKernelDoesWrong) {
  const Folder folder;
  const ShellResult result =
      shell(folder, "$attest fuzz --kernel fault:sum-not-rescaled --dtype f32 --runs 2000 --jobs 1 --out run --quiet");
  EXPECT_EQ(result.status, 1) << result.output;
  expect_has(result.output, "VIOLATED attention.oracle by fault:sum-not-rescaled in f32");
  const Journal journal = read_journal(folder / "run");
  EXPECT_TRUE(journal.run->fuzz);
  ASSERT_FALSE(journal.findings.empty());
  for (const FindingRecord& finding : journal.findings) {
    const ShellResult replay = shell(folder, "$attest replay run/" + finding.case_file);
    EXPECT_EQ(replay.status, 1) << replay.output;
  }
  EXPECT_EQ(summary_of(folder, "run")["verdict"], "violated");
}

TEST(FuzzProgram, SavesTheWorstKnownCaseOfAKernelThatIsRight) {
  const Folder folder;
  const ShellResult result =
      shell(folder, "$attest fuzz --kernel builtin:flash --dtype f32,bf16 --runs 1500 --jobs 2 --out run");
  EXPECT_EQ(result.status, 0) << result.output;
  expect_has(result.output, "worst of builtin:flash in f32: utilisation 0.");
  const auto worst = summary_of(folder, "run")["kernels"][0]["properties"][0]["worst"];
  ASSERT_TRUE(worst["case"].is_string());
  const ShellResult replay = shell(folder, "$attest replay run/" + worst["case"].get<std::string>());
  EXPECT_EQ(replay.status, 0) << replay.output;
  EXPECT_TRUE(std::filesystem::exists(folder / "run/report.html"));
}

TEST(FuzzProgram, GoesOnWithACampaignThatWasKilled) {
  const Folder folder;
  const ShellResult killed = shell(folder,
                                   "$attest fuzz --kernel builtin:flash --dtype f32 --time 60s --jobs 1 --out run "
                                   "--quiet & sleep 2.5; kill -9 $!; wait $!; exit 0");
  ASSERT_EQ(killed.status, 0) << killed.output;
  const Journal before = read_journal(folder / "run");
  EXPECT_TRUE(before.unfinished());
  std::int64_t runs = 0;
  for (const BatchRecord& batch : before.batches) runs += batch.tally.cases();
  // It loses at most the last second.
  EXPECT_GT(runs, 100);
  EXPECT_FALSE(std::filesystem::is_empty(folder / "run/archive"));
  const ShellResult resumed =
      shell(folder, "$attest fuzz --kernel builtin:flash --dtype f32 --time 500ms --jobs 1 --out run --resume");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  std::int64_t all = 0;
  const nlohmann::json summary = summary_of(folder, "run");
  for (const auto& property : summary["kernels"][0]["properties"]) all += property["cases"].get<std::int64_t>();
  EXPECT_GT(all, runs);
}

TEST(FuzzProgram, EndsAtAnInterruptWithAllThatItFound) {
  const Folder folder;
  const ShellResult result = shell(
      folder,
      "$attest fuzz --kernel builtin:flash --dtype f32 --time 60s --jobs 2 --out run & sleep 1; kill -INT $!; wait $!");
  EXPECT_EQ(result.status, 130) << result.output;
  EXPECT_FALSE(read_journal(folder / "run").unfinished());
  EXPECT_TRUE(read_journal(folder / "run").interrupted());
}

TEST(FuzzProgram, SearchesWhatItIsToldTo) {
  const Folder folder;
  const auto properties = [&](const std::string& objective) {
    const ShellResult result = shell(folder,
                                     "$attest fuzz --kernel builtin:two-pass --dtype f32 --runs 20 --jobs 1 --out run "
                                     "--overwrite --quiet " +
                                         objective);
    EXPECT_EQ(result.status, 0) << result.output;
    const nlohmann::json summary = summary_of(folder, "run");
    std::vector<std::string> names;
    for (const auto& property : summary["kernels"][0]["properties"]) names.push_back(property["name"]);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(properties(""), (Names{"attention.oracle", "multihead.oracle"}));
  EXPECT_EQ(properties("--objective nonfinite --objective row-sum"),
            (Names{"attention.finite", "multihead.finite", "softmax.rows-sum-to-one"}));
  EXPECT_EQ(properties("--objective law:causal.no-leak"), Names{"causal.no-leak"});
  EXPECT_GT(properties("--objective 'law:masked.*'").size(), 3U);
}

TEST(FuzzProgram, JoinsShardsIntoAFolderThatCanBeReplayedAndResumed) {
  const Folder folder;
  const std::string fuzz = "$attest fuzz --kernel fault:sum-not-rescaled --dtype f32 --jobs 1 --quiet ";
  for (const char* const shard : {"0/3", "1/3", "2/3"}) {
    const std::string out = fmt::format("part-{}", shard[0]);
    EXPECT_EQ(shell(folder, fuzz + "--runs 3000 --shard " + shard + " --out " + out).status, 1);
  }
  const ShellResult merged = shell(folder, "$attest merge part-2 part-0 part-1 -o whole/");
  ASSERT_EQ(merged.status, 0) << merged.output;
  const Journal journal = read_journal(folder / "whole");
  ASSERT_EQ(journal.batches.size(), 1U) << "each of the runs once";
  EXPECT_EQ(journal.batches[0].tally.cases(), 3000);
  double worst = 0;
  std::size_t cells = 0;
  for (const char* const part : {"part-0", "part-1", "part-2"}) {
    const auto known = summary_of(folder, part)["kernels"][0]["properties"][0]["worst"]["utilisation"];
    worst = std::max(worst, known.get<double>());
    cells = std::max(cells, lines_in(folder / part / "archive"));
  }
  EXPECT_EQ(journal.batches[0].tally.worst_utilisation, worst);
  EXPECT_GT(lines_in(folder / "whole/archive"), cells);
  for (const FindingRecord& finding : journal.findings)
    EXPECT_EQ(shell(folder, "$attest replay whole/" + finding.case_file).status, 1);
  const auto replayed = summary_of(folder, "whole")["kernels"][0]["properties"][0]["worst"]["case"];
  EXPECT_EQ(shell(folder, "$attest replay whole/" + replayed.get<std::string>()).status, 1);
  EXPECT_EQ(shell(folder, fuzz + "--runs 3100 --resume --out whole").status, 1);
  std::int64_t runs = 0;
  for (const BatchRecord& batch : read_journal(folder / "whole").batches) runs += batch.tally.cases();
  EXPECT_EQ(runs, 3100);

  const ShellResult other = shell(folder, fuzz + "--runs 4000 --resume --shard 1/3 --out part-0");
  EXPECT_EQ(other.status, 2);
  expect_has(other.output, "was run with --shard 0/3; resume it with the same");
  const ShellResult again = shell(folder, "$attest merge part-0 part-1 -o whole/");
  EXPECT_EQ(again.status, 2);
  expect_has(again.output, "holds a run already");
}

TEST(FuzzProgram, TakesAnEngineByName) {
  const Folder folder;
  const std::string fuzz = "$attest fuzz --kernel builtin:flash --dtype f32 --runs 1000 --quiet ";
  const ShellResult result = shell(folder, fuzz + "--engine libfuzzer --jobs 2 --out run");
  if (has_libfuzzer()) {
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(read_journal(folder / "run").batches.empty(), false);
    EXPECT_EQ(result.output.find("INFO:"), std::string::npos) << "what libFuzzer says of itself";
  } else {
    EXPECT_EQ(result.status, 2);
    expect_has(result.output, "install libclang-rt-19-dev");
  }
  const ShellResult typo = shell(folder, fuzz + "--engine libfuzer");
  EXPECT_EQ(typo.status, 2);
  expect_has(typo.output, "unknown --engine \"libfuzer\"; did you mean \"libfuzzer\"?");
}

TEST(FuzzProgram, ComparesWithAnotherKernel) {
  const Folder folder;
  const ShellResult result = shell(folder,
                                   "$attest fuzz --kernel fault:mask-not-scaled --against builtin:two-pass --dtype f32 "
                                   "--runs 3000 --jobs 1 --out run --quiet");
  EXPECT_EQ(result.status, 1) << result.output;
  const Journal journal = read_journal(folder / "run");
  ASSERT_FALSE(journal.findings.empty());
  const ShellResult replay = shell(folder, "$attest replay run/" + journal.findings.front().case_file);
  EXPECT_EQ(replay.status, 1) << replay.output;
}

TEST(FuzzProgram, RefusesMistakesInOneLine) {
  expect_refused("fuzz", "needs --kernel KERNEL");
  expect_refused("fuzz --kernel builtin:flsh", "did you mean \"builtin:flash\"?");
  expect_refused("fuzz --kernel builtin:flash --objective eror", "did you mean \"error\"?");
  expect_refused("fuzz --kernel builtin:flash --objective law:atention.oracle", "did you mean \"attention.oracle\"?");
  expect_refused("fuzz --kernel builtin:flash --objective law:attention.expectation-sampling", "statistical");
  expect_refused("fuzz --kernel builtin:flash --runs 0", "at least 1");
  expect_refused("fuzz --kernel builtin:flash --tme 3s", "did you mean \"--time\"?");
  expect_refused("fuzz --kernel builtin:flash --dtype f31", "did you mean \"f32\"?");
  expect_refused("fuzz --kernel builtin:flash --resume", "--resume needs --out");
  expect_refused("fuzz --kernel fault:mask-scaled --objective law:multihead.torch-case --runs 5 --out run",
                 "nothing can be checked", 3);
}

TEST(FuzzProgram, TestsItselfOnPlantedFaults) {
  const Folder folder;
  const ShellResult result =
      shell(folder,
            "$attest fuzz --self-test --kernel 'fault:all-zeros' --kernel fault:sum-not-rescaled --runs 500 "
            "--quiet --out table");
  EXPECT_EQ(result.status, 0) << result.output;
  expect_has(result.output, "| all-zeros | attention.oracle | f32 | 5/5 |");
  expect_has(result.output, "2 faults, 5 seeds, at most 500 runs each: 2 found on every seed guided");
  expect_has(read_file(folder / "table/self-test.md"), "| sum-not-rescaled |");
  expect_refused("fuzz --self-test --kernel fault:all-zeroes", "did you mean \"fault:all-zeros\"?");
}

TEST(FuzzProgram, KeepsCampaignsAndChecksApart) {
  const Folder folder;
  const std::string fuzz = "$attest fuzz --kernel builtin:flash --dtype f32 --runs 50 --jobs 1 --quiet --out run";
  const std::string check =
      "$attest check --kernel builtin:flash --property attention.oracle --dtype f32 --cases 50 --quiet --out ";
  EXPECT_EQ(shell(folder, fuzz).status, 0);
  ShellResult result = shell(folder, fuzz);
  EXPECT_EQ(result.status, 2) << result.output;
  expect_has(result.output, "holds a run already");
  result = shell(folder, check + "run --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  expect_has(result.output, "resume it with attest fuzz");
  EXPECT_EQ(shell(folder, check + "checked").status, 0);
  result = shell(folder, "$attest fuzz --kernel builtin:flash --dtype f32 --runs 60 --out checked --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  expect_has(result.output, "holds no fuzz campaign");
  result = shell(folder, "$attest merge run checked -o merged.jsonl");
  EXPECT_EQ(result.status, 2) << result.output;
  expect_has(result.output, "one is a fuzz campaign");
  result = shell(folder, fuzz + " --seed 2 --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  expect_has(result.output, "--seed 1");
}

TEST(FuzzProgram, KeepsTheMisbehaviourOfALibrary) {
  struct Misbehaviour {
    const char* library;
    const char* kind;
    const char* options = "";
  };
  for (const Misbehaviour& wrong : {Misbehaviour{"crashes", "died"}, Misbehaviour{"leaves_unwritten", "failed"},
                                    Misbehaviour{"hangs", "timed-out", "--timeout 200ms"}}) {
    SCOPED_TRACE(wrong.library);
    const Folder folder;
    const ShellResult result =
        shell(folder, std::string("$attest fuzz --kernel " ATTEST_TEST_LIBRARIES "/library_") + wrong.library +
                          ".so --dtype f64 --runs 6 --jobs 1 --out run " + wrong.options);
    EXPECT_EQ(result.status, 1) << result.output;
    const Journal journal = read_journal(folder / "run");
    ASSERT_FALSE(journal.findings.empty()) << result.output;
    EXPECT_EQ(journal.findings.front().kind(), wrong.kind);
  }
}

}  // namespace
}  // namespace attest
