// attest check --baseline, attest compare and the page's section, as a user runs them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

std::string check(const std::string& kernel, const std::string& rest) {
  return "$attest check --verbose --kernel " + kernel +
         " --dtype f32 --property attention.oracle --property attention.linear-in-values --jobs 1 " + rest + ' ';
}

TEST(Baseline, AnEqualRunPassesAndASmallerOrAWorseOneDoesNot) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 200 --out base")).status, 0);
  EXPECT_THAT(output_of(folder, check("builtin:flash", "--cases 200 --baseline base/tolerances.json --out equal")),
              Says("\nbaseline: 0 worse, 0 better, of 2 properties that both runs have\n"));
  EXPECT_THAT(read_file(folder / "equal/report.html"), Says("<section id=\"changes\"><h2>What changed</h2>"));
  EXPECT_THAT(read_file(folder / "equal/summary.md"),
              Says("\n### What changed\n\nAgainst `base/tolerances.json`: 0 worse, 0 better, of 2 properties that both "
                   "runs have.\n\nNothing lies beyond the noise between two runs of one kernel: "));
  expect_status(folder, check("builtin:flash", "--cases 200 --seed 2 --baseline base --out other"));
  // A run of another kernel beside it is no baseline for this one alone.
  ASSERT_EQ(shell(folder, check("builtin:flash --kernel builtin:online", "--cases 200 --out two")).status, 0);
  const std::string smaller =
      output_of(folder, check("builtin:flash", "--cases 200 --quiet --baseline two --out small"), 1);
  EXPECT_THAT(smaller, Says("WORSE builtin:online in f32: is not part of this run any more"));
  EXPECT_EQ(lines_in(smaller), 1) << smaller;
  EXPECT_THAT(
      output_of(folder,
                check("builtin:flash --kernel fault:scale-of-all-heads", "--cases 200 --baseline base --out wrong"), 1),
      Says("NOTE fault:scale-of-all-heads in f32: is not part of the baseline"));
}

TEST(Baseline, AComparisonOfTwoRunsIsWrittenAsTextJsonAndPage) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 200 --out base")).status, 0);
  // Fewer, but of every kind: the dozen long cases stand among them.
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 100 --out small")).status, 0);
  EXPECT_THAT(output_of(folder, "$attest compare base small", 1),
              Says("1 worse, 0 better, of 2 properties that both runs have\nThe noise between "));
  EXPECT_EQ(shell(folder, "$attest compare small base/tolerances.json").status, 0) << "more cases are no loss";
  expect_status(folder, "$attest compare base small --json -o c.json", 1);
  EXPECT_THAT(read_file(folder / "c.json"), Says("{\"schema\":\"attest-comparison/1\",\"worse\":1,"));
  expect_status(folder, "$attest report small --baseline base -o page.html");
  EXPECT_THAT(read_file(folder / "page.html"), Says("2 properties had fewer cases"));
  // Without a page, too.
  expect_status(folder, "$attest report small --baseline base --summary s.md --junit j.xml");
  EXPECT_THAT(read_file(folder / "j.xml"), Says("<failure message=\"WORSE builtin:flash in f32: 2 properties had"));
  EXPECT_THAT(read_file(folder / "s.md"), Says("\n- ❌ worse: `builtin:flash` in `f32`: `2 properties had fewer"));
}

/// The words stand alike in the three places where a run says what changed.
TEST(Baseline, IsToldInTheSameWordsByTerminalSummaryAndPage) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash --kernel builtin:online", "--cases 60 --out base")).status, 0);
  const std::string run = output_of(folder, check("builtin:flash", "--cases 60 --baseline base --out run"), 1);
  EXPECT_THAT(run, Says("\nheld, and worse than the baseline: "));
  EXPECT_THAT(read_file(folder / "run/summary.md"),
              testing::StartsWith("## ❌ Attest: held, and worse than the baseline\n"));
  EXPECT_THAT(read_file(folder / "run/report.html"), Says("<title>Attest: held, and worse than the baseline<"));
  const std::size_t counts = run.find("\nbaseline: 1 worse, "), noise = run.find("\nThe noise between");
  ASSERT_NE(counts, std::string::npos) << run;
  ASSERT_NE(noise, std::string::npos) << run;
  const std::string counted = run.substr(counts + 11, run.find(" (base)", counts) - counts - 11);
  const std::string band = run.substr(noise + 1, run.find('\n', noise + 1) - noise - 1);
  for (const char* file : {"run/summary.md", "run/report.html"}) {
    const std::string text = read_file(folder / file);
    EXPECT_THAT(text, Says(counted + ".", band, "is not part of this run any more"));
  }
}

TEST(Baseline, ATrendIsShownOverMoreThanTwoRuns) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 90 --out a")).status, 0);
  ASSERT_EQ(shell(folder, "cp -r a b && cp -r a c").status, 0);
  const std::string text = output_of(folder, "$attest compare a b c");
  EXPECT_THAT(text, testing::ContainsRegex("^builtin:flash  f32  [^ ]+  worst share 0\\.[0-9]+ to 0"));
  EXPECT_THAT(text, Says("properties that both runs have, from b to c\n"));
  EXPECT_THAT(output_of(folder, "$attest compare a b c --json"), Says("\"trends\":[{\"kernel\":\"builtin:flash\""));
}

TEST(Baseline, SaysHowManyCasesARunHas) {
  const fake::Folder folder;
  ASSERT_EQ(shell(folder, check("builtin:flash", "--cases 90 --out base")).status, 0);
  EXPECT_THAT(output_of(folder, check("builtin:flash", "--baseline base --out same")),
              Says("\nheld: 2 of 2 properties that concern this kernel judged; 176 cases; "));
  for (const char* const other : {"89", "91"}) {
    const std::string cases = fmt::format("--cases {} --baseline base --out other", other);
    EXPECT_THAT(one_line_of(folder, check("builtin:flash", cases) + "; s=$?; test ! -e other && exit $s", 2),
                Says(fmt::format("--cases is {}; the baseline \"base\" has 90 of attention.", other)));
  }
  // One of its properties alone has them, too, and one that it does not have what it has without a baseline.
  EXPECT_THAT(output_of(folder,
                        "$attest check --verbose --kernel builtin:flash --dtype f32 --property attention.one-key "
                        "--baseline base --cases 20 --out another",
                        1),
              Says("WORSE attention.oracle by builtin:flash in f32: is not checked any more"));
}

TEST(Baseline, IsRefusedBeforeTheRunWhereItCannotServe) {
  const fake::Folder folder;
  expect_refused("check --baseline absent.json", "absent.json");
  expect_refused("check --baseline x --fail-fast", "--baseline and --fail-fast exclude each other");
  expect_refused("check --baseline x --shard 0/2", "attest merge the parts, then attest compare");
  expect_refused("compare one", "takes two RUNs or more, the earliest first, not 1");
  expect_refused("report run -o x --json --baseline x", "attest compare BASELINE RUN --json");
  EXPECT_THAT(one_line_of(folder,
                          "echo '{\"schema\":\"attest-tolerances/1\",\"subjects\":[]}' > empty.json; " +
                              check("builtin:flash", "--cases 5 --baseline empty.json --out run") +
                              "; s=$?; test ! -e run && exit $s",
                          2),
              Says("--baseline empty.json: the baseline judged no case"));
}

}  // namespace
}  // namespace attest
