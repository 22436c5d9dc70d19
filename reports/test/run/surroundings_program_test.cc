// What surrounds a run: a second one in its folder, clocks that are set, locales, few processors, folders and disks
// that take nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/journal/journal.h"
#include "core/test/sanitizers.h"
#include "reports/test/program_checks.h"
#include "reports/test/run/kills.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

const std::string check_flash =
    "$attest check --kernel builtin:flash --dtype f32 --property attention.oracle --quiet --jobs 1 ";
const std::string fuzz_flash = "$attest fuzz --kernel builtin:flash --dtype f32 --quiet --jobs 1 ";
/// Until the run has begun to write.
const std::string until_begun = "until [ $(wc -l < run/run.jsonl 2>/dev/null || echo 0) -gt 3 ]; do sleep 0.02; done; ";

TEST(Surroundings, ASecondRunInAFolderIsRefusedAndTheFirstUnharmed) {
  for (const std::string& first : {check_flash, fuzz_flash}) {
    const Folder folder;
    // With --resume, with --overwrite and without, while the first one writes.
    const ShellResult result = shell(
        folder, joined({first, "--time 1h --out run > first 2>&1 & pid=$!; ", until_begun,
                        "for mode in --resume --overwrite ''; do ", first,
                        "--out run $mode > second 2>&1; echo status $? lines $(wc -l < second); cat second; done; ",
                        "cp run/run.jsonl before; kill -INT $pid; wait $pid; echo first $?"}));
    EXPECT_THAT(result.output, Says("first 130"));
    EXPECT_THAT(result.output, testing::ContainsRegex("status 2 lines 1\n.*another run is writing it.*\n"
                                                      "status 2 lines 1\n.*another run is writing it.*\n"
                                                      "status 2 lines 1\n.*holds a run already"));
    EXPECT_TRUE(read_file(folder / "run/run.jsonl").starts_with(whole_lines(folder / "before")));
    EXPECT_TRUE(read_journal(folder / "run").interrupted());
    // The lock goes with the process, however it ends.
    expect_status(folder, joined({"rm -r run; ", first, "--time 1h --out run & pid=$!; ", until_begun,
                                  "kill -9 $pid; wait $pid; ", first, "--time 0.2s --resume --out run"}));
  }
}

// A kernel's own process outlives the run by a moment, and must not hold its lock.
TEST(Surroundings, AKernelThatHangsDoesNotKeepTheLock) {
  const Folder folder;
  const std::string check =
      "$attest check --kernel 'exec:touch hung; exec sleep 20' --timeout 1h --quiet --cases 10 --out run";
  expect_status(folder, check_flash + "--cases 10 --out run && (" + check +
                            " --resume & pid=$!; until [ -e hung ]; do sleep 0.02; done; "
                            "kill -9 $pid; wait $pid); " +
                            check_flash + "--cases 20 --resume --out run");
}

TEST(Surroundings, TimeIsNotThatOfAClockThatIsSet) {
  if (under_address_sanitizer || under_thread_sanitizer)
    GTEST_SKIP() << "libfaketime allocates before the sanitizer that is to watch it has begun";
  const Folder folder;
  const ShellResult library = shell(folder, "ls /usr/lib/*/faketime/libfaketime.so.1");
  if (library.status != 0) GTEST_SKIP() << "libfaketime is not here";
  const std::string preloaded =
      "LD_PRELOAD=" + library.output.substr(0, library.output.find('\n')) +
      " FAKETIME_TIMESTAMP_FILE=$PWD/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 ";
  // The preloaded clock is a clock that is set.
  std::ofstream(folder / "clock") << "+400d\n";
  EXPECT_NE(shell(folder, "[ $(" + preloaded + "date +%Y) = $(date +%Y) ]").status, 0);
  for (const std::string& run : {check_flash, fuzz_flash}) {
    for (const char* step : {"+2h", "-2h"}) {
      std::ofstream(folder / "clock") << "+0\n";
      const Timed timed_run = timed(folder, joined({"rm -rf run; (sleep 0.7; echo ", step, " > clock) & ", preloaded,
                                                    run, "--time 2s --out run; status=$?; wait; (exit $status)"}));
      EXPECT_EQ(timed_run.result.status, 0) << timed_run.result.output;
      EXPECT_GE(timed_run.seconds, 2.0) << run << step;
      EXPECT_LT(timed_run.seconds, 60.0) << run << step;
    }
  }
}

