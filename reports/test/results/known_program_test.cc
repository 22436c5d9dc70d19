// attest check --known as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using testing::HasSubstr;

const std::string check =
    "$attest check --kernel fault:scale-of-all-heads --dtype f32 --property attention.oracle --property "
    "attention.linear-in-values --cases 60 --jobs 1 --out run --overwrite --known known.toml ";

void write_known(const fake::Folder& folder, const std::vector<std::string>& properties) {
  std::ofstream file(folder / "known.toml");
  for (const std::string& property : properties)
    file << "[[finding]]\nkernel = \"fault:scale-of-all-heads\"\ndtype = \"f32\"\nproperty = \"" << property
         << "\"\nreason = \"planted\"\ndate = 2026-01-31\n";
}

TEST(Known, ExpectedViolationsDoNotFailARun) {
  const fake::Folder folder;
  write_known(folder, {});
  const ShellResult fresh = shell(folder, check);
  EXPECT_EQ(fresh.status, 1);
  EXPECT_THAT(fresh.output, HasSubstr("\nNEW attention.oracle by fault:scale-of-all-heads in f32: "));
  write_known(folder, {"attention.oracle"});
  const ShellResult known = shell(folder, check);
  EXPECT_EQ(known.status, 0) << known.output;
  EXPECT_THAT(known.output, HasSubstr("known: 1 expected, 0 new or gone (known.toml)"));
  // The run itself says what it found, whatever was expected.
  EXPECT_EQ(summary_of(folder, "run")["verdict"], "violated");
  write_known(folder, {"attention.oracle", "attention.linear-in-values"});
  const ShellResult gone = shell(folder, check + "--quiet");
  EXPECT_EQ(gone.status, 1);
  EXPECT_THAT(read_file(folder / "run/summary.md"), testing::StartsWith("## ❌ Attest: violated\n"));
  EXPECT_THAT(gone.output, HasSubstr("\nGONE known.toml, line 7: attention.linear-in-values"));
  EXPECT_EQ(shell(folder, check + "--shard 0/2").status, 0) << "a part of a run says nothing of what is gone";
}

TEST(Known, ShardsAreHeldAgainstThemWhenTheyAreMerged) {
  const fake::Folder folder;
  write_known(folder, {});
  for (const std::string shard : {"0", "1", "2"})
    shell(folder, joined({check, "--shard ", shard, "/3; mv run part-", shard}));
  const std::string merge = "$attest merge part-0 part-1 part-2 -o whole.jsonl --known known.toml";
  const ShellResult fresh = shell(folder, merge);
  EXPECT_EQ(fresh.status, 1);
  EXPECT_THAT(fresh.output, HasSubstr("NEW attention.oracle by fault:scale-of-all-heads in f32: "));
  EXPECT_TRUE(std::filesystem::exists(folder / "whole.jsonl"));
  write_known(folder, {"attention.oracle"});
  const ShellResult known = shell(folder, merge);
  EXPECT_EQ(known.status, 0) << known.output;
  EXPECT_THAT(known.output, HasSubstr("known: 1 expected, 0 new or gone (known.toml)"));
  // What is gone, the whole can say, also when it was merged before; a part of it cannot.
  write_known(folder, {"attention.oracle", "attention.linear-in-values"});
  for (const char* runs : {"part-0 part-1 part-2", "whole.jsonl"}) {
    const ShellResult gone = shell(folder, std::string("$attest merge ") + runs + " -o again.jsonl --known known.toml");
    EXPECT_EQ(gone.status, 1) << runs;
    EXPECT_THAT(gone.output, HasSubstr("GONE known.toml, line 7: attention.linear-in-values"));
  }
  const ShellResult two = shell(folder, "$attest merge part-0 part-1 -o two.jsonl --known known.toml");
  EXPECT_EQ(two.status, 0) << two.output;
  EXPECT_THAT(two.output, HasSubstr("did not show in the part of the run that was made"));
  const ShellResult killed = shell(folder,
                                   "head -n -1 part-2/run.jsonl > p && mv p part-2/run.jsonl; "
                                   "$attest merge part-0 part-1 part-2 -o k.jsonl --known known.toml");
  EXPECT_EQ(killed.status, 0) << killed.output;
  const ShellResult wrong = shell(folder, "$attest merge absent -o x --known absent.toml");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.output, HasSubstr("absent.toml"));
}

TEST(Known, RefusesAWrongFileBeforeTheRun) {
  const fake::Folder folder;
  write_known(folder, {"attention.orcale"});
  const ShellResult result = shell(folder, check + "; s=$?; test ! -e run && exit $s");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(lines_in(result.output), 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("known.toml, line 4: no property of attest list --properties is named"));
  expect_refused("check --known absent.toml", "absent.toml");
  expect_refused("check --known x --fail-fast", "--known and --fail-fast exclude each other");
}

}  // namespace
}  // namespace attest
