#include "core/isolation/descendants.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <random>

#include "core/isolation/child.h"

namespace attest::process {
namespace {

/// Entries of a folder as the system gives them: opendir allocates, which the child of a fork may not.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
  char name[1];
};

pid_t number_of(const char* name) {
  pid_t number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : 0;
}

/// Whether the file holds the text, which is shorter than a piece of it.
bool holds(int fd, std::string_view text) {
  std::array<char, 4096> piece;
  std::size_t kept = 0;
  for (;;) {
    const ssize_t got = ::read(fd, piece.data() + kept, piece.size() - kept);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const std::string_view all(piece.data(), kept + static_cast<std::size_t>(got));
    if (all.find(text) != std::string_view::npos) return true;
    kept = std::min(all.size(), text.size() - 1);
    std::memmove(piece.data(), piece.data() + all.size() - kept, kept);
  }
}

/// A file of a process: of the folder /proc, the process's number and the file's name.
Descriptor file_of(int processes, const char* process, std::string_view file) {
  std::array<char, 32> path{};
  const std::size_t length = std::strlen(process);
  if (length + 1 + file.size() >= path.size()) return {};
  std::memcpy(path.data(), process, length);
  path[length] = '/';
  std::memcpy(path.data() + length + 1, file.data(), file.size());
  return Descriptor(::openat(processes, path.data(), O_RDONLY | O_CLOEXEC));
}

/// When a process was started, in ticks since the system was; 0: it is gone.
std::uint64_t start_of(int processes, const char* process) {
  const Descriptor file = file_of(processes, process, "stat");
  std::array<char, 1024> text;
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  if (got <= 0) return 0;
  const std::string_view all(text.data(), static_cast<std::size_t>(got));
  // The name, field 2, may hold anything; the start is field 22.
  std::size_t at = all.rfind(')');
  for (int field = 2; field < 22 && at != std::string_view::npos; ++field) at = all.find(' ', at + 1);
  std::uint64_t value = 0;
  if (at == std::string_view::npos) return value;
  for (++at; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at)
    value = value * 10 + static_cast<std::uint64_t>(all[at] - '0');
  return value;
}

struct Ours {
  std::string mark;
  std::uint64_t start = 0;
};

const Ours& ours() {
  static const Ours one = [] {
    std::random_device random;
    const Descriptor processes(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return Ours{fmt::format("{:08x}{:08x}.", random(), random()), processes ? start_of(processes.get(), "self") : 0};
  }();
  return one;
}

bool is_marked(int processes, const char* process, std::string_view mark) {
  const Descriptor environment = file_of(processes, process, "environ");
  return environment && holds(environment.get(), mark);
}

/// Who is older than we are was not started by us, and to look into it may take as long as it likes.
bool kill_if_marked(int processes, const char* process, std::string_view mark) {
  if (start_of(processes, process) < ours().start || !is_marked(processes, process, mark)) return false;
  // Its number may be another's by now: so it is held, where the system can do that, and looked at again.
  const pid_t number = number_of(process);
  const Descriptor held(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  if (!held) return ::kill(number, SIGKILL) == 0;
  return is_marked(processes, process, mark) && ::syscall(SYS_pidfd_send_signal, held.get(), SIGKILL, nullptr, 0) == 0;
}

int kill_marked_once(std::string_view mark) {
  const Descriptor processes(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!processes) return 0;
  int killed = 0;
  alignas(Entry) std::array<char, 8192> entries;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, processes.get(), entries.data(), entries.size());
    if (got <= 0) return killed;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(entries.data() + at);
      if (number_of(entry->name) > 1 && kill_if_marked(processes.get(), entry->name, mark)) ++killed;
      at += entry->size;
    }
  }
}

}  // namespace

const std::string& mark_of_ours() {
  return ours().mark;
}

std::string new_mark() {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}{};", mark_of_ours(), ++count);
}

void kill_marked(std::string_view mark) noexcept {
  // A killed process has its environment until it is gone, and one that forks may be ahead of us.
  constexpr int most = 1000;
  for (int pass = 0; pass < most && kill_marked_once(mark) > 0; ++pass) {
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace attest::process
