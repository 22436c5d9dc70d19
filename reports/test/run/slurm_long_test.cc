// The recipe for Slurm under Slurm: a controller and a node on this machine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/journal/journal.h"
#include "core/test/places.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

const std::string chosen =
    "--kernel builtin:flash --kernel fault:scale-ignored --dtype f32 --property attention.oracle --property "
    "attention.linear-in-values --cases 40000 ";

// Four shards as a job array, of which one is killed in its middle and submitted again by itself.
TEST(SlurmLong, AnArrayOfWhichOneTaskWasKilledLeavesTheJournalOfOneRun) {
  const fake::Folder folder;
  expect_status(folder, "$attest check " + chosen + "--out one --quiet > /dev/null; $attest merge one -o one.jsonl");
  std::ofstream(folder / "campaign.sh") << fmt::format(R"sh(set -eu
submit() {{ sbatch --parsable --output=%a.log "$@" '{}/reports/examples/shards_slurm.sh' 4 campaign {}; }}
# Every task ends with the status of its shard, 1: a fault is found.
ended() {{ while squeue --noheader --jobs "$1" 2>/dev/null | grep -q .; do sleep 0.2; done; }}
id=$(submit --array=0-3)
until [ "$(wc -l < campaign/shard-1/run.jsonl 2>/dev/null || echo 0)" -gt 6 ]; do sleep 0.02; done
# The task's own process, in this folder alone.
for process in /proc/[0-9]*; do
  [ "$(readlink "$process/cwd" 2>/dev/null)" = "$PWD" ] || continue
  case "$(tr '\0' ' ' <"$process/cmdline")" in *" check "*" --shard 1/4 "*) kill -9 "${{process#/proc/}}" ;; esac
done
ended "$id"
cp campaign/shard-1/run.jsonl killed.jsonl
ended "$(submit --array=1)"
)sh",
                                                       source_folder(), chosen);
  const ShellResult result = shell(folder, "export ATTEST_PROGRAM=\"$attest\"; '" + source_folder() +
                                               "/reports/test/run/slurm_cluster.sh' \"$PWD/cluster\" bash campaign.sh");
  if (result.status == 77) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.status, 0) << result.output;
  const Journal killed = read_journal(folder / "killed.jsonl");
  EXPECT_TRUE(killed.unfinished());
  EXPECT_FALSE(killed.batches.empty());
  EXPECT_TRUE(read_file(folder / "campaign/shard-1/run.jsonl").starts_with(LineStamper().stamp(to_line(*killed.run))));
  const ShellResult same = shell(folder, "$attest merge campaign/shard-* -o c.jsonl && cmp one.jsonl c.jsonl");
  EXPECT_EQ(same.status, 0) << same.output << shell(folder, "tail -n 3 *.log").output;
  // The check has teeth: without the second submission the journals differ.
  expect_status(folder,
                "cp killed.jsonl campaign/shard-1/run.jsonl; "
                "$attest merge campaign/shard-* -o c.jsonl && cmp one.jsonl c.jsonl",
                1);
}

}  // namespace
}  // namespace attest
