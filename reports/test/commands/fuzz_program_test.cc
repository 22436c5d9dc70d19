// attest fuzz as a user meets it: findings and how they are replayed, what a campaign leaves, exit statuses, mistakes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "core/test/places.h"
#include "fuzz/libfuzzer.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

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
  EXPECT_THAT(
      output_of(folder,
                "$attest fuzz --kernel fault:sum-not-rescaled --dtype f32 --runs 2000 --jobs 1 --out run --quiet", 1),
      Says("VIOLATED attention.oracle by fault:sum-not-rescaled in f32"));
  const Journal journal = read_journal(folder / "run");
  EXPECT_TRUE(journal.run->fuzz);
  ASSERT_FALSE(journal.findings.empty());
  for (const FindingRecord& finding : journal.findings) {
    expect_status(folder, "$attest replay run/" + finding.case_file, 1);
  }
  const auto summary = summary_of(folder, "run");
  EXPECT_EQ(summary["verdict"], "violated");
  // What is wrong, told once, with what the kernel answered.
  ASSERT_EQ(summary["causes"].size(), 1U);
  EXPECT_EQ(summary["causes"][0]["properties"], (nlohmann::json{"attention.oracle"}));
  expect_status(folder, "$attest replay run", 1);
  const std::string page = read_file(folder / "run/report.html");
  EXPECT_THAT(page, Says("<section id=\"causes\">"));
  EXPECT_THAT(output_of(folder, "$attest fuzz --kernel fault:bias-sign --dtype f32 --runs 500 --jobs 1 --out again", 1),
              testing::AllOf(Says("  what      "), Says("  smallest  f32"), Says("  replay    attest replay again"),
                             Says("  right     with ")));
  EXPECT_THAT(read_file(folder / "again/report.html"), Says("in the smallest case "));
}

TEST(FuzzProgram, SavesTheWorstKnownCaseOfAKernelThatIsRight) {
  const Folder folder;
  EXPECT_THAT(output_of(folder, "$attest fuzz --kernel builtin:flash --dtype f32,bf16 --runs 1500 --jobs 2 --out run"),
              Says("worst of builtin:flash in f32: utilisation 0."));
  const auto worst = summary_of(folder, "run")["kernels"][0]["properties"][0]["worst"];
  ASSERT_TRUE(worst["case"].is_string());
  expect_status(folder, "$attest replay run/" + worst["case"].get<std::string>());
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
  expect_status(folder, "$attest fuzz --kernel builtin:flash --dtype f32 --time 500ms --jobs 1 --out run --resume");
  std::int64_t all = 0;
  const nlohmann::json summary = summary_of(folder, "run");
  for (const auto& property : summary["kernels"][0]["properties"]) all += property["cases"].get<std::int64_t>();
  EXPECT_GT(all, runs);
}

TEST(FuzzProgram, EndsAtAnInterruptWithAllThatItFound) {
  const Folder folder;
  expect_status(
      folder,
      "$attest fuzz --kernel builtin:flash --dtype f32 --time 60s --jobs 2 --out run & sleep 1; kill -INT $!; wait $!",
      130);
  EXPECT_FALSE(read_journal(folder / "run").unfinished());
  EXPECT_TRUE(read_journal(folder / "run").interrupted());
}

