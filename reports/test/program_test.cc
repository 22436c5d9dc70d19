// The program as a user runs it: a process, its output, its exit status and what it leaves.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <set>

#include "core/journal/journal.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/test/cases.h"
#include "core/test/places.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;
using testing::AllOf;

const std::string flash = "--kernel builtin:flash --dtype f32 --property attention.oracle ";

TEST(Program, ByItselfListsItsCommands) {
  const fake::Folder folder;
  const ShellResult result = shell(folder, "$attest 2>error");
  EXPECT_EQ(result.status, 2) << "nothing was tested";
  EXPECT_EQ(result.output, output_of(folder, "$attest --help"));
  EXPECT_THAT(result.output, Says("\n  check "));
  EXPECT_EQ(read_file(folder / "error"), "attest: no command given; those that there are stand above\n");
}

TEST(Program, RefusesACommandLineInOneLine) {
  expect_refused("chekc", "did you mean \"check\"?");
  expect_refused("check --caess 3", "did you mean \"--cases\"?");
  expect_refused("check --cases -3", "--cases is -3; it must be at least 1");
  expect_refused("check --property attention.orcale", "did you mean \"attention.oracle\"?");
  expect_refused("check --kernel builtin:flsh", "did you mean \"builtin:flash\"?");
  expect_refused("check --kernel nothing", "nothing");
  expect_refused("check --kernel builtin:flsh", "did you mean \"builtin:flash\"?\n");
  expect_refused("check --dtype f31", "did you mean \"f32\"?");
  expect_refused("check --dtype ''", "unknown dtype \"\"");
  expect_refused("check --property 'nothing.*'", "attest list --properties");
  expect_refused("check --property causal", "did you mean 'causal.*'?");
  expect_refused("prove --property masked.", "did you mean 'masked.*'?");
  expect_refused("check --property oracle", "did you mean '*.oracle'?");
  expect_refused("check --property attention.oracle,attention.finit", "named \"attention.finit\"; did you mean");
  expect_refused("check --property attention.oracle,", "is named \"\"");
  expect_refused("fuzz --kernel builtin:flash --objective law:causal", "did you mean 'causal.*'?");
  expect_refused("check --kernel flash_torch.py", "did you mean 'exec:python3 flash_torch.py'?");
  expect_refused("check --kernel ./a/flash.js", "did you mean 'exec:node ./a/flash.js'?");
  expect_refused("replay --kernel flash.py x", "there is no such case");
  expect_refused("check --kernel 'python3 flash.py'", "did you mean 'exec:python3 flash.py'?");
  expect_refused("check --dtype bfloat16", "unknown dtype \"bfloat16\"; did you mean \"bf16\"?");
  expect_refused("check --time 60sec", "a number alone is seconds");
  expect_refused("fuzz --timeout 5min", "a number alone is seconds");
  expect_refused("check --out /dev/full", "/dev/full");
  expect_refused("check --out /proc/none", "/proc/none");
  expect_refused("check --case absent.safetensors", "absent.safetensors");
  expect_refused("replay absent.safetensors", "absent.safetensors");
  expect_refused("merge absent -o x", "absent");
  expect_refused("report absent -o x", "absent");
  expect_refused("check --resume --out absent", "holds no run to resume");
}

/// Of every command, and of the benchmarks' programs, which are another project's.
TEST(Program, AnswersAnUnknownOptionInOneLine) {
  for (const char* command : {"init", "check", "list", "replay", "merge", "report", "compare", "tolerance", "probe",
                              "fuzz", "prove", "audit", "bench"})
    expect_refused(joined({command, " --foo"}), joined({"unknown option \"--foo\" of attest ", command}));
  expect_refused("--foo", "unknown option \"--foo\"");
  expect_refused("bench --filter=verdict", "did you mean \"--benchmark_filter\"?");
  for (const char* word : {"verdict", "--foo", "--f"})
    expect_refused(joined({"bench ", word}), joined({"attest: unknown option \"", word,
                                                     "\" of attest bench; attest bench --help lists the options\n"}));
}

TEST(Program, TakesAListOfPropertiesAndATimeInSeconds) {
  const Folder folder;
  expect_status(folder,
                "$attest check --kernel builtin:flash --dtype f32 --property attention.finite,attention.or* --time 60 "
                "--timeout 5 --cases 2 --quiet --out o");
  std::set<std::string> properties;
  const Journal journal = read_journal(folder / "o");
  for (const BatchRecord& batch : journal.batches) properties.insert(batch.subject.property);
  EXPECT_EQ(properties, (std::set<std::string>{"attention.finite", "attention.oracle"}));
}