TEST(Surroundings, ALocaleWithDecimalCommasChangesNoByte) {
  const Folder folder;
  if (shell(folder, "localedef -i de_DE -f UTF-8 ./de_DE.UTF-8").status != 0)
    GTEST_SKIP() << "localedef makes no de_DE.UTF-8; the package locales has it";
  const std::string commas =
      "LOCPATH='" + folder.path().string() + "' LC_ALL=de_DE.UTF-8 LD_PRELOAD='" ATTEST_COMMA_LOCALE "' ";
  const ShellResult comma = shell(folder, commas + "$attest --version");
  ASSERT_THAT(comma.output, NeverSays("no decimal comma"));
  // Without an end of time, of host and of arguments; scale and tolerances are numbers with a point.
  for (const auto& [name, before] : {std::pair<std::string, std::string>{"plain", ""}, {"comma", commas}}) {
    const ShellResult run = shell(
        folder,
        joined({"mkdir ", name, " && cd ", name, " && { ", before,
                "$attest check --verbose --kernel fault:scale-ignored --kernel core:float --dtype f32 --property ",
                "attention.oracle --alarm --cases 200 --time 3599.5s --jobs 1 --out run > out 2> progress; ", before,
                "$attest merge run -o canonical; ", before, "$attest report run --json -o tolerances.json; ", before,
                "$attest report run --csv -o tolerances.csv; ", before,
                "$attest replay run/cases/attention.oracle--fault-scale-ignored--f32--worst.safetensors > ", "replay; ",
                before, "$attest merge canonical -o whole/; }"}));
    EXPECT_EQ(run.output,
              "wrote canonical: 2 batches, 3 findings of 2 kernels\nwrote tolerances.json\nwrote tolerances.csv\n"
              "wrote whole/: 2 batches, 3 findings of 2 kernels\n")
        << name;
  }
  const ShellResult same = shell(
      folder,
      "for file in canonical tolerances.json tolerances.csv replay whole/run.jsonl whole/summary.json "
      "whole/report.html run/summary.json; do test -s plain/$file || echo no $file; for by in plain comma; do "
      // A page has a word of its own by which it lets its own scripts run.
      "sed -E 's/[0-9a-f]{32}/NONCE/g' $by/$file > $by.text; done; cmp plain.text comma.text || echo of $file; done; "
      "diff -r plain/run/cases comma/run/cases");
  EXPECT_EQ(same.output, "");
}

TEST(Surroundings, MoreJobsThanProcessorsAndOneProcessorGiveTheSameJournal) {
  const Folder folder;
  const std::string check =
      "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property attention.oracle "
      "--property attention.linear-in-values --cases 300 --quiet ";
  expect_status(folder, check + "--jobs 1 --out one && " + check + "--jobs 40 --out many && taskset -c 0 " + check +
                            "--out bound && taskset -c 0 " + check +
                            "--jobs 7 --out both && for run in one many bound "
                            "both; do $attest merge $run -o $run.jsonl && cmp one.jsonl $run.jsonl || exit 9; done");
  expect_refused("check --jobs 0", "--jobs is 0; it must be at least 1");
  expect_refused("fuzz --kernel builtin:flash --jobs -1", "--jobs is -1; it must be at least 1");
}

/// As a user who may not write everywhere.
const std::string as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";

TEST(Surroundings, AFolderThatTakesNothingIsSaidInOneLine) {
  const Folder folder;
  expect_status(folder, check_flash + "--cases 20 --out run");
  expect_status(folder, "mkdir shut && cp -r run shut/run && chmod -R a-w,a+rX shut && chmod a+rx .");
  const bool root = shell(folder, "[ $(id -u) = 0 ]").status == 0;
  const std::string user = root ? as_nobody : "";
  if (root && shell(folder, user + "$attest --version").status != 0)
    GTEST_SKIP() << "no other user may run the program here";
  for (const std::string& line :
       {check_flash + "--out shut/new", check_flash + "--out shut", fuzz_flash + "--out shut/new",
        check_flash + "--resume --out shut/run", fuzz_flash + "--out shut/run --overwrite",
        std::string("$attest merge shut/run -o shut/whole.jsonl"), std::string("$attest merge shut/run -o shut/whole/"),
        std::string("$attest report shut/run -o shut/report.html")}) {
    EXPECT_THAT(one_line_of(folder, user + line, 2), testing::ContainsRegex("ermission|not writable")) << line;
  }
  // What may be read only can be reported and merged to elsewhere.
  expect_status(folder, "mkdir -m 777 open && " + user + "$attest merge shut/run -o open/whole/");
  expect_status(folder, user + "$attest report shut/run -o open/report.html");
}

/// Under a limit on the size of a file, which fails a write in its middle as a full disk does; in blocks of 1024 bytes.
std::string within(int blocks, const std::string& line) {
  return fmt::format("(ulimit -f {}; {})", blocks, line);
}

