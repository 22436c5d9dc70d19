// Builds the walls that a process builds around itself, and becomes the program that is to run behind them:
//
//     kernel-start [--user N] [--folder PATH] [--keep N] [--memory N] [--processes N] [--read PATH]... [--write
//     PATH]...
//                  [--calls] [--bare] -- PROGRAM ARGUMENTS...
//
// It is small and says nothing of who uses it, as it is seen behind the walls. walls/construction.cc writes its command
// line. What cannot be built costs a line and exit status 125: nothing runs behind half a wall.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "core/isolation/walls/landlock.h"
#include "core/isolation/walls/refused_calls.h"

namespace {

using namespace attest::process;

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "kernel-start: %s: %s\n", what, std::strerror(errno));
  std::exit(125);
}

struct Plan {
  const char* user = nullptr;
  const char* folder = "/";  ///< the current one
  unsigned keep = 3;
  rlim_t memory = 0;     ///< 0: no limit
  rlim_t processes = 0;  ///< 0: no limits at all
  bool landlock = false, calls = false, bare = false;
  std::span<char*> options;  ///< all of them, for the paths
  char** program = nullptr;
};

Plan plan_of(int argc, char** argv) {
  Plan plan;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view option = argv[i];
    if (option == "--calls") {
      plan.calls = true;
    } else if (option == "--bare") {
      plan.bare = true;
    } else {
      const char* const value = ++i < argc ? argv[i] : "";
      if (option == "--user") plan.user = value;
      if (option == "--folder") plan.folder = value;
      if (option == "--keep") plan.keep = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
      if (option == "--memory") plan.memory = std::strtoull(value, nullptr, 10);
      if (option == "--processes") plan.processes = std::strtoull(value, nullptr, 10);
      if (option == "--read" || option == "--write") plan.landlock = true;
    }
  }
  if (i + 1 >= argc) {
    errno = EINVAL;
    refuse("nothing to run");
  }
  plan.options = std::span(argv, static_cast<std::size_t>(i));
  plan.program = argv + i + 1;
  return plan;
}

/// Another user, for good. A machine that knows fewer users (a container's) has that of nobody.
void become(const char* user) {
  constexpr id_t nobody = 65534;
  if (::setgroups(0, nullptr) != 0) refuse("setgroups");
  auto id = static_cast<id_t>(std::strtoul(user, nullptr, 10));
  if (::setresgid(id, id, id) != 0) {
    id = nobody;
    if (::setresgid(id, id, id) != 0) refuse("setresgid");
  }
  if (::setresuid(id, id, id) != 0) refuse("setresuid");
  errno = EPERM;
  if (::setuid(0) == 0) refuse("root again");
}

void limit(decltype(RLIMIT_CORE) resource, rlim_t most, const char* what) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) refuse(what);
  if (most > now.rlim_max) most = now.rlim_max;
  const rlimit wanted{most, most};
  if (::setrlimit(resource, &wanted) != 0) refuse(what);
}

void limit_all(const Plan& plan) {
  constexpr rlim_t largest_file = rlim_t{64} << 20U, most_descriptors = 256;
  limit(RLIMIT_CORE, 0, "RLIMIT_CORE");
  limit(RLIMIT_FSIZE, largest_file, "RLIMIT_FSIZE");
  limit(RLIMIT_NOFILE, most_descriptors, "RLIMIT_NOFILE");
  limit(RLIMIT_MSGQUEUE, 0, "RLIMIT_MSGQUEUE");
  limit(RLIMIT_NPROC, plan.processes, "RLIMIT_NPROC");
}

void build_landlock(const Plan& plan, int abi) {
  const landlock::Ruleset ruleset = landlock::everything(abi);
  const int fd = landlock::create(ruleset);
  if (fd < 0) refuse("Landlock");
  constexpr std::uint64_t reading = landlock::execute | landlock::read_file | landlock::read_folder;
  for (std::size_t i = 1; i + 1 < plan.options.size(); ++i) {
    const std::string_view option = plan.options[i];
    if (option != "--read" && option != "--write") continue;
    const char* const path = plan.options[++i];
    if (!landlock::allow(fd, path, option == "--read" ? reading : ruleset.files)) refuse(path);
  }
  if (!landlock::restrict_self(fd)) refuse("Landlock");
  ::close(fd);
}