TEST(Program, SaysWhatItCanDo) {
  const Folder folder;
  expect_status(folder, "$attest --version");
  for (const char* command : {"", "check", "list", "replay", "merge", "report", "bench"}) {
    EXPECT_THAT(output_of(folder, "$attest " + std::string(command) + " --help"), Says("example: attest")) << command;
  }
  const std::string list = output_of(folder, "$attest list --json");
  const auto json = parsed_json(list);
  EXPECT_TRUE(json["kernels"].is_array() && json["properties"].is_array() && json["dtypes"].is_array());
  EXPECT_THAT(shell(folder, "$attest list --properties --markdown").output, Says("| `attention.oracle` |"));
  const std::string tolerances = output_of(folder, "$attest list --tolerances");
  EXPECT_THAT(tolerances, Says("  proved by machine\n    builtin:two-pass, builtin:online, builtin:flash, "));
  EXPECT_THAT(tolerances, Says("proved on paper; by machine but for a maximum taken before scores are stored"));
  EXPECT_THAT(tolerances, Says("proved by machine, in another form than it is computed in: parts merged"));
  for (const auto& line : json["tolerances"]) {
    EXPECT_EQ(line["machine_checked"].get<bool>(), line["beyond"].empty() && line["in_another_form"].empty()) << line;
  }
  expect_status(folder, "$attest list > /dev/full", 2);
}

TEST(Program, RaisesTheAlarmOfEveryGradient) {
  const Folder folder;
  expect_status(folder,
                "$attest check --alarm --kernel builtin:flash --property 'backward.oracle-*' --dtype f32 "
                "--cases 30 --no-large --quiet -o run");
  const auto summary = parsed_json(read_file(folder / "run/summary.json"));
  for (const auto& property : summary["kernels"][0]["properties"]) {
    EXPECT_GT(property["alarm"]["elements"], 0) << property["name"];
  }
}

TEST(Program, ThePageSaysHowATolerancesProofGoes) {
  const Folder folder;
  expect_status(
      folder,
      "$attest check --kernel builtin:flash --kernel control:prescaled-queries --kernel core:cpp_bin_float_50 "
      "--property attention.oracle --dtype f32 --cases 3 --quiet -o run");
  const std::string page = read_file(folder / "run/report.html");
  EXPECT_THAT(page, Says("The tolerance of its arithmetic is proved by machine."));
  EXPECT_THAT(
      page,
      Says("The tolerance of its arithmetic is proved by machine, in another form than it is computed in: queries or "
           "scores that are stored."));
  std::size_t said = 0;
  for (std::size_t at = 0; (at = page.find("The tolerance of its", at)) != std::string::npos; ++at) ++said;
  EXPECT_EQ(said, 2) << "a wider scalar has a tolerance of its own";
}

TEST(Program, TakesEveryOptionOfACheckTogether) {
  const Folder folder;
  const ShellResult result =
      shell(folder,
            "mkdir o && $attest check --kernel builtin:flash --kernel=builtin:online --property 'attention.or*' "
            "--property attention.finite --dtype f32,bf16 --dtype f32 --cases 12 --seed 18446744073709551615 --jobs 3 "
            "--out o --overwrite --shard 1/4 --time 1.5m --fail-fast --timeout 500ms --inconclusive=held --alarm "
            "--memory 1.5GiB --in-process --quiet");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  const Journal journal = read_journal(folder / "o");
  ASSERT_TRUE(journal.run.has_value());
  EXPECT_EQ(journal.run->seed, 18446744073709551615U);
  EXPECT_EQ(journal.run->alarm, 1e-9);
  EXPECT_EQ(journal.meta.front().facts.at("jobs"), "3");
  EXPECT_EQ(journal.meta.front().facts.at("shard"), "1/4");
  std::set<std::string> kernels, properties, dtypes;
  for (const BatchRecord& batch : journal.batches) {
    kernels.insert(batch.subject.kernel);
    properties.insert(batch.subject.property);
    dtypes.insert(batch.subject.dtype);
  }
  EXPECT_EQ(kernels, (std::set<std::string>{"builtin:flash", "builtin:online"}));
  EXPECT_EQ(properties, (std::set<std::string>{"attention.finite", "attention.oracle"}));
  EXPECT_EQ(dtypes, (std::set<std::string>{"bf16", "f32"}));
  // Those of 12 that are the shard's.
  EXPECT_EQ(summary_of(folder, "o")["kernels"][0]["properties"][0]["cases"], 3);
}

/// A check hands its journal on to what it writes without reading it again: a report, which reads it, says the same.
TEST(Program, WritesWhatAReportOfItsRunSays) {
  const Folder folder;
  const std::string flash_in_f64 = "--kernel builtin:flash --property attention.oracle --dtype f64 ";
  std::vector<std::string> runs{
      flash + "--cases 100", flash + "--cases 100 --shard 1/3",
      // Explained, and not reached.
      "--kernel fault:scale-ignored --property attention.oracle --dtype f32 --cases 60",
      "--kernel fault:scale-ignored --property 'attention.*' --dtype f32 --cases 60 --fail-fast --jobs 1",
      flash_in_f64 + "--cases 50 --against builtin:online", flash_in_f64 + "--cases 50 --alarm"};
  for (const std::string& run : runs) {
    const ShellResult result = shell(folder, "$attest check " + run +
                                                 " --quiet --overwrite --out run > /dev/null; "
                                                 "cd run && mkdir -p was && cp *.json *.md *.html was && cd .. && "
                                                 "$attest report run && $attest report run --summary run/summary.md && "
                                                 "$attest report run --json -o run/tolerances.json && cd run && "
                                                 "for file in report.html summary.md tolerances.json; do "
                                                 "sed -i 's/[0-9a-f]\\{32\\}/nonce/g' $file was/$file; "
                                                 "cmp $file was/$file; done");
    EXPECT_THAT(result.output, AllOf(Says("wrote run/report.html"), NeverSays("differ"))) << run;
  }
  // Gone on with, after more of it.
  EXPECT_EQ(shell(folder, "$attest check " + flash + "--cases 50 --quiet --out more; $attest check " + flash +
                              "--cases 200 --quiet --out more --resume; cp more/report.html was.html; "
                              "$attest report more && sed -i 's/[0-9a-f]\\{32\\}/nonce/g' was.html "
                              "more/report.html && cmp more/report.html was.html")
                .output,
            "wrote more/report.html\n");
}

