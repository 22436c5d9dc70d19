#include "reports/run/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace attest {
namespace {

/// Set in a signal handler and read by every thread.
std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);
/// Read and write end of the pipe that wakes whoever waits for a kernel. Never emptied: it wakes every waiter.
int wake[2] = {-1, -1};

extern "C" void on_signal(int) {
  if (requested.exchange(true)) ::_exit(130);
  const int before = errno;
  [[maybe_unused]] const ssize_t sent = ::write(wake[1], "", 1);
  errno = before;
}

}  // namespace

void handle_signals() {
  // Without a pipe the write in the handler fails, and a wait ends at its time limit.
  if (wake[0] < 0 && ::pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) wake[0] = wake[1] = -1;
  struct sigaction action{};
  action.sa_handler = on_signal;
  // No SA_RESTART: a wait for a kernel's reply ends early.
  for (const int number : {SIGINT, SIGTERM, SIGQUIT}) ::sigaction(number, &action, nullptr);
  // nohup ignores it for us.
  struct sigaction hangup{};
  if (::sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int interrupt_descriptor() noexcept {
  return wake[0];
}

bool interrupt_requested() noexcept {
  return requested;
}

}  // namespace attest
