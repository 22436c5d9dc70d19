// attest check --baseline, attest compare and the page's section, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using testing::HasSubstr;

std::string check(const std::string& kernel, const std::string& rest) {
  return "$attest check --kernel " + kernel +
         " --dtype f32 --property attention.oracle --property attention.linear-in-values --jobs 1 " + rest + ' ';
}

TEST(Baseline, AnEqualRunPassesAndASmallerOrAWorseOneDoesNot) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 200 --out base")).status, 0);
  const ShellResult equal =
      shell(folder, check("builtin:flash", "--cases 200 --baseline base/tolerances.json --out equal"));
  EXPECT_EQ(equal.status, 0) << equal.output;
  EXPECT_THAT(equal.output, HasSubstr("\nbaseline: 0 worse, 0 better, of 2 properties that both runs have "));
  EXPECT_THAT(read_file(folder / "equal/report.html"), HasSubstr("<section id=\"changes\"><h2>What changed</h2>"));
  EXPECT_THAT(
      read_file(folder / "equal/summary.md"),
      HasSubstr("\n### What changed\n\nAgainst `base/tolerances.json`: 0 worse, 0 better, of 2 properties that both "
                "runs have.\n\nNothing lies beyond the noise between two runs of one kernel: "));
  const ShellResult other_seed =
      shell(folder, check("builtin:flash", "--cases 250 --seed 2 --baseline base --out other"));
  EXPECT_EQ(other_seed.status, 0) << other_seed.output;
  const ShellResult smaller = shell(folder, check("builtin:flash", "--cases 100 --quiet --baseline base --out small"));
  EXPECT_EQ(smaller.status, 1);
  EXPECT_THAT(smaller.output, HasSubstr("WORSE builtin:flash in f32: 2 properties had fewer cases"));
  EXPECT_EQ(lines_in(smaller.output), 1) << smaller.output;
  const ShellResult wrong = shell(
      folder, check("builtin:flash --kernel fault:scale-of-all-heads", "--cases 200 --baseline base --out wrong"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.output, HasSubstr("NOTE fault:scale-of-all-heads in f32: is not part of the baseline"));
}

TEST(Baseline, AComparisonOfTwoRunsIsWrittenAsTextJsonAndPage) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 200 --out base")).status, 0);
  // Fewer, but of every kind: the dozen long cases stand among them.
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 100 --out small")).status, 0);
  const ShellResult text = shell(folder, "$attest compare base small");
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.output, HasSubstr("1 worse, 0 better, of 2 properties that both runs have\nThe noise between "));
  EXPECT_EQ(shell(folder, "$attest compare small base/tolerances.json").status, 0) << "more cases are no loss";
  EXPECT_EQ(shell(folder, "$attest compare base small --json -o c.json").status, 1);
  EXPECT_THAT(read_file(folder / "c.json"), HasSubstr("{\"schema\":\"attest-comparison/1\",\"worse\":1,"));
  EXPECT_EQ(shell(folder, "$attest report small --baseline base -o page.html").status, 0);
  EXPECT_THAT(read_file(folder / "page.html"), HasSubstr("2 properties had fewer cases"));
  // Without a page, too.
  EXPECT_EQ(shell(folder, "$attest report small --baseline base --summary s.md --junit j.xml").status, 0);
  EXPECT_THAT(read_file(folder / "j.xml"),
              HasSubstr("<failure message=\"WORSE builtin:flash in f32: 2 properties had"));
  EXPECT_THAT(read_file(folder / "s.md"), HasSubstr("\n- ❌ worse: `builtin:flash` in `f32`: `2 properties had fewer"));
}

/// The words stand alike in the three places where a run says what changed.
TEST(Baseline, IsToldInTheSameWordsByTerminalSummaryAndPage) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 60 --out base")).status, 0);
  const ShellResult run = shell(folder, check("builtin:flash", "--cases 40 --baseline base --out run"));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("\nheld, and worse than the baseline: "));
  EXPECT_THAT(read_file(folder / "run/summary.md"),
              testing::StartsWith("## ❌ Attest: held, and worse than the baseline\n"));
  EXPECT_THAT(read_file(folder / "run/report.html"), HasSubstr("<title>Attest: held, and worse than the baseline<"));
  const std::size_t counts = run.output.find("\nbaseline: 1 worse, "), noise = run.output.find("\nThe noise between");
  ASSERT_NE(counts, std::string::npos) << run.output;
  ASSERT_NE(noise, std::string::npos) << run.output;
  const std::string counted = run.output.substr(counts + 11, run.output.find(" (base)", counts) - counts - 11);
  const std::string band = run.output.substr(noise + 1, run.output.find('\n', noise + 1) - noise - 1);
  for (const char* file : {"run/summary.md", "run/report.html"}) {
    const std::string text = read_file(folder / file);
    EXPECT_THAT(text, HasSubstr(counted + "."));
    EXPECT_THAT(text, HasSubstr(band));
    EXPECT_THAT(text, HasSubstr("2 properties had fewer cases than in the baseline"));
  }
}

TEST(Baseline, IsRefusedBeforeTheRunWhereItCannotServe) {
  const fake::Folder folder;
  expect_refused("check --baseline absent.json", "absent.json");
  expect_refused("check --baseline x --fail-fast", "--baseline and --fail-fast exclude each other");
  expect_refused("check --baseline x --shard 0/2", "attest merge the parts, then attest compare");
  expect_refused("compare one", "takes two RUNs, the earlier one first, not 1");
  expect_refused("report run -o x --json --baseline x", "attest compare BASELINE RUN --json");
  const ShellResult nothing =
      shell(folder, "echo '{\"schema\":\"attest-tolerances/1\",\"subjects\":[]}' > empty.json; " +
                        check("builtin:flash", "--cases 5 --baseline empty.json --out run") +
                        "; s=$?; test ! -e run && exit $s");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_EQ(lines_in(nothing.output), 1);
  EXPECT_THAT(nothing.output, HasSubstr("--baseline empty.json: the baseline judged no case"));
}

}  // namespace
}  // namespace attest
