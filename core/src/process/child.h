// A supervised child process: its own process group, its standard error kept, killed and reaped without fail.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

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
/// An anonymous file in memory, close-on-exec, numbered from 10 up.
[[nodiscard]] Descriptor make_memory_file(const char* name);

/// Where a child's standard error goes, and the standard output of one that does not speak over it: a file of the run,
/// shared by every process started for the kernel, or memory.
class Log {
 public:
  /// `folder` empty: kept in memory, and only the newest part of it. The folder is created when it is missing; one that
  /// cannot be written throws UsageError.
  Log(const std::filesystem::path& folder, std::string_view kernel);
  [[nodiscard]] int descriptor() const { return fd_.get(); }
  /// The same for standard output.
  [[nodiscard]] int output_descriptor() const { return output_.get(); }
  /// Whether anything has been written to output_descriptor().
  [[nodiscard]] bool printed() const;
  /// What is appended from here on belongs to the process about to start.
  void mark();
  /// Last non-empty line appended since mark(), at most 200 bytes; empty: none.
  [[nodiscard]] std::string last_line() const;
  /// Keeps a log in memory small; nothing happens to one in a file.
  void trim();
  /// Empty for one in memory.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  Descriptor fd_;
  Descriptor output_;  // opened a second time, so that its offset is moved by what goes through it alone
  std::filesystem::path path_;
  off_t mark_ = 0;
};

/// What to start. The child has no descriptors but those named here, default signal handling, an empty signal mask, a
/// process group of its own (a terminal's Ctrl-C does not reach it), and OMP_NUM_THREADS=1 unless it is set.
struct Launch {
  std::vector<std::string> argv;  ///< argv[0] is searched on the PATH
  int standard_input = -1;        ///< -1: /dev/null
  int standard_output = -1;       ///< -1: as standard error
  int standard_error = -1;        ///< -1: /dev/null
  std::vector<int> further;       ///< become 3, 4, …
  std::uint64_t memory = 0;       ///< bytes it may hold (memory_limit.h) from right after its start on; 0: no limit
};

/// One child; moved, never copied. The destructor kills the whole group and reaps the child.
class Child {
 public:
  Child() = default;
  /// Throws KernelLoadError when the program cannot be executed at all.
  explicit Child(const Launch& launch);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill(); }
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Kills every process of the group and reaps the child; does nothing without one.
  void kill();
  /// Waits until `until` for the child to end by itself, then kills what is left of the group. Says how it ended, as in
  /// "exited with status 3", "was killed by signal 11 (Segmentation fault)"; "was still running" when it had to be
  /// killed.
  [[nodiscard]] std::string end(Clock::time_point until);
  /// Readable, to poll, once the child has ended; -1 where the system has no such descriptors.
  [[nodiscard]] int ended_descriptor() const { return ended_.get(); }
  /// Whether the child has ended by itself (it is left to be reaped).
  [[nodiscard]] bool has_ended() const;
  /// Whether a signal has stopped it.
  [[nodiscard]] bool is_stopped() const;

 private:
  pid_t pid_ = -1;
  Descriptor ended_;
};

/// "exited with status 3", "was killed by signal 9 (Killed)", from a status of waitpid.
[[nodiscard]] std::string describe_exit(int wait_status);

}  // namespace attest::process
