#include "core/isolation/walls/walls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <system_error>

#include "core/isolation/walls/construction.h"
#include "core/isolation/walls/landlock.h"
#include "core/isolation/walls/refused_calls.h"
#include "core/support/descriptor.h"
#include "core/support/errors.h"
#include "core/support/visible.h"

namespace attest {
namespace {

using namespace process;

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (std::string& text : strings) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// Runs it to its end; empty where that was a good one, else the last line of what it said.
std::string why_it_fails(Construction made) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::generic_category().message(errno);
  const attest::Descriptor said(ends[0]);
  attest::Descriptor saying(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, saying.number(), 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, made.argv.front().c_str(), &actions, nullptr, pointers(made.argv).data(),
                                  pointers(made.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  saying = attest::Descriptor();
  if (error != 0) return fmt::format("{}: {}", made.argv.front(), std::generic_category().message(error));
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = ::read(said.number(), piece.data(), piece.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  return text.empty() ? "a trivial program does not run behind them" : visible(text);
}

/// Why a process does not start behind these walls; empty where it does.
std::string why_none(const Walls& walls, Kind kind) {
  try {
    return why_it_fails(construct(walls, {.argv = {"/bin/true"}, .seen = {}}, kind));
  } catch (const UsageError& error) {
    return error.what();
  }
}

/// What this machine has.
struct Machine {
  std::optional<Kind> kind;
  std::string no_namespaces;  ///< why
  std::string no_walls;       ///< why
};

Machine machine_tried() {
  Machine machine;
  if (kernel_start().empty() || kernel_host().empty()) {
    machine.no_walls = "the programs kernel-start and kernel-host are missing beside attest; build or install it again";
    return machine;
  }
  machine.no_namespaces = ::access(std::string(bubblewrap).c_str(), X_OK) != 0
                              ? "bwrap is not installed: apt-get install bubblewrap"
                              : why_none({}, Kind::namespaces);
  if (machine.no_namespaces.empty()) {
    machine.kind = Kind::namespaces;
    return machine;
  }
  std::string why =
      landlock::abi() == 0
          ? "this system has no Landlock; it takes Linux 5.13 with landlock among its security modules (lsm=)"
          : why_none({}, Kind::bare);
  if (why.empty()) {
    machine.kind = Kind::bare;
  } else {
    machine.no_walls = fmt::format("no walls can be built around a kernel: {}; and {}", machine.no_namespaces, why);
  }
  return machine;
}

const Machine& machine() {
  static const Machine one = machine_tried();
  return one;
}

Kind kind_of(const Walls& walls) {
  if (std::ranges::find(walls.left_out, Wall::namespaces) != walls.left_out.end()) return Kind::bare;
  if (!machine().kind) throw UsageError(machine().no_walls);
  return *machine().kind;
}

}  // namespace

std::string why_no_walls(const Walls& walls) {
  try {
    return why_none(walls, kind_of(walls));
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string walls_text(const Walls& walls) {
  if (std::string why = why_no_walls(walls); !why.empty()) return why;
  const int abi = landlock::abi();
  const bool root = ::geteuid() == 0;
  const std::string with = abi > 0 ? fmt::format("Landlock ABI {}", abi) : "no Landlock on this system";
  const std::string limits = fmt::format("at most {} processes", walls.most_processes);
  if (kind_of(walls) == Kind::namespaces) {
    return fmt::format(
        "own {}, process, network, IPC and file namespaces; of /proc only cpuinfo; {} system calls refused; {}; {}",
        root ? "user" : "user namespace", refused_calls.size(), with, limits);
  }
  const std::size_t calls =
      refused_calls.size() + refused_bare_calls.size() + (abi < landlock::keeps_signals ? refused_signals.size() : 0);
  return fmt::format(
      "{}; {} system calls refused; {}; {}; no namespaces ({}): the names and sizes of files and the "
      "numbers of processes can be seen",
      with, calls, root ? "a user of its own" : "the judge's own user", limits,
      machine().no_namespaces.empty() ? "left out" : machine().no_namespaces);
}

void hide_judge() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

namespace process {

Construction construct(const Walls& walls, const Enclosed& enclosed) {
  return construct(walls, enclosed, kind_of(walls));
}

}  // namespace process
}  // namespace attest
