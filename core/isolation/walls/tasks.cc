#include "core/isolation/walls/tasks.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace attest::process {
namespace {

namespace fs = std::filesystem;

bool limits_are_the_namespaces() {
  struct utsname system{};
  if (::uname(&system) != 0) return false;
  int major = 0, minor = 0;
  const char* const end = system.release + std::strlen(system.release);
  const auto first = std::from_chars(system.release, end, major);
  if (first.ptr != end) std::from_chars(first.ptr + 1, end, minor);
  return major > 5 || (major == 5 && minor >= 14);
}

int tasks_of_user() {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    struct stat status{};
    const std::string process = at->path().filename().native();
    if (process.front() < '0' || process.front() > '9') continue;
    if (::stat((at->path() / "task").c_str(), &status) != 0 || status.st_uid != ::getuid()) continue;
    // One link for each task, and two as every folder has.
    count += static_cast<int>(status.st_nlink) - 2;
  }
  return count;
}

}  // namespace

int tasks_beside(bool bare, bool root) {
  constexpr int of_bubblewrap = 1;
  if (root) return 0;
  if (bare) return tasks_of_user();
  return of_bubblewrap + (limits_are_the_namespaces() ? 0 : tasks_of_user());
}

}  // namespace attest::process
