#include "interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace attest {
namespace {

volatile std::sig_atomic_t requested = 0;
/// Read and write end of the pipe that wakes whoever waits for a kernel. Never emptied: it wakes every waiter.
int wake[2] = {-1, -1};

extern "C" void on_signal(int) {
  if (requested != 0) ::_exit(130);
  requested = 1;
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
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int interrupt_descriptor() noexcept {
  return wake[0];
}

bool interrupt_requested() noexcept {
  return requested != 0;
}

}  // namespace attest
