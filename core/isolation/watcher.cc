#include "core/isolation/watcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <exception>
#include <string_view>

#include "core/isolation/child.h"
#include "core/isolation/descendants.h"

namespace attest::process {
namespace {

/// What is told to the watcher: a child to watch, or as a negative number one that is over.
using Word = pid_t;

/// Nothing of this program stays open in the watcher but its own descriptor, or whoever reads our output would wait for
/// it, and no signal that is meant for us ends it.
void detach(int connection) {
  ::dup2(connection, 0);
  if (::close_range(1, ~0U, 0) != 0) {
    for (int fd = 1; fd < 1024; ++fd) ::close(fd);
  }
  ::setsid();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  if (::chdir("/") != 0) return;
  ::prctl(PR_SET_NAME, "attest-watcher");
}

/// Runs in the child of a fork of a program with threads: nothing here may allocate or lock.
[[noreturn]] void watch_until_the_end(int connection, std::string_view mark) {
  detach(connection);
  std::array<pid_t, 4096> children{};
  Word word = 0;
  for (;;) {
    const ssize_t got = ::recv(0, &word, sizeof word, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof word) break;
    const auto place = std::find(children.begin(), children.end(), word > 0 ? 0 : -word);
    if (place != children.end()) *place = std::max(word, 0);
  }
  for (const pid_t child : children) {
    if (child == 0) continue;
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);
  }
  kill_marked(mark);
  // A child that was just being started had no environment of its own yet.
  const timespec moment{0, 20'000'000};
  ::nanosleep(&moment, nullptr);
  kill_marked(mark);
  ::_exit(0);
}

class Watcher {
 public:
  Watcher() noexcept {
    try {
      Pair connection = make_socket_pair();
      const std::string_view mark = mark_of_ours();
      // Twice, so that it is no child of this program, which may wait for all of its own.
      const pid_t between = ::fork();
      if (between == 0) {
        if (::fork() == 0) watch_until_the_end(connection.read.get(), mark);
        ::_exit(0);
      }
      while (between > 0 && ::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
      }
      if (between > 0) connection_ = std::move(connection.write);
    } catch (const std::exception&) {
      connection_.close();  // the kernel itself is about to say that there are no descriptors left
    }
  }
  void tell(Word word) const noexcept {
    if (connection_) ::send(connection_.get(), &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  Descriptor connection_;
};

const Watcher& watcher() {
  // Never destroyed: a thread may still be ending a child as this program ends.
  static const Watcher* const one = new Watcher;
  return *one;
}

}  // namespace

void start_watcher() noexcept {
  static_cast<void>(watcher());
}

void watch(pid_t child) noexcept {
  watcher().tell(child);
}

void unwatch(pid_t child) noexcept {
  watcher().tell(-child);
}

}  // namespace attest::process
