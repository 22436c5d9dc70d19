// The recipes of reports/examples, as they are handed out.
#include <gtest/gtest.h>

#include "core/test/places.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

const std::string examples = source_folder() + "/reports/examples/";
const std::string chosen =
    "--kernel fault:scale-ignored --kernel builtin:flash --dtype f32 --property attention.oracle --property "
    "attention.linear-in-values --cases 200 ";

ShellResult run(const fake::Folder& folder, const std::string& line) {
  return shell(folder, "export ATTEST_PROGRAM=\"$attest\"; " + line);
}

/// The journal of a run of one piece, as one.jsonl.
void run_in_one_piece(const fake::Folder& folder) {
  expect_status(folder, "$attest check " + chosen + "--out one --quiet > /dev/null", 1);
  expect_status(folder, "$attest merge one -o one.jsonl");
}

TEST(Examples, ShardsByParallelLeaveTheJournalOfOneRun) {
  const fake::Folder folder;
  if (shell(folder, "command -v parallel").status != 0) GTEST_SKIP() << "GNU parallel is not here";
  run_in_one_piece(folder);
  const std::string sharded = "'" + examples + "shards_parallel.sh' 3 'a campaign' " + chosen;
  const ShellResult first = run(folder, sharded);
  EXPECT_EQ(first.status, 1) << first.output;
  expect_status(folder, "cmp one.jsonl 'a campaign/run.jsonl' && test -s 'a campaign/report.html'");
  // A shard that was killed in the middle of a line, and one that never began.
  expect_status(folder,
                "cd 'a campaign' && head -c 9000 shard-1/run.jsonl > torn && mv torn shard-1/run.jsonl && "
                "rm -r shard-2 run.jsonl");
  const ShellResult again = run(folder, sharded);
  EXPECT_EQ(again.status, 1) << again.output;
  expect_status(folder, "cmp one.jsonl 'a campaign/run.jsonl'");
  // The worst of the shards decides.
  EXPECT_EQ(run(folder, "'" + examples +
                            "shards_parallel.sh' 2 held --kernel builtin:flash --dtype f32 --cases 20 "
                            "--property attention.oracle")
                .status,
            0);
  EXPECT_EQ(run(folder, "'" + examples + "shards_parallel.sh' 2 wrong --kernel builtin:flsh").status, 2);
  EXPECT_EQ(run(folder, "'" + examples + "shards_parallel.sh' 2").status, 2);
}

TEST(Examples, ShardsOfASlurmArrayLeaveTheJournalOfOneRun) {
  const fake::Folder folder;
  run_in_one_piece(folder);
  const auto shard = [&](const char* index) {
    return run(folder, "SLURM_ARRAY_TASK_ID=" + std::string(index) + " bash '" + examples +
                           "shards_slurm.sh' 2 slurm " + chosen)
        .status;
  };
  EXPECT_EQ(shard("0"), 1);
  EXPECT_EQ(shard("1"), 1);
  expect_status(folder, "head -c 9000 slurm/shard-1/run.jsonl > torn && mv torn slurm/shard-1/run.jsonl");
  EXPECT_EQ(shard("1"), 1) << "requeued";
  expect_status(folder, "$attest merge slurm/shard-* -o s.jsonl && cmp one.jsonl s.jsonl");
}

}  // namespace
}  // namespace attest