TEST(Program, HoldsARightKernelAndLeavesAWholeRun) {
  const Folder folder;
  EXPECT_THAT(output_of(folder, "$attest check --verbose " + flash + "--cases 100"),
              Says("report: attest-run-001/report.html"));
  const auto summary = summary_of(folder, "attest-run-001");
  EXPECT_EQ(summary["schema"], "attest-summary/1");
  EXPECT_EQ(summary["verdict"], "held");
  const auto& property = summary["kernels"][0]["properties"][0];
  EXPECT_EQ(summary["kernels"][0]["name"], "builtin:flash");
  EXPECT_EQ(property["name"], "attention.oracle");
  EXPECT_EQ(property["cases"], 100);
  EXPECT_GT(property["worst"]["utilisation"], 0.0);
  EXPECT_LE(property["worst"]["utilisation"], 1.0);
  // The worst case replays to the same figure and is no violation.
  const std::string replay =
      output_of(folder, "$attest replay attest-run-001/" + property["worst"]["case"].get<std::string>());
  EXPECT_TRUE(replay.ends_with("\nheld, as when it was saved\n")) << replay;
  EXPECT_THAT(replay, Says("\nattention: scale ", ", causal ", "\nq f32 [", "\n  out[", "\n    found    ",
                           "\n    exact    [", "\n    allowed  ± "));
  EXPECT_THAT(read_file(folder / "attest-run-001/report.html"), Says("builtin:flash"));
  // The next run takes the next folder; the same folder is refused.
  EXPECT_EQ(shell(folder, "$attest check " + flash + "--cases 1 --quiet").output, "");
  EXPECT_TRUE(std::filesystem::exists(folder / "attest-run-002/summary.json"));
  expect_status(folder, "$attest check " + flash + "--cases 1 --out attest-run-001", 2);
  expect_status(folder, "$attest check " + flash + "--cases 1 --out attest-run-001 --overwrite --quiet");
  EXPECT_EQ(summary_of(folder, "attest-run-001")["kernels"][0]["properties"][0]["cases"], 1);
}

