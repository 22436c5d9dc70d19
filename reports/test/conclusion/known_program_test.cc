// attest check --known as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "reports/test/json.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

const std::string check =
    "$attest check --verbose --kernel fault:scale-of-all-heads --dtype f32 --property attention.oracle --property "
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
  EXPECT_THAT(output_of(folder, check, 1), Says("\nNEW attention.oracle by fault:scale-of-all-heads in f32: "));
  write_known(folder, {"attention.oracle"});
  EXPECT_THAT(output_of(folder, check), Says("known: 1 expected, 0 new or gone (known.toml)"));
  // The run itself says what it found, whatever was expected.
  EXPECT_EQ(summary_of(folder, "run")["verdict"], "violated");
  EXPECT_THAT(read_file(folder / "run/summary.md"), testing::StartsWith("## ❌ Attest: violated, as is known\n"));
  write_known(folder, {"attention.oracle", "attention.linear-in-values"});
  const std::string gone = output_of(folder, check + "--quiet", 1);
  EXPECT_THAT(read_file(folder / "run/summary.md"), testing::StartsWith("## ❌ Attest: violated\n"));
  EXPECT_THAT(gone, Says("\nGONE known.toml, line 7: attention.linear-in-values"));
  EXPECT_EQ(shell(folder, check + "--shard 0/2").status, 0) << "a part of a run says nothing of what is gone";
}

TEST(Known, ShardsAreHeldAgainstThemWhenTheyAreMerged) {
  const fake::Folder folder;
  write_known(folder, {});
  for (const std::string shard : {"0", "1", "2"})
    shell(folder, joined({check, "--shard ", shard, "/3; mv run part-", shard}));
  const std::string merge = "$attest merge part-0 part-1 part-2 -o whole.jsonl --known known.toml";
  EXPECT_THAT(output_of(folder, merge, 1), Says("NEW attention.oracle by fault:scale-of-all-heads in f32: "));
  EXPECT_TRUE(std::filesystem::exists(folder / "whole.jsonl"));
  write_known(folder, {"attention.oracle"});
  EXPECT_THAT(output_of(folder, merge), Says("known: 1 expected, 0 new or gone (known.toml)"));
  // What is gone, the whole can say, also when it was merged before; a part of it cannot.
  write_known(folder, {"attention.oracle", "attention.linear-in-values"});
  for (const char* runs : {"part-0 part-1 part-2", "whole.jsonl"}) {
    EXPECT_THAT(output_of(folder, std::string("$attest merge ") + runs + " -o again.jsonl --known known.toml", 1),
                Says("GONE known.toml, line 7: attention.linear-in-values"));
  }
  EXPECT_THAT(output_of(folder, "$attest merge part-0 part-1 -o two.jsonl --known known.toml"),
              Says("did not show in the part of the run that was made"));
  expect_status(folder,
                "head -n -1 part-2/run.jsonl > p && mv p part-2/run.jsonl; "
                "$attest merge part-0 part-1 part-2 -o k.jsonl --known known.toml");
  EXPECT_THAT(output_of(folder, "$attest merge absent -o x --known absent.toml", 2), Says("absent.toml"));
}

TEST(Known, RefusesAWrongFileBeforeTheRun) {
  const fake::Folder folder;
  write_known(folder, {"attention.orcale"});
  EXPECT_THAT(one_line_of(folder, check + "; s=$?; test ! -e run && exit $s", 2),
              Says("known.toml, line 4: no property of attest list --properties is named"));
  expect_refused("check --known absent.toml", "absent.toml");
  expect_refused("check --known x --fail-fast", "--known and --fail-fast exclude each other");
}

}  // namespace
}  // namespace attest
