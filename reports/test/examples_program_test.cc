// The recipes of reports/examples, as they are handed out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program_checks.h"
#include "shell.h"

namespace attest {
namespace {

const std::string examples = ATTEST_SOURCE_DIR "/reports/examples/";
const std::string chosen =
    "--kernel fault:scale-ignored --kernel builtin:flash --dtype f32 --property attention.oracle --property "
    "attention.linear-in-values --cases 200 ";

ShellResult run(const fake::Folder& folder, const std::string& line) {
  return shell(folder, "export ATTEST_PROGRAM=\"$attest\"; " + line);
}

/// The journal of a run of one piece, as one.jsonl.
void run_in_one_piece(const fake::Folder& folder) {
  EXPECT_EQ(shell(folder, "$attest check " + chosen + "--out one --quiet > /dev/null").status, 1);
  EXPECT_EQ(shell(folder, "$attest merge one -o one.jsonl").status, 0);
}

TEST(Examples, ShardsByParallelLeaveTheJournalOfOneRun) {
  const fake::Folder folder;
  if (shell(folder, "command -v parallel").status != 0) GTEST_SKIP() << "GNU parallel is not here";
  run_in_one_piece(folder);
  const std::string sharded = "'" + examples + "shards_parallel.sh' 3 'a campaign' " + chosen;
  const ShellResult first = run(folder, sharded);
  EXPECT_EQ(first.status, 1) << first.output;
  EXPECT_EQ(shell(folder, "cmp one.jsonl 'a campaign/run.jsonl' && test -s 'a campaign/report.html'").status, 0);
  // A shard that was killed in the middle of a line, and one that never began.
  EXPECT_EQ(shell(folder,
                  "cd 'a campaign' && head -c 9000 shard-1/run.jsonl > torn && mv torn shard-1/run.jsonl && "
                  "rm -r shard-2 run.jsonl")
                .status,
            0);
  const ShellResult again = run(folder, sharded);
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_EQ(shell(folder, "cmp one.jsonl 'a campaign/run.jsonl'").status, 0);
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
  EXPECT_EQ(shell(folder, "head -c 9000 slurm/shard-1/run.jsonl > torn && mv torn slurm/shard-1/run.jsonl").status, 0);
  EXPECT_EQ(shard("1"), 1) << "requeued";
  EXPECT_EQ(shell(folder, "$attest merge slurm/shard-* -o s.jsonl && cmp one.jsonl s.jsonl").status, 0);
}

/// The shell lines of a workflow as one script each: of the steps or the job named, in $name.sh.
constexpr const char* unpack = R"py(
import sys, yaml
flow = yaml.safe_load(open(sys.argv[1]))
if 'stages' in flow:
    scripts = {name: '\n'.join(job['script']) for name, job in flow.items() if isinstance(job, dict) and 'script' in job}
else:
    scripts = {step['name'].split()[0]: step['run'] for step in flow['jobs']['check']['steps'] if 'run' in step}
for name, script in scripts.items():
    open(name + '.sh', 'w').write('set -e\n' + script.replace('--cases 500', '--dtype f32 --cases 20'))
)py";

/// A project with a kernel, the program where the workflow would clone it to, and the workflow's scripts.
bool unpacked(const fake::Folder& folder, const std::string& workflow, const std::string& kernel) {
  std::ofstream(folder / "unpack.py") << unpack;
  if (shell(folder, "/usr/bin/python3 -c 'import yaml'").status != 0) return false;
  const ShellResult result =
      shell(folder, "/usr/bin/python3 unpack.py '" + examples + workflow +
                        "' && mkdir -p attest/core && ln -s \"$attest\" attest/attest && "
                        "ln -s '" ATTEST_SOURCE_DIR
                        "/core/include' attest/core/include && "
                        "cp '" ATTEST_SOURCE_DIR "/reports/test/user_project/mine.c' . && cp '" ATTEST_SOURCE_DIR
                        "/reports/test/user_project/broken.c' . && cc -shared -fPIC -I attest/core/include -o "
                        "libmine.so " +
                        kernel + " -lm");
  EXPECT_EQ(result.status, 0) << result.output;
  return result.status == 0;
}

TEST(Examples, TheWorkflowOfGitHubRunsAsItStands) {
  const fake::Folder right, wrong;
  if (!unpacked(right, "github-actions.yml", "mine.c")) GTEST_SKIP() << "python3-yaml is not here";
  EXPECT_EQ(shell(right, "bash Build.sh && bash Check.sh").status, 0);
  EXPECT_EQ(shell(right,
                  "GITHUB_STEP_SUMMARY=shown.md sh Show.sh && cmp shown.md run/summary.md && sh Hand.sh && "
                  "cmp run/report.html pages/index.html && test -s run/attest.sarif && test -s run/junit.xml")
                .status,
            0);
  // What was accepted is held against; the same once more is not worse.
  EXPECT_EQ(shell(right, "mv run/tolerances.json attest-baseline.json && rm -r run && bash Check.sh").status, 0);
  ASSERT_TRUE(unpacked(wrong, "github-actions.yml", "broken.c"));
  EXPECT_EQ(shell(wrong, "bash Check.sh").status, 1);
  EXPECT_EQ(shell(wrong, "GITHUB_STEP_SUMMARY=shown.md sh Show.sh && head -1 shown.md").output,
            "## ❌ Attest: violated\n");
  EXPECT_EQ(shell(right, "rm -r run && cp '" + (wrong / "libmine.so").string() + "' . && bash Check.sh").status, 1);
  EXPECT_THAT(read_file(right / "run/junit.xml"), testing::HasSubstr("name=\"WORSE "));
}

TEST(Examples, TheJobsOfGitLabRunAsTheyStand) {
  const fake::Folder folder;
  if (!unpacked(folder, "gitlab-ci.yml", "mine.c")) GTEST_SKIP() << "python3-yaml is not here";
  for (const char* index : {"1", "2"})
    EXPECT_EQ(shell(folder, std::string("CI_NODE_TOTAL=2 CI_NODE_INDEX=") + index + " sh check.sh").status, 0);
  const ShellResult joined = shell(folder, "sh pages.sh");
  EXPECT_EQ(joined.status, 0) << joined.output;
  EXPECT_THAT(joined.output, testing::HasSubstr("## ✅ Attest: held"));
  EXPECT_EQ(shell(folder, "test -s public/index.html && test -s whole/junit.xml && test -s whole/run.jsonl").status, 0);
  const ShellResult again =
      shell(folder, "mv whole/tolerances.json attest-baseline.json && rm -r whole && sh pages.sh");
  EXPECT_EQ(again.status, 0) << again.output;
}

}  // namespace
}  // namespace attest