TEST(Program, SaysWhatCouldBeRunWhereNothingCan) {
  for (const char* const line : {"check --cases 5 ", "fuzz --runs 5 "}) {
    const Folder folder;
    const std::string dtype = one_line_of(
        folder, joined({"$attest ", line, "--kernel core:double --kernel builtin:flash --dtype ", "f8_e4m3"}), 3);
    EXPECT_THAT(dtype,
                Says("the dtype f8_e4m3: ", "core:double offers f64", "builtin:flash offers f64, f32", "--dtype"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "no folder of a run that was none";
    std::ofstream(folder / "slip.py") << "\ndef attention(q, k, v)\n    return q\n";
    const std::string slip =
        one_line_of(folder, joined({"$attest ", line, "--kernel 'exec:/usr/bin/python3 slip.py' --out run"}), 3);
    const std::size_t named = slip.find("run/logs/");
    ASSERT_NE(named, std::string::npos) << slip;
    const std::string log = slip.substr(named, slip.find('\n', named) - named);
    EXPECT_THAT(read_file(folder / log), Says("slip.py\", line 2"));
    EXPECT_FALSE(std::filesystem::exists(folder / "run/cases"));
    expect_status(folder, joined({"$attest ", line, "--kernel 'exec:false' --out silent"}), 3);
    EXPECT_FALSE(std::filesystem::exists(folder / "silent"));
  }
}

TEST(Program, HeadsWhatWasNotTestedAtAll) {
  const Folder folder;
  EXPECT_THAT(one_line_of(folder, "$attest check --kernel ./absent.so", 3),
              testing::StartsWith("attest: NOTHING WAS TESTED: ./absent.so: there is no such file"));
  // Every case of it is skipped: its kernel takes no mask.
  const std::string kernel = python_kernel(folder, "mine", "1");
  if (kernel.empty()) GTEST_SKIP() << "numpy is not here";
  for (const char* const quiet : {"", " --quiet"}) {
    const std::string skipped = output_of(
        folder,
        joined({"$attest check --kernel ", kernel,
                " --property masked.boolean-is-additive --cases 3 --overwrite --out run 2> /dev/null", quiet}),
        3);
    EXPECT_THAT(skipped, testing::StartsWith("NOTHING WAS TESTED: no case was judged\n"));
    EXPECT_THAT(skipped, NeverSays("inconclusive:"));
  }
  const std::string summary = read_file(folder / "run/summary.md");
  EXPECT_THAT(summary.substr(0, summary.find('\n')), testing::EndsWith(" Attest: NOTHING WAS TESTED"));
}

/// Whoever unpacks what CI kept types them beside the folder; where it lay on the runner says nothing there.
TEST(Program, WritesReplayLinesThatHoldWhereTheRunIsUnpacked) {
  const Folder folder;
  const std::string check =
      "$attest check --kernel fault:scale-ignored --property attention.oracle --dtype f32 --cases 20 "
      "--jobs 1 --alarm --quiet --junit junit.xml --sarif attest.sarif --out ";
  expect_status(folder, "mkdir -p runner/work && " + check + "\"$PWD/runner/work/run\" > terminal", 1);
  const std::string runner = (folder / "runner").string();
  EXPECT_THAT(read_file(folder / "terminal"), Says("replay: attest replay " + runner + "/work/run/cases/"));
  for (const char* const file :
       {"runner/work/run/report.html", "runner/work/run/summary.md", "junit.xml", "attest.sarif"})
    EXPECT_THAT(read_file(folder / file), AllOf(Says("attest replay run"), NeverSays("replay " + runner))) << file;
  // As the page has it, beside the unpacked folder.
  const std::string page = read_file(folder / "runner/work/run/summary.md");
  const std::size_t line = page.find("replay run/cases/");
  const std::string words = page.substr(line, page.find_first_of("`\n<", line) - line);
  expect_status(folder, "mkdir unpacked && mv runner/work/run unpacked && cd unpacked && $attest " + words, 1);
  expect_status(folder, "cd unpacked && $attest report run && cd run && $attest report . --summary here.md");
  EXPECT_THAT(read_file(folder / "unpacked/run/report.html"), Says("attest replay run/cases/"));
  EXPECT_THAT(read_file(folder / "unpacked/run/here.md"), Says("attest replay run/cases/"));
}

TEST(Program, SaysWhatFileIsWanted) {
  const Folder folder;
  ASSERT_EQ(shell(folder, "$attest check " + flash + "--cases 5 --quiet --out run").status, 0);
  struct Line {
    const char *arguments, *part;
    int status = 2;
  };
  for (const Line& line :
       {Line{"report run -o -", "-o is \"-\"; it must name a file"},
        Line{"replay run/run.jsonl",
             "is a journal, and attest replay takes a case, or the folder of a run; its cases are in run/cases"},
        Line{"replay .", "is a folder without a run, and attest replay takes a case, or the folder of a run"},
        Line{"replay run", "run: nothing was found in this run, so there is nothing to replay"},
        Line{"replay run --cause 2", "--cause 2: run has 0 causes"},
        Line{"replay nosuch", "\"nosuch\": there is no such case; those of a run are in its folder's cases/"},
        Line{"report run -o a.html --baseline run/report.html",
             "wanted is a run's folder, its journal or its tolerances.json"},
        Line{"report run -o a.html --baseline nosuch",
             "wanted is a run's folder, its journal or its tolerances.json"}}) {
    EXPECT_THAT(one_line_of(folder, joined({"$attest ", line.arguments}), line.status), Says(line.part));
  }
}

TEST(Program, PrintsAFewFindingsOfManyAsTheyCome) {
  const Folder folder;
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const std::string check = "$attest check --verbose --kernel fault:sum-not-rescaled --dtype f32 --cases 100 ";
  for (const char* const quiet : {"", "--quiet "}) {
    const ShellResult all = shell(folder, check + quiet + "--overwrite --out all");
    const Journal journal = read_journal(folder / "all");
    EXPECT_GT(journal.findings.size(), 20U);
    EXPECT_EQ(count(all.output, "\n  replay: "), 12) << all.output;
    EXPECT_EQ(count(all.output, "more findings: see the report\n"), 1);
    std::set<std::string> printed;
    for (std::size_t at = all.output.find("VIOLATED "); at != std::string::npos;
         at = all.output.find("VIOLATED ", at + 1))
      printed.insert(all.output.substr(at, all.output.find(" by ", at) - at));
    EXPECT_EQ(printed.size(), 12U) << "one of each property";
    EXPECT_LE(lines_in(all.output), 12 * 3 + 1 + 40);
  }
  // Below the limit: one of the property, and that there are more at the end.
  const ShellResult one = shell(folder, check + "--property attention.oracle --quiet --out one");
  EXPECT_GT(read_journal(folder / "one").findings.size(), 1U);
  EXPECT_EQ(count(one.output, "\n  replay: "), 1) << one.output;
  EXPECT_TRUE(one.output.ends_with("\nmore findings: see the report\n")) << one.output;
}

/// Where the answer to the saved case is right, and what its property asks besides is wrong, no element of it is
/// counted.
TEST(Program, ReplaysALawWhoseCaseIsAnsweredRight) {
  const Folder folder;
  shell(folder,
        "$attest check --kernel fault:output-truncated --dtype bf16 --property attention.constant-values --cases 40 "
        "--quiet --out run");
  const std::vector<FindingRecord> findings = read_journal(folder / "run").findings;
  ASSERT_FALSE(findings.empty());
  const std::string replay = output_of(folder, "$attest replay run/" + findings[0].case_file, 1);
  EXPECT_THAT(replay, NeverSays("\n0 of "));
  EXPECT_THAT(replay, Says("\nthe answer to the saved case lies within its bound; attention.constant-values judges "
                           "another call, or by a rule of its own\n"));
}

TEST(Program, ReplaysALawThatIsBrokenBetweenTwoCalls) {
  const Folder folder;
  const ShellResult result = shell(folder,
                                   "$attest check --verbose --kernel fault:splits-by-queries --dtype f32 --property "
                                   "attention.query-deletion --cases 200 --out run");
  ASSERT_EQ(result.status, 1) << result.output;
  const std::vector<FindingRecord> findings = read_journal(folder / "run").findings;
  ASSERT_FALSE(findings.empty());
  const std::string file = "run/" + findings[0].case_file;
  const std::string replay = output_of(folder, "$attest replay " + file, 1);
  EXPECT_THAT(replay, NeverSays("elements lie outside"));
  EXPECT_THAT(replay, Says("  out[")) << "both compared elements";
  // What was saved as violated and is not any more was not reproduced.
  const std::string other = output_of(folder, "$attest replay --kernel builtin:flash " + file);
  EXPECT_TRUE(other.ends_with("\nnot reproduced\n")) << other;
}

TEST(Program, ReadsItsJournalOfALogSumExpThatIsWrong) {
  const Folder folder;
  // Its worst row is not the first.
  expect_status(folder,
                "$attest check --kernel fault:scale-of-all-heads --dtype f32 --property attention.oracle "
                "--cases 20 --out run",
                1);
  EXPECT_THAT(read_file(folder / "run/run.jsonl"), Says("\"class\":\"lse\""));
  EXPECT_EQ(summary_of(folder, "run")["verdict"], "violated");
}

TEST(Program, WritesTheSameJournalForAnyJobsAndShards) {
  const Folder folder;
  const std::string kernels = "--kernel builtin:flash --kernel builtin:online --dtype f32,bf16 --cases 60 --quiet ";
  expect_status(folder, "$attest check " + kernels + "--jobs 1 --out one");
  expect_status(folder, "$attest check " + kernels + "--jobs 2 --out two");
  expect_status(folder, "$attest check " + kernels + "--shard 0/2 --out s0");
  expect_status(folder, "$attest check " + kernels + "--shard 1/2 --jobs 3 --out s1");
  expect_status(folder,
                "$attest merge one -o one.jsonl && $attest merge two -o two.jsonl && $attest merge s1 s0 -o s.jsonl && "
                "cmp one.jsonl two.jsonl && cmp one.jsonl s.jsonl && $attest merge s.jsonl -o again.jsonl && cmp "
                "again.jsonl s.jsonl");
  expect_status(folder, "$attest report s0 s1 -o r.html && test -s r.html");
  // So are the errors in it.
  EXPECT_THAT(read_file(folder / "one.jsonl"), Says("\"errors\":{\"cells\":[\""));
  expect_status(
      folder,
      "$attest report one --json -o one.json && $attest report s1 s0 --json -o s.json && cmp one.json s.json && "
      "$attest report one --csv -o one.csv && grep -q '^\"builtin:flash\",' one.csv");
  expect_status(folder, "$attest report one --csv --json -o x", 2);
  // A device or a link is written into, not replaced.
  expect_status(folder, "$attest merge one -o /dev/full", 2);
  expect_status(folder, "test -c /dev/full && $attest merge one -o /dev/stdout | cmp - one.jsonl");
  // Another seed is another run.
  expect_status(folder, "$attest check " + kernels + "--seed 2 --out seed");
  expect_status(folder, "$attest merge one seed -o x", 2);
  expect_status(folder, "$attest merge seed -o seed.jsonl; cmp -s one.jsonl seed.jsonl", 1);
}

TEST(Program, RaisesAlarmsOnlyWhereAsked) {
  const Folder folder;
  const std::string check = "$attest check --verbose --kernel builtin:flash --dtype f32,f64 --cases 60 ";
  EXPECT_THAT(output_of(folder, check + "--alarm --jobs 1 --out one"), Says("alarm: 0 of "));
  const auto summary = summary_of(folder, "one");
  EXPECT_EQ(summary["alarm"]["p"], 1e-9);
  EXPECT_EQ(summary["alarm"]["beyond"], 0);
  EXPECT_GT(summary["alarm"]["elements"], 1000);
  expect_status(folder, check + "--alarm --jobs 2 --out two --quiet");
  expect_status(folder, check + "--alarm --shard 0/2 --out s0 --quiet");
  expect_status(folder, check + "--alarm --shard 1/2 --out s1 --quiet");
  const ShellResult same =
      shell(folder,
            "$attest merge one -o a; $attest merge two -o b; $attest merge s1 s0 -o c; cmp a b && cmp "
            "a c && grep -q alarm a");
  EXPECT_EQ(same.status, 0) << same.output;
  // Without it not a word of it, and the same verdicts.
  const ShellResult calm = shell(folder, check + "--out calm");
  EXPECT_THAT(calm.output, NeverSays("alarm"));
  expect_status(folder, "grep -ril alarm calm", 1);
  auto kernels = summary["kernels"];
  for (auto& kernel : kernels)
    for (auto& property : kernel["properties"]) property.erase("alarm");
  EXPECT_EQ(kernels, summary_of(folder, "calm")["kernels"]);
  // The two are different runs.
  expect_status(folder, "$attest merge one calm -o x", 2);
  EXPECT_THAT(output_of(folder, check + "--alarm --out calm --resume", 2),
              Says("was run without --alarm; resume it the same way"));
  EXPECT_THAT(output_of(folder, "$attest replay --alarm one/cases/attention.oracle--*--f32--worst.safetensors"),
              Says("alarm: 0 of "));
}

// The manifest of the first kernel rules masks out, and with them what the property is about.
TEST(Program, WarnsOfWhatWasDrawnTooRarely) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "maskless", "1.0");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const std::string check = "$attest check --verbose --property masked.query-deletion --dtype f64 ";
  EXPECT_THAT(output_of(folder, check + "--cases 400 --out run --kernel " + kernel),
              AllOf(Says("note on maskless: its manifest rules masks out; judged without a mask: "
                         "masked.query-deletion\n"),
                    NeverSays("warning", "skipped: ")));
  const auto summary = summary_of(folder, "run");
  EXPECT_EQ(summary["verdict"], "held");
  EXPECT_EQ(summary["warnings"][0]["kernel"], "maskless");
  EXPECT_EQ(summary["warnings"][0]["cases"], 0);
  EXPECT_GT(summary["drawn"]["run"]["cases"]["mask"]["none"], 0);
  // One that lists masks and refuses them, and one that refuses four problems of five besides.
  const auto refusing = [&](const std::string& name, const std::string& what) {
    return shell(folder, R"(sed -e "s/'masks': \[\]/'masks': ['bool']/" -e 's/maskless/)" + name +
                             R"(/' -e 's/scale=1.0):/scale=1.0, mask=None):\n)" + "    if " + what +
                             R"(: raise attest_adapter.Unsupported("not written")/' maskless.py > )" + name +
                             ".py && " + check + "--cases 200 --out " + name + " --kernel 'exec:/usr/bin/python3 " +
                             name + ".py'");
  };
  const ShellResult masks = refusing("masks", "mask is not None");
  EXPECT_EQ(masks.status, 0) << masks.output;
  EXPECT_THAT(masks.output, Says("it refused a mask of the kind bool, and answered the same problem without one; taken "
                                 "for \"masks\": [], which its manifest may state",
                                 "note on masks: its manifest rules masks out; judged without a mask: "));
  const ShellResult most = refusing("most", "mask is not None or (q.shape[2] + k.shape[2]) % 5");
  EXPECT_EQ(most.status, 4) << most.output;
  EXPECT_THAT(most.output, Says("which no limit explains",
                                "inconclusive masked.query-deletion by most in f64: hardly tested: judged in 1 of 200",
                                "unsupported: not written; state that limit in the manifest, or take these cases"));
  const ShellResult few = shell(folder, check + "--cases 40 --out few --kernel " + kernel);
  EXPECT_THAT(few.output, NeverSays("warning"));
  const ShellResult quiet = shell(folder, check + "--cases 200 --quiet --out quiet --kernel " + kernel);
  EXPECT_EQ(quiet.output, "");
  // One that decides too little says so, however quiet.
  const ShellResult little =
      shell(folder, check + "--cases 200 --quiet --out little --kernel 'exec:/usr/bin/python3 most.py'");
  EXPECT_EQ(little.status, 4) << little.output;
  EXPECT_THAT(little.output, Says("inconclusive: ", "report: little/report.html"));
  EXPECT_THAT(little.output, NeverSays("hardly tested", "note on"));
  const ShellResult right = shell(folder, check + "--cases 200 --out right --kernel builtin:flash");
  EXPECT_THAT(right.output, NeverSays("warning"));
}

