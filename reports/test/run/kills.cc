#include "reports/test/run/kills.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <vector>

#include "core/journal/journal.h"
#include "core/support/files.h"
#include "reports/test/run/left_running.h"

namespace attest {

Timed timed(const fake::Folder& folder, const std::string& line) {
  const auto start = std::chrono::steady_clock::now();
  ShellResult result = shell(folder, line);
  return {std::move(result), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

Kill drawn_kill(std::mt19937_64& random, double most) {
  constexpr std::array signals{"TERM", "HUP", "QUIT", "INT"};
  const double seconds = std::uniform_real_distribution(0.0, most)(random);
  const std::size_t which = std::uniform_int_distribution<std::size_t>(0, 15)(random);
  return {seconds, which < signals.size() ? signals[which] : "KILL"};
}

std::ostream& operator<<(std::ostream& stream, const Kill& kill) {
  return stream << kill.signal << " after " << kill.seconds << " s";
}

void kill_after(const fake::Folder& folder, const std::string& command, const Kill& kill, const std::string& journal) {
  const LeftRunning left;
  // Under nohup it would be ignored, by whatever is started here as well.
  std::signal(SIGHUP, SIG_DFL);
  shell(folder,
        fmt::format("{} {} > output 2>&1 & pid=$!; sleep {:.4f}; cp {} before.jsonl 2>/dev/null; kill -{} $pid; "
                    "wait $pid",
                    left.variable(), command, kill.seconds, journal, kill.signal));
  const std::vector<std::string> running = left.after_a_moment();
  EXPECT_TRUE(running.empty()) << kill << ": " << running.front();
}

std::string whole_lines(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return "";
  const std::string text = read_file(file);
  return text.substr(0, text.rfind('\n') + 1);
}

std::set<std::string> cases_of(const fake::Folder& folder, const std::string& journal) {
  std::set<std::string> files;
  for (const FindingRecord& finding : read_journal(folder / journal).findings) files.insert(finding.case_file);
  return files;
}

void expect_same_cases(const fake::Folder& folder) {
  std::set<std::string> known = cases_of(folder, "killed");
  const auto same = [&](const std::string& file) {
    known.insert(file);
    EXPECT_EQ(shell(folder, fmt::format("cmp whole/{} killed/{}", file, file)).status, 0) << file;
  };
  for (const std::string& file : cases_of(folder, "k")) same(file);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "whole/cases"))
    if (const std::string name = entry.path().filename(); name.find("--worst.") != std::string::npos)
      same("cases/" + name);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "killed/cases"))
    EXPECT_TRUE(known.contains("cases/" + entry.path().filename().string())) << entry.path();
  for (const std::string& file : known) EXPECT_TRUE(std::filesystem::exists(folder / ("killed/" + file))) << file;
}

Kills kill_checks(int moments, const std::string& check, std::mt19937_64& random, int status) {
  const fake::Folder folder;
  const Timed whole = timed(folder, check + " --out whole");
  EXPECT_EQ(whole.result.status, status) << whole.result.output;
  EXPECT_EQ(shell(folder, "$attest merge whole -o w").status, 0);
  EXPECT_EQ(cases_of(folder, "w").empty(), status == 0);
  Kills kills;
  for (int i = 0; i < moments; ++i) {
    const Kill kill = drawn_kill(random, whole.seconds);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "before.jsonl");
    kill_after(folder, check + " --out killed", kill, "killed/run.jsonl");
    const std::string journal = whole_lines(folder / "killed/run.jsonl");
    EXPECT_TRUE(journal.starts_with(whole_lines(folder / "before.jsonl"))) << kill;
    const bool begun = !journal.empty();
    if (begun) {
      const Journal read = read_journal(folder / "killed");
      ++(read.unfinished() ? kills.within : kills.after_the_end);
    } else {
      ++kills.before_the_journal;
    }
    const bool there = std::filesystem::exists(folder / "killed");
    const ShellResult resumed = shell(folder, check + " --out killed" + (there ? " --resume" : ""));
    EXPECT_EQ(resumed.status, status) << kill << "\n" << resumed.output;
    const ShellResult same = shell(folder, "$attest merge killed -o k && cmp w k");
    EXPECT_EQ(same.status, 0) << kill << "\n" << same.output;
    expect_same_cases(folder);
  }
  return kills;
}

Kills kill_campaigns(int moments, const std::string& fuzz, double most_seconds, double slack, std::mt19937_64& random) {
  const fake::Folder folder;
  Kills kills;
  int grown = 0;
  for (int i = 0; i < moments; ++i) {
    const Kill kill = drawn_kill(random, most_seconds);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "before.jsonl");
    kill_after(folder, fmt::format("{} --out killed --time 1h", fuzz), kill, "killed/run.jsonl");
    const auto killed = std::filesystem::file_time_type::clock::now();
    const std::string before = whole_lines(folder / "killed/run.jsonl");
    EXPECT_TRUE(before.starts_with(whole_lines(folder / "before.jsonl"))) << kill;
    const bool there = std::filesystem::exists(folder / "killed");
    std::int64_t runs = 0;
    if (before.empty()) {
      ++kills.before_the_journal;
    } else {
      ++kills.within;
      const Journal read = read_journal(folder / "killed");
      // What a signal that it may answer ends says that it was interrupted.
      EXPECT_TRUE(read.unfinished() || (kill.signal != std::string_view("KILL") && read.interrupted())) << kill;
      for (const BatchRecord& batch : read.batches) runs += batch.tally.cases();
      const std::chrono::duration<double> age = killed - std::filesystem::last_write_time(folder / "killed/run.jsonl");
      EXPECT_LT(age.count(), slack) << kill;
    }
    const ShellResult resumed =
        shell(folder, fmt::format("{} --out killed{} --time 0.5s", fuzz, there ? " --resume" : ""));
    EXPECT_EQ(resumed.status, 0) << kill << "\n" << resumed.output;
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

Kills kill_merges(int moments, const std::string& check, std::mt19937_64& random) {
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
  Kills kills;
  for (int i = 0; i < moments; ++i) {
    const bool to_folder = i % 3 == 2;
    const Kill kill = drawn_kill(random, 1.2 * (to_folder ? into_folder : file).seconds);
    std::filesystem::remove_all(folder / "killed");
    std::filesystem::remove(folder / "k");
    if (i % 3 == 1) {
      EXPECT_EQ(shell(folder, "cp part-0/run.jsonl k").status, 0);
    }
    const std::string stood = i % 3 == 1 ? read_file(folder / "k") : "";
    kill_after(folder, std::string("$attest merge part-0 part-1 -o ") + (to_folder ? "killed/" : "k"), kill, "k");
    const std::filesystem::path result = to_folder ? folder / "killed/run.jsonl" : folder / "k";
    const std::string left = std::filesystem::exists(result) ? read_file(result) : "";
    EXPECT_TRUE(left == stood || left == whole) << kill;
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
