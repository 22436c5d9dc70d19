// Runs that do not come to their end: interrupted, killed and resumed, or out of room.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/journal/journal.h"
#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

const std::string check_flash =
    "$attest check --verbose --kernel builtin:flash --dtype f32 --property attention.oracle ";

TEST(InterruptionProgram, IsInterruptedWithItsJournalComplete) {
  const Folder folder;
  EXPECT_THAT(output_of(folder,
                        check_flash + "--time 1h --out run & pid=$!; "
                                      "until [ $(wc -l < run/run.jsonl 2>/dev/null || echo 0) -gt 20 ]; do sleep "
                                      "0.05; done; kill -INT $pid; wait $pid",
                        130),
              Says("interrupted"));
  const Journal journal = read_journal(folder / "run");
  EXPECT_TRUE(journal.interrupted());
  EXPECT_FALSE(journal.torn);
  EXPECT_EQ(summary_of(folder, "run")["interrupted"], true);
}

/// Starts `command`, interrupts it once the file `hung` is there, and gives its exit status; 137 where it had to be
/// killed because the interrupt did not end it.
ShellResult interrupted_when_hung(const Folder& folder, const std::string& command) {
  return shell(folder, command +
                           " & pid=$!; { sleep 60; kill -9 $pid; } >/dev/null 2>&1 & dog=$!; "
                           "until [ -e hung ]; do sleep 0.05; done; kill -INT $pid; wait $pid; status=$?; "
                           "kill $dog; (exit $status)");
}

TEST(InterruptionProgram, IsInterruptedWhileAKernelHangs) {
  const Folder folder;
  const std::string kernel = python_kernel(
      folder, "hangs", "1.0 if q.shape[2] != 2 else __import__('time').sleep(open('hung', 'w').write('3600'))");
  if (kernel.empty()) GTEST_SKIP() << "Python has no numpy";
  const ShellResult check =
      interrupted_when_hung(folder, "$attest check --verbose --kernel " + kernel +
                                        " --property attention.oracle --timeout 1h --jobs 1 --out run");
  EXPECT_EQ(check.status, 130) << check.output;
  const Journal journal = read_journal(folder / "run");
  EXPECT_TRUE(journal.interrupted());
  // That the kernel was cut short is nothing found about it.
  EXPECT_TRUE(journal.findings.empty());
  EXPECT_EQ(summary_of(folder, "run")["interrupted"], true);
  write_case(folder / "mine.safetensors", 1.0);
  std::filesystem::remove(folder / "hung");
  const ShellResult replay = interrupted_when_hung(
      folder, "$attest replay mine.safetensors --timeout 1h --kernel 'exec:touch hung; sleep 3600'");
  EXPECT_EQ(replay.status, 130) << replay.output;
}

TEST(InterruptionProgram, IsInterruptedWhileAKernelStarts) {
  const Folder folder;
  const ShellResult result = interrupted_when_hung(
      folder, "$attest check --verbose --kernel 'exec:touch hung; exec sleep 3600' --timeout 1h --out run");
  EXPECT_EQ(result.status, 130) << result.output;
  EXPECT_EQ(result.output, "attest: interrupted before there was a verdict\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "run/run.jsonl"));
}

TEST(InterruptionProgram, GoesOnWithoutItsTerminalWhereAskedTo) {
  const Folder folder;
  expect_status(folder, "trap '' HUP; " + check_flash +
                            "--time 2s --quiet --out run & pid=$!; "
                            "until [ -s run/run.jsonl ]; do sleep 0.05; done; kill -HUP $pid; "
                            "wait $pid");
  EXPECT_FALSE(read_journal(folder / "run").interrupted());
}

TEST(InterruptionProgram, ResumesAfterAKill) {
  const Folder folder;
  const std::string check =
      "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property attention.oracle --cases "
      "3000 --quiet ";
  expect_status(folder, check + "--out whole");
  for (const char* lines : {"3", "20", "60"}) {
    shell(folder, "rm -rf killed; " + check +
                      "--out killed & pid=$!; until [ $(wc -l < killed/run.jsonl 2>/dev/null || echo 0) -gt " + lines +
                      " ] || ! kill -0 $pid; do sleep 0.01; done; kill -9 $pid; wait $pid");
    EXPECT_NO_THROW((void)read_journal(folder / "killed"));
    expect_status(folder, check + "--out killed --resume");
    expect_status(folder, "$attest merge whole -o w; $attest merge killed -o k; cmp w k");
  }
  expect_status(folder, check + "--out killed --resume --seed 3", 2);
  expect_status(folder, check + "--out killed --resume --shard 0/2", 2);
}

TEST(InterruptionProgram, ResumesNoRunOfOtherKernelsOrMoreCases) {
  const Folder folder;
  const std::string flash = "--kernel builtin:flash ", rest = "--dtype f32 --quiet --out ";
  const std::string property = "--property attention.oracle ";
  ASSERT_EQ(shell(folder, "$attest check --cases 100 --overwrite " + flash + property + rest + "'a run'").status, 0);
  ASSERT_EQ(shell(folder, "$attest fuzz --runs 100 " + flash + rest + "bred").status, 0);
  struct Refused {
    std::string line, why, remedy;
  };
  const std::string check_again = "attest check --cases 100 " + flash + property +
                                  "--dtype f32 --quiet --resume --out "
                                  "'a run'",
                    fuzz_again = "attest fuzz --runs 100 " + flash + "--dtype f32 --quiet --resume --out bred";
  for (const Refused& refused :
       std::initializer_list<Refused>{{joined({"check --cases 100 --kernel builtin:lazy ", property, rest, "'a run'"}),
                                       "holds a run of builtin:flash, and not of builtin:lazy", check_again},
                                      {joined({"check --cases 100 --kernel 'builtin:*' ", property, rest, "'a run'"}),
                                       "holds a run of builtin:flash, and not of builtin:", check_again},
                                      {joined({"check --cases 99 ", flash, property, rest, "'a run'"}),
                                       "100 of a property already, more than the 99 of --cases", check_again},
                                      {joined({"fuzz --runs 100 --kernel builtin:lazy ", rest, "bred"}),
                                       "holds a run of builtin:flash, and not of builtin:lazy", fuzz_again},
                                      {joined({"fuzz --runs 99 ", flash, rest, "bred"}),
                                       "100 of a property already, more than the 99 of --runs", fuzz_again}}) {
    EXPECT_THAT(one_line_of(folder, "unset ATTEST_COMMAND; $attest " + refused.line + " --resume", 2),
                Says(refused.why, "go on with it by " + refused.remedy + "\n"));
  }
  for (const char* const run : {"a run", "bred"})
    EXPECT_EQ(read_journal(folder / run).kernels.size(), 1U) << "nothing was begun in it";
  EXPECT_EQ(shell(folder, "attest() { $attest \"$@\"; }; " + check_again).status, 0) << "the line goes on with the run";
  expect_status(folder, "attest() { $attest \"$@\"; }; " + fuzz_again);
}

TEST(InterruptionProgram, SaysWhenTheDiskIsFull) {
  const Folder folder;
  // A limit on the size of a file fails the journal's write in its middle, as a full disk does.
  const std::string result = output_of(folder, "(ulimit -f 64; exec " + check_flash + "--cases 100000 --out run)", 2);
  EXPECT_EQ(lines_in(result), 1) << result;
  EXPECT_FALSE(read_journal(folder / "run").batches.empty());
}

}  // namespace
}  // namespace attest