TEST(Program, ChecksTheGenericCoreWithoutBeingTold) {
  const Folder folder;
  expect_status(folder, "$attest check --property attention.score-variance --cases 130 --out run");
  std::map<std::string, std::int64_t> judged;
  const auto kernels = summary_of(folder, "run")["kernels"];
  for (const auto& kernel : kernels) {
    if (kernel["dtype"] == "f32") judged[kernel["name"]] = kernel["properties"][0]["held"];
  }
  EXPECT_EQ(judged["core:double"], 130);
  EXPECT_EQ(judged["core:float"], 130);
  EXPECT_EQ(judged["core:cpp_bin_float_50"], 120);
  EXPECT_EQ(judged["core:mpfr"], 120);
  // Asked for by name, a wide one is given what others are.
  expect_status(folder,
                "$attest check --property attention.score-variance --cases 130 --out wide --dtype f32 "
                "--kernel core:mpfr");
  EXPECT_EQ(summary_of(folder, "wide")["kernels"][0]["properties"][0]["held"], 130);
}

TEST(Program, FindsAWrongKernelAndReplaysIt) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "wrong", "1.01");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const std::string result = output_of(
      folder, "$attest check --verbose --kernel " + kernel + " --property attention.oracle --cases 200 --out run", 1);
  const auto summary = summary_of(folder, "run");
  EXPECT_EQ(summary["kernels"][0]["name"], "wrong");
  const auto& property = summary["kernels"][0]["properties"][0];
  EXPECT_EQ(property["verdict"], "violated");
  ASSERT_FALSE(property["findings"].empty());
  const std::string saved = "run/" + property["findings"][0]["case"].get<std::string>();
  const std::size_t printed = result.find("replay: attest replay run/cases/attention.oracle--");
  ASSERT_NE(printed, std::string::npos) << result;
  const std::size_t name = result.find("run/", printed);
  EXPECT_TRUE(std::filesystem::exists(folder / result.substr(name, result.find('\n', name) - name)));
  EXPECT_THAT(output_of(folder, "$attest replay " + saved, 1), AllOf(Says("found", "exact    ["), NeverSays("\n0 of")));
  expect_status(folder, "$attest replay " + saved + " --kernel builtin:two-pass");
  // Stopping at the first violation leaves one finding.
  expect_status(folder,
                "$attest check --kernel " + kernel + " --property attention.oracle --fail-fast --jobs 1 --out fast", 1);
  EXPECT_EQ(read_journal(folder / "fast").findings.size(), 1U);
}

