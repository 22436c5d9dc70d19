#include "core/call/edge_faults.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>

#include "core/call/guarded_memory.h"

namespace attest {
namespace {

/// One per kernel and job, and few of those are in this process. Without a lock: a signal handler reads it.
std::array<std::atomic<GuardedMemory*>, 1024> watched{};
struct sigaction before{};
/// Handlers that look at what is watched now, each of any thread's fault.
std::atomic<int> looking = 0;

GuardedMemory::Access access_of(const void* context) {
#ifdef __x86_64__
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return (registers[REG_ERR] & 2) != 0 ? GuardedMemory::Access::write : GuardedMemory::Access::read;
#else
  static_cast<void>(context);
  return GuardedMemory::Access::unknown;
#endif
}

void hand_on(int number, siginfo_t* info, void* context) {
  const bool has_one =
      (before.sa_flags & SA_SIGINFO) != 0 || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  // Without a handler the access that faulted is made once more and ends the program, as it would have.
  if (!has_one || (before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) ::signal(number, SIG_DFL);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (has_one) {
    before.sa_handler(number);
  } else if (info->si_code <= 0) {
    ::raise(number);  // it was sent, and nothing is made once more
  }
}

void on_fault(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const GuardedMemory::Access access = access_of(context);
  bool taken = false;
  ++looking;
  for (const std::atomic<GuardedMemory*>& place : watched) {
    GuardedMemory* const memory = info->si_code == SEGV_ACCERR ? place.load() : nullptr;
    taken = memory != nullptr && memory->take_fault(info->si_addr, access);
    if (taken) break;
  }
  --looking;
  errno = error;
  if (!taken) hand_on(number, info, context);
}

void install() {
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, nullptr, &before);
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

bool watch_edges_of(GuardedMemory& memory) {
  static std::once_flag installed;
  std::call_once(installed, install);
  for (std::atomic<GuardedMemory*>& place : watched) {
    GuardedMemory* none = nullptr;
    if (place.compare_exchange_strong(none, &memory)) return true;
  }
  return false;
}

void ignore_edges_of(GuardedMemory& memory) {
  for (std::atomic<GuardedMemory*>& place : watched) {
    GuardedMemory* own = &memory;
    if (place.compare_exchange_strong(own, nullptr)) break;
  }
  wait_for_edge_faults();
}

void wait_for_edge_faults() {
  while (looking != 0) std::this_thread::yield();
}

}  // namespace attest