TEST(FuzzProgram, SearchesWhatItIsToldTo) {
  const Folder folder;
  const auto properties = [&](const std::string& objective) {
    expect_status(folder,
                  "$attest fuzz --kernel builtin:two-pass --dtype f32 --runs 20 --jobs 1 --out run "
                  "--overwrite --quiet " +
                      objective);
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
    expect_status(folder, fmt::format("{}--runs 3000 --shard {} --out {}", fuzz, shard, out), 1);
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
    expect_status(folder, "$attest replay whole/" + finding.case_file, 1);
  const auto replayed = summary_of(folder, "whole")["kernels"][0]["properties"][0]["worst"]["case"];
  expect_status(folder, "$attest replay whole/" + replayed.get<std::string>(), 1);
  expect_status(folder, fuzz + "--runs 3100 --resume --out whole", 1);
  std::int64_t runs = 0;
  for (const BatchRecord& batch : read_journal(folder / "whole").batches) runs += batch.tally.cases();
  EXPECT_EQ(runs, 3100);
  EXPECT_THAT(output_of(folder, fuzz + "--runs 4000 --resume --shard 1/3 --out part-0", 2),
              Says("was run with --shard 0/3; resume it with the same"));
  EXPECT_THAT(output_of(folder, "$attest merge part-0 part-1 -o whole/", 2), Says("holds a run already"));
}

TEST(FuzzProgram, TakesAnEngineByName) {
  const Folder folder;
  const std::string fuzz = "$attest fuzz --kernel builtin:flash --dtype f32 --runs 1000 --quiet ";
  const ShellResult result = shell(folder, fuzz + "--engine libfuzzer --jobs 2 --out run");
  if (has_libfuzzer()) {
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(read_journal(folder / "run").batches.empty(), false);
    EXPECT_THAT(result.output, NeverSays("INFO:")) << "what libFuzzer says of itself";
  } else {
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.output, Says("install libclang-rt-19-dev"));
  }
  EXPECT_THAT(output_of(folder, fuzz + "--engine libfuzer", 2),
              Says("unknown --engine \"libfuzer\"; did you mean \"libfuzzer\"?"));
}

TEST(FuzzProgram, ComparesWithAnotherKernel) {
  const Folder folder;
  expect_status(folder,
                "$attest fuzz --kernel fault:mask-not-scaled --against builtin:two-pass --dtype f32 "
                "--runs 3000 --jobs 1 --out run --quiet",
                1);
  const Journal journal = read_journal(folder / "run");
  ASSERT_FALSE(journal.findings.empty());
  expect_status(folder, "$attest replay run/" + journal.findings.front().case_file, 1);
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
  EXPECT_THAT(
      output_of(folder,
                "$attest fuzz --self-test --kernel 'fault:all-zeros' --kernel fault:sum-not-rescaled --runs 500 "
                "--quiet --out table"),
      Says("| all-zeros | attention.oracle | f32 | 5/5 |",
           "2 faults, 5 seeds, at most 500 runs each: 2 found on every seed guided"));
  EXPECT_THAT(read_file(folder / "table/self-test.md"), Says("| sum-not-rescaled |"));
  expect_refused("fuzz --self-test --kernel fault:all-zeroes", "did you mean \"fault:all-zeros\"?");
}

TEST(FuzzProgram, KeepsCampaignsAndChecksApart) {
  const Folder folder;
  const std::string fuzz = "$attest fuzz --kernel builtin:flash --dtype f32 --runs 50 --jobs 1 --quiet --out run";
  const std::string check =
      "$attest check --kernel builtin:flash --property attention.oracle --dtype f32 --cases 50 --quiet --out ";
  expect_status(folder, fuzz);
  ShellResult result = shell(folder, fuzz);
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, Says("holds a run already"));
  result = shell(folder, check + "run --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, Says("resume it with attest fuzz"));
  expect_status(folder, check + "checked");
  result = shell(folder, "$attest fuzz --kernel builtin:flash --dtype f32 --runs 60 --out checked --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, Says("holds no fuzz campaign"));
  result = shell(folder, "$attest merge run checked -o merged.jsonl");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, Says("one is a fuzz campaign"));
  result = shell(folder, fuzz + " --seed 2 --resume");
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_THAT(result.output, Says("--seed 1"));
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
    const std::string result =
        output_of(folder,
                  std::string("$attest fuzz --kernel " + test_library_folder() + "/library_") + wrong.library +
                      ".so --dtype f64 --runs 6 --jobs 1 --out run " + wrong.options,
                  1);
    const Journal journal = read_journal(folder / "run");
    ASSERT_FALSE(journal.findings.empty()) << result;
    EXPECT_EQ(journal.findings.front().kind(), wrong.kind);
  }
}

}  // namespace
}  // namespace attest