TEST(Program, TakesADeathForAFinding) {
  const Folder folder;
  const std::string kernel =
      python_kernel(folder, "dying", "1.0 if q.shape[2] > 0 else 1.0) + __import__('os')._exit(3");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  expect_status(
      folder,
      "$attest check --kernel " + kernel + " --property attention.oracle --cases 64 --jobs 1 --fail-fast --out run", 1);
  const Journal journal = read_journal(folder / "run");
  ASSERT_EQ(journal.findings.size(), 1U);
  EXPECT_EQ(journal.findings[0].kind(), "died");
  EXPECT_FALSE(journal.unfinished());
}

// Two opposite values of equal weight: exactly 0, and the kernel returns the bound itself.
TEST(Program, SavesAndReplaysWhatCannotBeDecided) {
  const Folder folder;
  const Case c = test::one_query(DType::f64, {0}, {0, 0}, {1, -1});
  save_case(c, folder / "edge.safetensors");
  const Tensor far(DType::f64, c.out_shape(), std::vector<double>{1});
  const Verdict verdict = judge_attention(c, far, {}, universal_arithmetic(DType::f64, DType::f64), {.first_level = 3});
  const std::string kernel = python_kernel(
      folder, "edge",
      fmt::format("1.0)\n    return numpy.full(q.shape, float.fromhex('{:a}'))\n    (1.0", verdict.allowed));
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  EXPECT_THAT(output_of(folder,
                        "$attest check --verbose --case edge.safetensors --kernel " + kernel +
                            " --property attention.oracle --out run",
                        4),
              Says("INCONCLUSIVE attention.oracle"));
  const Journal journal = read_journal(folder / "run");
  ASSERT_EQ(journal.findings.size(), 1U);
  EXPECT_EQ(journal.findings[0].kind(), "inconclusive");
  const std::string replayed = output_of(folder, "$attest replay run/" + journal.findings[0].case_file, 1);
  EXPECT_THAT(replayed, Says("inconclusive: "));
  EXPECT_TRUE(replayed.ends_with("\nreproduced\n")) << replayed;
}

