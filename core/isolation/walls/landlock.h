// Landlock as this project uses it, by its three system calls: the headers of a system may be older than its kernel.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace attest::process::landlock {

/// What is taken away unless a rule gives it back (linux/landlock.h: struct landlock_ruleset_attr).
struct Ruleset {
  std::uint64_t files = 0, network = 0, scopes = 0;
};
struct __attribute__((packed)) PathRule {
  std::uint64_t allowed = 0;
  std::int32_t descriptor = -1;
};

inline constexpr std::uint64_t execute = 1U << 0U, read_file = 1U << 2U, read_folder = 1U << 3U;
/// write_file, truncate and ioctl_dev: what a file may have beside being read and executed.
inline constexpr std::uint64_t of_a_file = execute | read_file | 1U << 1U | 1U << 14U | 1U << 15U;
inline constexpr std::uint64_t signals_and_abstract_sockets = 3, bind_and_connect = 3;
inline constexpr int keeps_signals = 6;  ///< the first ABI whose scopes there are

/// The version of this machine's; 0: it has none, or it is switched off.
inline int abi() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U);
  return version > 0 ? static_cast<int>(version) : 0;
}

/// All that can be taken away.
inline Ruleset everything(int abi) {
  const int rights = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  return {(1U << static_cast<unsigned>(rights)) - 1, abi >= 4 ? bind_and_connect : 0,
          abi >= keeps_signals ? signals_and_abstract_sockets : 0};
}

inline int create(const Ruleset& ruleset) {
  return static_cast<int>(::syscall(SYS_landlock_create_ruleset, &ruleset, sizeof ruleset, 0U));
}

/// Gives back `allowed` of what lies at the path, or below it. False and errno where that fails; a path that is not
/// there needs no rule.
inline bool allow(int ruleset, const char* path, std::uint64_t allowed) {
  const int there = ::open(path, O_PATH | O_CLOEXEC);
  if (there < 0) return errno == ENOENT;
  struct stat status{};
  const bool folder = ::fstat(there, &status) == 0 && S_ISDIR(status.st_mode);
  const PathRule rule{folder ? allowed : allowed & of_a_file, there};
  const bool good = ::syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0U) == 0;
  const int why = errno;
  ::close(there);
  errno = why;
  return good;
}

/// For this thread, and for all that it starts or becomes.
inline bool restrict_self(int ruleset) {
  return ::syscall(SYS_landlock_restrict_self, ruleset, 0U) == 0;
}

}  // namespace attest::process::landlock
