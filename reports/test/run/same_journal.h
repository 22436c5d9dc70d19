// The same seed and the same program give the same journal, whatever the jobs, the shards and the interruptions.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/test/run/kills.h"
#include "reports/test/shell.h"

namespace attest {

/// Runs `options` in one piece and in so many shards by so many jobs each, one shard killed and resumed by others, and
/// compares what they merge to.
inline void expect_same_journal(const std::string& options, const std::vector<int>& shard_counts,
                                const std::vector<int>& jobs_of_shards) {
  const fake::Folder folder;
  const std::string check = fmt::format("$attest check {} --quiet", options);
  const Timed one = timed(folder, check + " --jobs 1 --out one > /dev/null; $attest merge one -o one.jsonl");
  ASSERT_EQ(one.result.status, 0) << one.result.output;
  for (const int shards : shard_counts) {
    for (const int jobs : jobs_of_shards) {
      std::string line = "rm -rf part-*; ";
      for (int i = 0; i < shards; ++i) {
        const std::string shard = fmt::format("{} --jobs {} --shard {}/{} --out part-{}", check, jobs, i, shards, i);
        // One shard in each is killed on its way and goes on with other jobs.
        if (i == shards / 2) {
          line += fmt::format(
              "{} > /dev/null & pid=$!; sleep {:.3f}; kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null; "
              "resume=; [ ! -e part-{}/run.jsonl ] || resume=--resume; {} $resume --jobs {} > /dev/null; ",
              shard, one.seconds * 0.4 / shards, i,
              shard.substr(0, shard.find(" --jobs")) + shard.substr(shard.find(" --shard")), jobs % 3 + 1);
        } else {
          line += shard + " > /dev/null; ";
        }
      }
      const ShellResult same = shell(folder, line + "$attest merge part-* -o all.jsonl && cmp one.jsonl all.jsonl");
      EXPECT_EQ(same.status, 0) << shards << " shards, " << jobs << " jobs: " << same.output;
    }
  }
  // Another seed is another journal.
  const ShellResult other = shell(folder, check +
                                              " --seed 2 --out other > /dev/null; $attest merge other -o other.jsonl;"
                                              " cmp one.jsonl other.jsonl");
  EXPECT_EQ(other.status, 1);
}

}  // namespace attest