TEST(Program, OutlivesItsReader) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "wrong", "1.01");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  // Both outputs lead into a pipe that nobody reads any more, as behind `2>&1 | head -1`.
  const ShellResult result =
      shell(folder, "{ $attest check --verbose --kernel " + kernel +
                        " --property attention.oracle --cases 200 --out run 2>&1; echo $? > status; "
                        "} | true; cat status");
  EXPECT_EQ(result.output, "2\n");
  const Journal journal = read_journal(folder / "run");
  EXPECT_FALSE(journal.unfinished());
  EXPECT_FALSE(journal.findings.empty());
  EXPECT_EQ(summary_of(folder, "run")["verdict"], "violated");
}

TEST(Program, NamesTheLauncherInLinesToCopy) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "wrong", "1.01");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const ShellResult result = shell(folder, "ATTEST_COMMAND=./attest $attest check --verbose --kernel " + kernel +
                                               " --property attention.oracle --cases 20 --out run");
  EXPECT_THAT(result.output, Says("replay: ./attest replay run/cases/"));
  EXPECT_THAT(read_file(folder / "run/report.html"), Says("<pre class=\"line\">./attest replay run/cases/"));
}

/// Checks the kernel in Python that stands in the document.
void holds_the_kernel_of(const std::string& document, const std::string& module) {
  const Folder folder;
  if (shell(folder, "/usr/bin/python3 -c 'import " + module + "'").status != 0)
    GTEST_SKIP() << "Python has no " << module;
  expect_status(folder, "sed -n '/^import attest_adapter/,/^attest_adapter.serve/p' " + source_folder() + "/" +
                            document +
                            " > mine.py && test -s mine.py && "
                            "$attest check --kernel 'exec:/usr/bin/python3 mine.py' --cases 200");
}

