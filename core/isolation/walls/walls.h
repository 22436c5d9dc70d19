// Walls around a kernel's process, for a verdict that the kernel cannot write (reports/guide/judging.md).
//
//   const auto walls = std::make_shared<Walls>(Walls{.readable = {"/home/me/weights"}, .hidden = {run_folder}});
//   if (const std::string why = why_no_walls(*walls); !why.empty()) throw UsageError(why);
//   hide_judge();
//   KernelOptions options;
//   options.walls = walls;
//
// There are two kinds. Namespaces are made by bubblewrap: the kernel's process sees no process but its own, no network,
// and a file system that holds the system's libraries, itself and what is readable. Where a machine makes none, as in
// most containers, the bare kind stands: the same rules of Landlock, the same refused system calls and some more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// One wall, for tests that leave it out.
enum class Wall : std::uint8_t { namespaces, landlock, system_calls, limits, other_user };

struct Walls {
  /// Files and folders seen at their own paths, read-only, beside the system's libraries. They are there when the
  /// kernel starts; none lies in /proc, /sys or /dev. Where root judges, the kernel is another user: they, and its own
  /// file, are to be readable by everyone.
  std::vector<std::filesystem::path> readable{};
  /// Folders seen as empty, even below a readable one or beside the kernel's own library (the run's folder). They are
  /// there when the kernel starts.
  std::vector<std::filesystem::path> hidden{};
  /// Of the kernel's processes, threads included.
  int most_processes = 64;
  /// Of the walls' own tests: what is not built. Without namespaces the walls are of the bare kind.
  std::vector<Wall> left_out{};
};

/// Empty where walls can be built on this machine, else one line: what is missing, and the remedy. Starts a trivial
/// process behind them; what kind of walls this machine has is tried once, and remembered. Any thread.
[[nodiscard]] std::string why_no_walls(const Walls& walls);

/// One line about the walls that stand here, and about those that do not: "own user, process, network, IPC and
/// file namespaces; of /proc only cpuinfo; 83 system calls refused; Landlock ABI 7; …". Where none can be built,
/// why_no_walls's line.
[[nodiscard]] std::string walls_text(const Walls& walls);

/// Makes this process one that no other process of the same user reads, writes or traces, and that leaves no memory
/// image. For the judge, once, before the first kernel is started.
void hide_judge();

}  // namespace attest
