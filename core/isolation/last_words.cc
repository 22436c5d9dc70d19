#include "core/isolation/last_words.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "core/call/function_kernel.h"
#include "core/isolation/library.h"
#include "core/isolation/memory_limit.h"
#include "core/isolation/shared_call.h"

namespace attest::process {
namespace {

std::atomic<Stage> current_stage = Stage::starting;
std::atomic<std::uint64_t> memory_limit = 0, memory_at_start = 0;
std::array<std::byte, std::size_t{64} << 10U> handler_stack;  // the kernel's own may be used up

/// Text in memory of its own: a signal handler may not allocate any.
class Line {
 public:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    char* const from = text_.data() + size_;
    const auto end = fmt::format_to_n(from, text_.size() - size_, format, std::forward<Arguments>(arguments)...);
    size_ += static_cast<std::size_t>(end.out - from);
  }
  [[nodiscard]] std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 512> text_{};
  std::size_t size_ = 0;
};

std::string_view words_of(Stage stage) {
  switch (stage) {
    case Stage::loading:
      return "as it was loaded";
    case Stage::manifest:
      return "in attest_kernel_manifest";
    case Stage::between_calls:
      // The thread that makes the calls is the process's first.
      return ::syscall(SYS_gettid) != ::getpid()
                 ? "between two calls, in a thread that it left behind"
                 : "between two calls, in attest's own code, so over memory that a call before had changed; a heap "
                   "overflow is the commonest cause, and valgrind or -fsanitize=address names its place";
    case Stage::starting:
    case Stage::call:
      break;
  }
  return "in a call";
}

#ifdef __x86_64__
std::string_view access_of(const ucontext_t& context) {
  return (context.uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "wrote" : "read";
}
std::uintptr_t stack_pointer_of(const ucontext_t& context) {
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}
#else
std::string_view access_of(const ucontext_t&) {
  return "read or wrote";
}
std::uintptr_t stack_pointer_of(const ucontext_t&) {
  return 0;
}
#endif

void add_place(Line& line, const FaultPlace& place, std::string_view access) {
  switch (place.side) {
    case FaultPlace::Side::before:
      return line.add(": it {} outside its tensors, {} bytes before the start of {}", access, place.bytes, place.name);
    case FaultPlace::Side::behind:
      return line.add(": it {} outside its tensors, {} bytes behind the end of {}", access, place.bytes, place.name);
    case FaultPlace::Side::within:
      return line.add(": it took the memory of {} away, or the right to it", place.name);
  }
}

void add_fault(Line& line, const siginfo_t& info, const ucontext_t& context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  const auto stack = stack_pointer_of(context);
  constexpr std::uintptr_t near_null = 1U << 16U, near_stack = 1U << 16U;
  std::optional<FaultPlace> place = place_of_fault(info.si_addr);
  if (!place) place = place_in_message(info.si_addr);
  if (place) {
    add_place(line, *place, access_of(context));
  } else if (info.si_code <= 0) {
    line.add(": it was sent the signal");
  } else if (info.si_code == SI_KERNEL) {
    // x86 gives no address of these.
    line.add(
        ": it went to an address that none can be, or asked of its data a better alignment than limits.alignment of "
        "its "
        "manifest does");
  } else if (address < near_null) {
    line.add(": it {} through a null pointer", access_of(context));
  } else if (stack != 0 && address + near_stack > stack && address < stack + near_stack) {
    line.add(": its stack overflowed");
  } else {
    line.add(": it {} where it has no memory", access_of(context));
  }
}

void send_last_words(std::string_view text) {
  SharedReply header;
  header.prefix.kind = SharedKind::death;
  header.text_bytes = static_cast<std::uint32_t>(text.size());
  std::array<char, sizeof header + 512> packet;
  std::memcpy(packet.data(), &header, sizeof header);
  std::memcpy(packet.data() + sizeof header, text.data(), text.size());
  ::send(control_descriptor, packet.data(), sizeof header + text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void on_signal(int number, siginfo_t* info, void* context) {
  Line line;
  line.add("{}", words_of(current_stage));
  if (number == SIGSEGV || number == SIGBUS) add_fault(line, *info, *static_cast<const ucontext_t*>(context));
  if (number == SIGFPE && info->si_code == FPE_INTDIV) line.add(": it divided a whole number by zero");
  const std::uint64_t limit = memory_limit, held = memory_held() - memory_at_start;
  if (limit != 0 && held > limit / 4 * 3) {
    line.add("; it held {} of the {} MiB of memory that it may hold", held >> 20U, limit >> 20U);
  }
  send_last_words(line.text());
  ::raise(number);  // the handling is the default one again
}

}  // namespace

void enter(Stage stage) noexcept {
  current_stage.store(stage, std::memory_order_relaxed);
}

void tell_last_words(std::uint64_t memory) {
  memory_limit = memory;
  memory_at_start = memory_held();
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(number, &action, nullptr);
}

}  // namespace attest::process