TEST(Surroundings, AFullDiskLeavesWhatStoodAndNoHalfFile) {
  const Folder folder;
  const std::string fuzz = output_of(folder, within(64, fuzz_flash + "--time 1h --out campaign"), 2);
  EXPECT_EQ(lines_in(fuzz), 1) << fuzz;
  const std::string left = read_file(folder / "campaign/run.jsonl");
  EXPECT_FALSE(read_journal(folder / "campaign").batches.empty());
  expect_status(folder, fuzz_flash + "--time 0.2s --resume --out campaign");
  EXPECT_TRUE(read_file(folder / "campaign/run.jsonl").starts_with(left));

  expect_status(folder, check_flash + "--cases 3000 --out run");
  expect_status(folder, "$attest merge run -o whole.jsonl && cp whole.jsonl before");
  for (const char* line :
       {"$attest merge run -o whole.jsonl", "$attest merge run -o new.jsonl", "$attest merge run -o folder/",
        "$attest report run -o report.html", "$attest report run --json -o tolerances.json"}) {
    EXPECT_THAT(one_line_of(folder, within(1, line), 2), Says("File too large")) << line;
  }
  expect_status(folder, "cmp whole.jsonl before");
  EXPECT_EQ(
      shell(folder, "ls new.jsonl* report.html* tolerances.json* whole.jsonl.* folder/run.jsonl* 2>/dev/null").output,
      "");
  expect_status(folder, "$attest merge run -o folder/ && cmp folder/run.jsonl before");
  expect_refused("list --kernels > /dev/full", "standard output cannot be written");
}

TEST(Surroundings, APipeIsReadWhereItEndsAndRefusedWhereItMayNot) {
  const Folder folder;
  expect_status(folder,
                "$attest check --kernel builtin:flash --dtype f32 --property attention.oracle --cases 20 --quiet "
                "--out run && $attest merge run -o whole && mkfifo pipe pipe.jsonl");
  for (const std::string& command :
       {std::string("merge pipe.jsonl -o new"), std::string("merge run pipe -o new"), std::string("replay pipe"),
        std::string("report pipe -o page.html"), std::string("compare pipe run"), std::string("compare run pipe"),
        std::string("check --kernel builtin:flash --case pipe --out new"),
        std::string("check --kernel builtin:flash --shapes pipe --out new"),
        std::string("check --kernel builtin:flash --cases 1 --baseline pipe --out new")}) {
    EXPECT_THAT(one_line_of(folder, "timeout 20 $attest " + command, 2), Says("pipe", "is a named pipe, not a file"))
        << command;
  }
  EXPECT_EQ(shell(folder, "ls -d new page.html 2>/dev/null").output, "");
  // As examples/README.md has it.
  expect_status(folder, "cat whole | $attest merge /dev/stdin -o new && cmp whole new");
  if (shell(folder, "command -v bash").status != 0) return;
  std::ofstream(folder / "merge.sh") << "\"$1\" merge <(cat whole) -o newer && cmp whole newer\n";
  expect_status(folder, "bash merge.sh $attest");
}

// A write that failed in the middle of a run leaves errno to whatever came behind it.
TEST(Surroundings, SaysWhyNobodyReadsItsOutput) {
  const Folder folder;
  // The reader is gone before there is anything to read.
  const auto closed = [](const std::string& arguments) {
    return "{ trap '' PIPE; while [ ! -e gone ]; do sleep 0.02; done; $attest " + arguments +
           " 2> errors; echo $? > status; } | { exec <&-; touch gone; }; while [ ! -s status ]; do sleep 0.02; done; "
           "cat errors; (exit $(cat status))";
  };
  const std::string check =
      "check --kernel fault:mask-scaled --dtype f32 --property attention.oracle --cases 40 "
      "--jobs 1 --overwrite --out run ";
  for (const std::string& command :
       {check + "--verbose --quiet", check + "--verbose", check, std::string("findings run"),
        std::string("list --kernels"), std::string("--man-page")}) {
    shell(folder, "rm -f gone status errors");
    const std::string said = one_line_of(folder, closed(command), 2);
    EXPECT_EQ(said, "attest: standard output cannot be written: what reads it has closed the pipe\n") << command;
  }
  EXPECT_EQ(one_line_of(folder, "$attest " + check + "--verbose > /dev/full", 2),
            "attest: standard output cannot be written: No space left on device\n");
  // Which no later write says again: no reason is better than a wrong one.
  EXPECT_EQ(one_line_of(folder, "$attest " + check + "--verbose --quiet > /dev/full", 2),
            "attest: standard output cannot be written\n");
}

}  // namespace
}  // namespace attest
