#include "core/isolation/memory_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

namespace attest::process {
namespace {

/// The limit for `bytes`, never above what this process may set.
rlimit limit_of(std::uint64_t bytes, const rlimit& now) {
  const rlim_t wanted = std::min<rlim_t>(bytes, now.rlim_max);
  return {wanted, wanted};
}

}  // namespace

std::uint64_t memory_held() noexcept {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 256> text{};
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  // Pages: size resident shared text lib data dt
  int field = 0;
  std::uint64_t value = 0;
  for (ssize_t i = 0; i < got; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (c == ' ') {
      if (++field > 5) break;
      value = 0;
    } else if (c >= '0' && c <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(c - '0');
    }
  }
  return field >= 5 ? value * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void limit_own_memory(std::uint64_t bytes) {
  rlimit now{};
  if (bytes == 0 || ::getrlimit(RLIMIT_DATA, &now) != 0) return;
  const std::uint64_t held = memory_held();
  const rlimit limit = limit_of(bytes > std::numeric_limits<std::uint64_t>::max() - held ? bytes : bytes + held, now);
  ::setrlimit(RLIMIT_DATA, &limit);
}

void limit_memory_of(pid_t process, std::uint64_t bytes) {
  rlimit now{};
  if (bytes == 0 || ::prlimit(process, RLIMIT_DATA, nullptr, &now) != 0) return;
  const rlimit limit = limit_of(bytes, now);
  ::prlimit(process, RLIMIT_DATA, &limit, nullptr);
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 4> units{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

bool tells_of_memory(std::string_view message) {
  constexpr std::array<std::string_view, 8> words{
      "bad_alloc",     "MemoryError",     "OutOfMemory",           "out of memory",
      "Out of memory", "allocate memory", "of memory that it may", "DefaultCPUAllocator"};
  return std::ranges::any_of(words, [&](std::string_view word) { return message.find(word) != message.npos; });
}

}  // namespace attest::process
