// Kills at a few moments; the attack has a thousand.
#include <fstream>

#include "core/journal/journal.h"
#include "reports/test/run/kills.h"

namespace attest {
namespace {

TEST(KillProgram, AKilledCheckGoesOnToTheSameJournal) {
  std::mt19937_64 random(1);
  (void)kill_checks(5,
                    "$attest check --kernel builtin:flash --kernel builtin:two-pass --dtype f32 --property "
                    "attention.oracle --cases 1000 --quiet",
                    random);
}

TEST(KillProgram, AKilledCheckWithFindingsHasTheirCases) {
  std::mt19937_64 random(4);
  (void)kill_checks(5,
                    "$attest check --kernel fault:scale-ignored --kernel fault:mask-scaled --dtype f32 --property "
                    "attention.oracle --property masked.row-shift --cases 200 --quiet --jobs 2",
                    random, /*status=*/1);
}

TEST(KillProgram, AKilledCampaignLosesNothingThatWasWritten) {
  std::mt19937_64 random(2);
  (void)kill_campaigns(3, "$attest fuzz --kernel builtin:flash --dtype f32 --jobs 1 --quiet", 1.0, /*slack=*/20,
                       random);
}

TEST(KillProgram, AKilledMergeLeavesNoHalfFile) {
  std::mt19937_64 random(3);
  (void)kill_merges(
      6, "$attest check --kernel builtin:flash --dtype f32 --property attention.oracle --cases 1000 --quiet", random);
}

TEST(KillProgram, AJournalWithoutAWholeLineIsNoRun) {
  const std::string check =
      "$attest check --verbose --kernel builtin:flash --dtype f32 --property attention.oracle --cases 10 ";
  for (const char* left : {"", "{\"kind\":\"run\",\"sch"}) {
    for (const char* mode : {"", "--resume ", "--overwrite "}) {
      const fake::Folder folder;
      std::filesystem::create_directories(folder / "run");
      std::ofstream(folder / "run/run.jsonl") << left;
      expect_status(folder, check + mode + "--out run");
      EXPECT_EQ(read_journal(folder / "run").batches.size(), 1U);
    }
    const fake::Folder folder;
    std::filesystem::create_directories(folder / "run");
    std::ofstream(folder / "run/run.jsonl") << left;
    const ShellResult fuzz =
        shell(folder, "$attest fuzz --kernel builtin:flash --dtype f32 --runs 50 --quiet --resume --out run");
    EXPECT_EQ(fuzz.status, 0) << fuzz.output;
    EXPECT_TRUE(read_journal(folder / "run").run->fuzz);
  }
}

}  // namespace
}  // namespace attest
