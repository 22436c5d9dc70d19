#include "interrupt.h"

#include <unistd.h>

#include <csignal>

namespace attest {
namespace {

volatile std::sig_atomic_t requested = 0;

extern "C" void on_signal(int) {
  if (requested != 0) ::_exit(130);
  requested = 1;
}

}  // namespace

void handle_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  // No SA_RESTART: a wait for a kernel's reply ends early.
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

bool interrupt_requested() noexcept {
  return requested != 0;
}

}  // namespace attest