TEST(Program, HoldsTheKernelOfTheReadme) {
  holds_the_kernel_of("README.md", "numpy");
}

TEST(Program, HoldsTheKernelOfTheGuide) {
  holds_the_kernel_of("reports/guide/your-kernel.md", "torch");
}

// It writes nothing into out, which is for the reader to do: each case that it does not refuse is a finding.
TEST(Program, LoadsTheLibraryOfTheReadmeAndTheGuide) {
  for (const std::string document : {"README.md", "reports/guide/your-kernel.md"}) {
    const Folder folder;
    if (shell(folder, "cc --version").status != 0) GTEST_SKIP() << "there is no cc";
    EXPECT_THAT(output_of(folder,
                          "sed -n '/^```c$/,/^```$/p' " + source_folder() + "/" + document +
                              " | grep -v '^```' > mine.c && cc -Wall -Werror -O2 -shared -fPIC -I " + source_folder() +
                              "/core/include -o libmine.so mine.c && "
                              "$attest check --verbose --kernel ./libmine.so --property attention.oracle --cases 20",
                          1),
                Says("VIOLATED attention.oracle by ./libmine.so in f32"));
  }
}

TEST(Program, GivesTheContractsExitStatus) {
  const Folder folder;
  // 3: nothing could be started, or nothing could be checked.
  const ShellResult dead = shell(folder, "$attest check --verbose --kernel exec:true --cases 1");
  EXPECT_FALSE(std::filesystem::exists(folder / "attest-run-001")) << "a run that never began leaves nothing";
  EXPECT_EQ(dead.status, 3) << dead.output;
  EXPECT_EQ(lines_in(dead.output), 1) << dead.output;
  expect_status(folder, "$attest check --kernel builtin:flash --dtype f8_e4m3 --cases 1", 3);
  expect_status(folder, "$attest check --kernel fault:mask-scaled --property 'multihead.*' --cases 1", 3);
  // 4: every row is excused, so nothing was held.
  write_case(folder / "masked.safetensors", 1.0, /*all_masked=*/true);
  const std::string masked =
      "$attest check --verbose --kernel builtin:flash --property attention.oracle --case masked.safetensors ";
  expect_status(folder, masked, 4);
  expect_status(folder, masked + "--inconclusive=held");
  // 4: what was asked by name and answered in no case, beside what held.
  const std::string asked = "$attest check --verbose --property attention.finite --cases 5 --kernel builtin:flash ";
  expect_status(folder, asked);
  for (const std::string more :
       {"--property attention.score-variance", "--property 'self.b*'", "--kernel document:003.positions"}) {
    EXPECT_THAT(output_of(folder, asked + more, 4), AllOf(Says("so that", "\ninconclusive: "), NeverSays("\nheld: ")));
    expect_status(folder, asked + more + " --inconclusive=held");
  }
  expect_status(folder, asked + "--property 'attention.*' --kernel 'builtin:*'");
  // What a CI shows says the same as the exit status.
  expect_status(folder, asked + "--property 'self.b*' --junit junit.xml", 4);
  EXPECT_THAT(read_file(folder / "junit.xml"), Says("judged on no kernel, so that the run says nothing of it"));
  // A shard does not know what others judge; all of them together do, whatever is made of them.
  for (const std::string shard : {"0", "1"}) {
    EXPECT_THAT(output_of(folder, joined({asked, "--property 'self.b*' --shard ", shard, "/2 --out part-", shard})),
                NeverSays("says nothing of it"));
  }
  const std::string merge =
      "touch none.toml; $attest merge part-0 -o one.jsonl --known none.toml && $attest merge "
      "part-0 part-1 -o whole/ --known none.toml --junit whole.xml";
  EXPECT_THAT(output_of(folder, merge, 4), Says("attest: --property \"self.b*\": judged on no kernel"));
  EXPECT_EQ(read_file(folder / "whole/summary.md").find("## ❔ Attest: inconclusive\n"), 0U);
  expect_status(folder, "$attest report part-0 part-1 --junit report.xml && cmp report.xml whole.xml");
  // 2: a case file with NaN or Inf that does not say so.
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    write_case(folder / "bad.safetensors", bad);
    EXPECT_THAT(one_line_of(folder, "$attest check --verbose --kernel builtin:flash --case bad.safetensors", 2),
                Says("bad.safetensors"));
  }
  // 0: the user's own tensors.
  write_case(folder / "mine.safetensors", 1.0);
  expect_status(folder,
                "$attest check --kernel builtin:flash --kernel builtin:online --case mine.safetensors --out mine");
  EXPECT_EQ(summary_of(folder, "mine")["kernels"].size(), 2U);
}

}  // namespace
}  // namespace attest