scmp_arg_cmp has_bits(unsigned argument, std::uint64_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, bits, bits};
}
/// A number of which a call takes the lower half alone: the upper one may hold anything.
scmp_arg_cmp is(unsigned argument, unsigned value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xffffffff, value};
}

void refuse_call(scmp_filter_ctx filter, const RefusedCall& call) {
  int number = ::seccomp_syscall_resolve_name(call.name);
  if (number == __NR_SCMP_ERROR) number = call.number;
  if (number == -1) return;  // none of this machine
  const int added = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(call.absent ? ENOSYS : EPERM), number, 0);
  if (added != 0) {
    errno = -added;
    refuse(call.name);
  }
}

/// Calls of which some uses are refused.
void refuse_uses(scmp_filter_ctx filter) {
  const auto rule = [&](int number, auto... comparison) {
    const int added = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, sizeof...(comparison), comparison...);
    if (added != 0) {
      errno = -added;
      refuse("seccomp");
    }
  };
  constexpr int new_time = 0x80;  // CLONE_NEWTIME
  for (const int one :
       {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, new_time})
    rule(SCMP_SYS(clone), has_bits(0, static_cast<unsigned>(one)));
  // Another process's limits.
  rule(SCMP_SYS(prlimit64), scmp_arg_cmp{0, SCMP_CMP_NE, 0, 0});
  // Signals that a descriptor sends: F_SETOWN and F_SETOWN_EX, and what ioctl has of the same.
  for (const unsigned command : {8U, 15U}) rule(SCMP_SYS(fcntl), is(1, command));
  for (const int request : {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX})
    rule(SCMP_SYS(ioctl), is(1, static_cast<unsigned>(request)));
  // Who is at the other end of a connection: SO_PEERCRED, SO_PEERGROUPS, SO_PEERSEC, SO_PEERPIDFD.
  for (const unsigned option : {17U, 59U, 31U, 77U}) rule(SCMP_SYS(getsockopt), is(1, SOL_SOCKET), is(2, option));
}

void build_filter(const Plan& plan, int abi) {
  const scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr) refuse("seccomp");
  for (const RefusedCall& call : refused_calls) refuse_call(filter, call);
  if (plan.bare)
    for (const RefusedCall& call : refused_bare_calls) refuse_call(filter, call);
  if (plan.bare && abi < landlock::keeps_signals)
    for (const RefusedCall& call : refused_signals) refuse_call(filter, call);
  refuse_uses(filter);
  // A tree, not a list: each call that is allowed would pass the whole list.
  static_cast<void>(::seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2));
  if (const int loaded = ::seccomp_load(filter); loaded != 0) {
    errno = -loaded;
    refuse("seccomp");
  }
  ::seccomp_release(filter);
}

}  // namespace

int main(int argc, char** argv) {
  const Plan plan = plan_of(argc, argv);
  if (::close_range(plan.keep, ~0U, 0) != 0) refuse("close_range");
  if (plan.user != nullptr) become(plan.user);
  if (::chdir(plan.folder) != 0) refuse(plan.folder);
  if (plan.processes != 0) limit_all(plan);
  if (plan.memory != 0) limit(RLIMIT_DATA, plan.memory, "RLIMIT_DATA");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) refuse("no_new_privs");
  // The group is that of the namespace's first process, whose end is everyone's: it is no business of the kernel's.
  if (!plan.bare) static_cast<void>(::setsid());
  const int abi = plan.landlock ? landlock::abi() : 0;
  if (plan.landlock) build_landlock(plan, abi);
  if (plan.calls) build_filter(plan, abi);
  ::execvp(plan.program[0], plan.program);
  refuse(plan.program[0]);
}
