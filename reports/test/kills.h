// Programs that are killed at random moments, and what has to be true of what they leave.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <string>

#include "attest/files.h"
#include "attest/journal.h"
#include "shell.h"

namespace attest {

/// A line of shell and what it costs.
struct Timed {
  ShellResult result;
  double seconds = 0;
};

inline Timed timed(const fake::Folder& folder, const std::string& line) {
  const auto start = std::chrono::steady_clock::now();
  ShellResult result = shell(folder, line);
  return {std::move(result), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

/// Starts `command`, copies `journal` to before.jsonl after so many seconds, and kills the program at once.
inline void kill_after(const fake::Folder& folder, const std::string& command, double seconds,
                       const std::string& journal) {
  shell(folder, fmt::format("{} > output 2>&1 & pid=$!; sleep {:.4f}; cp {} before.jsonl 2>/dev/null; kill -9 $pid; "
                            "wait $pid",
                            command, seconds, journal));
}

/// Lines that end, of a file that may not be there.
inline std::string whole_lines(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return "";
  const std::string text = read_file(file);
  return text.substr(0, text.rfind('\n') + 1);
}

/// What a kill may have left: moments at which it came, by what it hit.
struct Kills {
  int before_the_journal = 0, within = 0, after_the_end = 0;
};

/// Kills a check at `moments` random moments between its start and its end. After each the journal can be read, holds
/// what it held before, and goes on to the canonical journal of a run that nothing disturbed.
inline Kills kill_checks(int moments, const std::string& check) {
  const fake::Folder folder;
  const Timed whole = timed(folder, check + " --out whole");
  EXPECT_EQ(whole.result.status, 0) << whole.result.output;
  EXPECT_EQ(shell(folder, "$attest merge whole -o w").status, 0);
  std::mt19937 random(1);
  Kills kills;
  for (int i = 0; i < moments; ++i) {
    const double seconds = std::uniform_real_distribution(0.0, whole.seconds)(random);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "before.jsonl");
    kill_after(folder, check + " --out killed", seconds, "killed/run.jsonl");
    const std::string journal = whole_lines(folder / "killed/run.jsonl");
    EXPECT_TRUE(journal.starts_with(whole_lines(folder / "before.jsonl"))) << seconds;
    const bool begun = !journal.empty();
    if (begun) {
      const Journal read = read_journal(folder / "killed");
      ++(read.unfinished() ? kills.within : kills.after_the_end);
    } else {
      ++kills.before_the_journal;
    }
    const bool there = std::filesystem::exists(folder / "killed/run.jsonl");
    const ShellResult resumed = shell(folder, check + " --out killed" + (there ? " --resume" : ""));
    EXPECT_EQ(resumed.status, 0) << seconds << "\n" << resumed.output;
    const ShellResult same = shell(folder, "$attest merge killed -o k && cmp w k");
    EXPECT_EQ(same.status, 0) << seconds << "\n" << same.output;
  }
  return kills;
}

/// Kills campaigns of `seconds` each. After each the journal can be read, holds what it held before and, once a
/// campaign has begun, what it had done up to `slack` seconds before the kill, and a campaign goes on with it.
inline Kills kill_campaigns(int moments, const std::string& fuzz, double most_seconds, double slack) {
  const fake::Folder folder;
  std::mt19937 random(2);
  Kills kills;
  int grown = 0;
  for (int i = 0; i < moments; ++i) {
    const double seconds = std::uniform_real_distribution(0.0, most_seconds)(random);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "before.jsonl");
    kill_after(folder, fmt::format("{} --out killed --time 1h", fuzz), seconds, "killed/run.jsonl");
    const auto killed = std::filesystem::file_time_type::clock::now();
    const std::string before = whole_lines(folder / "killed/run.jsonl");
    EXPECT_TRUE(before.starts_with(whole_lines(folder / "before.jsonl"))) << seconds;
    const bool there = std::filesystem::exists(folder / "killed/run.jsonl");
    std::int64_t runs = 0;
    if (before.empty()) {
      ++kills.before_the_journal;
    } else {
      ++kills.within;
      const Journal read = read_journal(folder / "killed");
      EXPECT_TRUE(read.unfinished());
      for (const BatchRecord& batch : read.batches) runs += batch.tally.cases();
      const std::chrono::duration<double> age = killed - std::filesystem::last_write_time(folder / "killed/run.jsonl");
      EXPECT_LT(age.count(), slack) << seconds;
    }
    const ShellResult resumed =
        shell(folder, fmt::format("{} --out killed{} --time 0.5s", fuzz, there ? " --resume" : ""));
    EXPECT_EQ(resumed.status, 0) << seconds << "\n" << resumed.output;
    EXPECT_TRUE(whole_lines(folder / "killed/run.jsonl").starts_with(before));
    const Journal after = read_journal(folder / "killed");
    EXPECT_FALSE(after.unfinished());
    std::int64_t all = 0;
    for (const BatchRecord& batch : after.batches) all += batch.tally.cases();
    EXPECT_GE(all, runs);
    if (all > runs) ++grown;
  }
  // On a busy machine a short campaign may end before its first run.
  EXPECT_GT(2 * grown, moments);
  return kills;
}

/// Kills merges into a file, into a file that stands already, and into a folder. After each the file is whole or what
/// it was, and the merge can be made again.
inline Kills kill_merges(int moments, const std::string& check) {
  const fake::Folder folder;
  for (const char* shard : {"0", "1"}) {
    const ShellResult part = shell(folder, fmt::format("{} --shard {}/2 --out part-{}", check, shard, shard));
    EXPECT_EQ(part.status, 0) << part.output;
  }
  const Timed file = timed(folder, "$attest merge part-0 part-1 -o w");
  const Timed into_folder = timed(folder, "$attest merge part-0 part-1 -o whole/");
  EXPECT_EQ(file.result.status, 0) << file.result.output;
  EXPECT_EQ(into_folder.result.status, 0) << into_folder.result.output;
  const std::string whole = read_file(folder / "w");
  EXPECT_EQ(read_file(folder / "whole/run.jsonl"), whole);
  std::mt19937 random(3);
  Kills kills;
  for (int i = 0; i < moments; ++i) {
    const bool to_folder = i % 3 == 2;
    const double seconds = std::uniform_real_distribution(0.0, 1.2 * (to_folder ? into_folder : file).seconds)(random);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "k");
    if (i % 3 == 1) {
      EXPECT_EQ(shell(folder, "cp part-0/run.jsonl k").status, 0);
    }
    const std::string stood = i % 3 == 1 ? read_file(folder / "k") : "";
    kill_after(folder, std::string("$attest merge part-0 part-1 -o ") + (to_folder ? "killed/" : "k"), seconds, "k");
    const std::filesystem::path result = to_folder ? folder / "killed/run.jsonl" : folder / "k";
    const std::string left = std::filesystem::exists(result) ? read_file(result) : "";
    EXPECT_TRUE(left == stood || left == whole) << seconds;
    ++(left == whole ? kills.after_the_end : kills.within);
    if (left == whole && to_folder) {
      // The journal comes last.
      EXPECT_TRUE(std::filesystem::exists(folder / "killed/report.html"));
      continue;
    }
    const ShellResult again =
        shell(folder, std::string("$attest merge part-0 part-1 -o ") + (to_folder ? "killed/" : "k"));
    EXPECT_EQ(again.status, 0) << again.output;
    EXPECT_EQ(read_file(result), whole);
  }
  return kills;
}

}  // namespace attest
