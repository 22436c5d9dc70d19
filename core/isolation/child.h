// A supervised child process: its own process group, killed with all that it started, and reaped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/isolation/walls/construction.h"

namespace attest::process {

using Clock = std::chrono::steady_clock;

/// Owns a file descriptor; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Both ends of a pipe / of a connected pair of packet sockets, close-on-exec, with numbers from 10 up so that none
/// collides with a number given out in a child. Throw std::system_error when the system has no descriptors left.
struct Pair {
  Descriptor read, write;
};
[[nodiscard]] Pair make_pipe();
[[nodiscard]] Pair make_socket_pair();
/// An anonymous file in memory that can be sealed, close-on-exec, numbered from 10 up.
[[nodiscard]] Descriptor make_memory_file(const char* name);
/// Adds seals (fcntl's F_SEAL_…), and that there will be no more. Throws std::system_error.
void seal(const Descriptor& file, int seals);

/// What a kernel's processes write to standard error, and to standard output where they do not speak over it: a file of
/// the run, shared by a kernel and its clones. Any thread.
class Log {
 public:
  /// Bytes that a file holds of what is written; of the rest only the end is kept.
  static constexpr std::uint64_t most = std::uint64_t{4} << 20U;
  /// As much of the end.
  static constexpr std::size_t end_bytes = 4096;

  /// `folder` empty: nothing is kept. The folder is created when it is missing; one that cannot be written throws
  /// UsageError.
  Log(const std::filesystem::path& folder, std::string_view kernel);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  /// Says how much was cut, and writes the end.
  ~Log();
  void add(std::string_view text);
  /// Empty where nothing is kept.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void write(std::string_view text);

  std::mutex mutex_;
  Descriptor fd_;
  std::filesystem::path path_;
  std::uint64_t held_ = 0;  ///< bytes, of earlier runs in this folder too
  std::uint64_t cut_ = 0;   ///< bytes
  std::string end_;         ///< of what was cut
};

/// What is wrong where the system gives out no more of something, with a remedy; empty for any other error number. It
/// is never a kernel's doing.
[[nodiscard]] std::string why_no_more(int error);

/// What to start. The child has no descriptors but those named here, default signal handling, an empty signal mask, a
/// process group of its own (a terminal's Ctrl-C does not reach it), and OMP_NUM_THREADS=1 unless it is set.
struct Launch {
  std::vector<std::string> argv;  ///< argv[0] is searched on the PATH
  int standard_input = -1;        ///< -1: /dev/null
  int standard_output = -1;       ///< -1: as standard error
  int standard_error = -1;        ///< -1: /dev/null
  std::vector<int> further;       ///< become 3, 4, …
  std::uint64_t memory = 0;       ///< bytes it may hold (memory_limit.h) from right after its start on; 0: no limit
  /// Null: none. Behind walls the environment is a short one of its own, without a mark.
  std::shared_ptr<const Walls> walls{};
  std::vector<SeenAs> seen{};  ///< behind walls, beside the system's libraries, the adapters and Walls::readable
};

class Output;

/// One child; moved, never copied. The destructor kills it with all that it started and reaps it. So does this
/// program's end, whatever ends it (watcher.h).
class Child {
 public:
  Child() = default;
  /// Throws KernelLoadError when the program cannot be executed at all, UsageError for want of descriptors or
  /// processes.
  explicit Child(const Launch& launch);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill(); }
  /// Kills the child, its group and what it started, and reaps it; does nothing without one.
  void kill();
  /// Waits until `until` for the child to end by itself, then kills what is left of it. Says how it ended, as in
  /// "exited with status 3", "was killed by signal 11 (Segmentation fault)"; "was still running" when it had to be
  /// killed. `output` is taken in meanwhile, or a child that writes would not come to its end.
  [[nodiscard]] std::string end(Clock::time_point until, Output* output = nullptr);
  /// Readable, to poll, once the child has ended; -1 where the system has no such descriptors.
  [[nodiscard]] int ended_descriptor() const { return ended_.get(); }
  /// Whether the child has ended by itself (it is left to be reaped).
  [[nodiscard]] bool has_ended() const;
  /// Whether a signal has stopped it.
  [[nodiscard]] bool is_stopped() const;

 private:
  void wait_until(Clock::time_point until, Output* output) const;

  pid_t pid_ = -1;
  std::string mark_;  ///< of what it starts (descendants.h); empty behind walls
  Descriptor ended_;
};

/// "exited with status 3", "was killed by signal 9 (Killed)", from a status of waitpid.
[[nodiscard]] std::string describe_exit(int wait_status);

}  // namespace attest::process
