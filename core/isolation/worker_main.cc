// The other side of library_carrier.cc: the process in which a shared library under test lives.
#include "core/isolation/worker_main.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/call/function_kernel.h"
#include "core/isolation/last_words.h"
#include "core/isolation/library.h"
#include "core/isolation/memory_limit.h"
#include "core/isolation/shared_call.h"
#include "core/isolation/shared_memory.h"
#include "core/kernel/kernel_under_test.h"
#include "core/kernel/manifest.h"
#include "core/problem/edge.h"

namespace attest {
namespace {

using namespace process;

/// `to` is the request's prefix.
bool send_reply(const SharedPrefix& to, CallStatus status, std::string_view text, std::string_view finding = {}) {
  text = text.substr(0, max_text);
  SharedReply header;
  header.prefix.kind = to.kind;
  header.prefix.sequence = to.sequence;
  header.status = static_cast<std::int32_t>(status);
  header.text_bytes = static_cast<std::uint32_t>(text.size());
  header.finding_bytes = static_cast<std::uint32_t>(finding.size());
  std::string packet(sizeof header, '\0');
  std::memcpy(packet.data(), &header, sizeof header);
  packet += text;
  packet += finding;
  while (::send(control_descriptor, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

Shape shape_of(const SharedTensor& t) {
  return Shape(std::span(t.shape).first(static_cast<std::size_t>(t.rank)));
}

/// A tensor, copied out of the shared memory; absent where that one is.
Tensor taken(const SharedTensor& from, const std::byte* memory) {
  if (from.dtype < 0) return {};
  Tensor tensor(static_cast<DType>(from.dtype), shape_of(from));
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) std::memcpy(bytes.data(), memory + from.offset, bytes.size());
  return tensor;
}

/// What is wanted has a place.
BackwardCall backward_call(const SharedRequest& request, const std::byte* memory) {
  BackwardCall call{taken(request.answer_out, memory), taken(request.answer_lse, memory)};
  for (std::size_t i = 0; i < call.wanted.size(); ++i) call.wanted[i] = request.gradients[i].dtype >= 0;
  return call;
}

/// The case a request describes, copied out of the shared memory.
Case case_of(const SharedRequest& request, const std::byte* memory) {
  Case c;
  c.operation = static_cast<Operation>(request.operation);
  set_arguments(c, request.scalars);
  set_layouts(c, request.layouts);
  set_edge(c, static_cast<Edge>(request.edge));
  for (std::size_t i = 0; i < c.tensors.size(); ++i) c.tensors[i] = taken(request.inputs[i], memory);
  return c;
}

void put(const Tensor& tensor, const SharedTensor& to, std::byte* memory) {
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) std::memcpy(memory + to.offset, bytes.data(), bytes.size());
}

/// Whether a process that this one started is still there, or one that such a process left behind.
bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0;
}

/// Handlers of what a read of protected memory raises, as they were before a call. Put back behind it: an output that
/// is computed when it is read was not written when the call returned.
class Handlers {
 public:
  Handlers() {
    for (std::size_t i = 0; i < numbers.size(); ++i) ::sigaction(numbers[i], nullptr, &before_[i]);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;
  ~Handlers() {
    for (std::size_t i = 0; i < numbers.size(); ++i) ::sigaction(numbers[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array numbers{SIGSEGV, SIGBUS};
  std::array<struct sigaction, numbers.size()> before_{};
};

/// The entry, behind which handlers are as they were.
template <class Packed, class Result>
std::function<int(const Packed&, Result&, std::string&)> with_handlers_kept(
    std::function<int(const Packed&, Result&, std::string&)> entry) {
  if (!entry) return entry;
  return [entry = std::move(entry)](const Packed& problem, Result& result, std::string& message) {
    const Handlers kept;
    return entry(problem, result, message);
  };
}

/// How serving came to its end.
enum class Farewell { asked, connection_closed };

Farewell serve(Kernel& kernel, const Library& library, bool enclosed) {
  SharedMemory memory;
  const pid_t own = ::getpid();
  for (;;) {
    SharedRequest request;
    const ssize_t got = ::recv(control_descriptor, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Farewell::connection_closed;
    if (got < static_cast<ssize_t>(sizeof(SharedPrefix)) || request.prefix.magic != shared_magic)
      return Farewell::asked;
    if (request.prefix.kind == SharedKind::manifest) {
      if (!send_reply(request.prefix, CallStatus::ok, library.manifest, library.finding)) return Farewell::asked;
      continue;
    }
    memory.map(memory_descriptor, request.memory_bytes);
    const bool want_lse = request.lse.dtype >= 0;
    Reply reply;
    try {
      const Case c = case_of(request, memory.data());
      enter(Stage::call);
      const auto output = static_cast<DType>(request.out.dtype);
      reply = request.backward != 0 ? kernel.backward(c, backward_call(request, memory.data()), output)
                                    : kernel.run(c, output, want_lse);
      enter(Stage::between_calls);
    } catch (const std::bad_alloc&) {
      reply = {CallStatus::failed, "out of memory before the call: what earlier calls took is still held", {}, {}};
    }
    // A kernel that forks returns twice, and only one of the two may answer.
    if (::getpid() != own) ::_exit(0);
    if (enclosed && reply.status == CallStatus::ok && has_children())
      reply = {CallStatus::failed, "left a process behind its call", {}, {}};
    if (reply.status == CallStatus::ok && request.backward != 0) {
      for (std::size_t i = 0; i < reply.gradients.size(); ++i)
        if (reply.gradients[i].present()) put(reply.gradients[i], request.gradients[i], memory.data());
    } else if (reply.status == CallStatus::ok) {
      put(reply.out, request.out, memory.data());
      if (want_lse) put(reply.lse, request.lse, memory.data());
    }
    if (!send_reply(request.prefix, reply.status, reply.message)) return Farewell::connection_closed;
  }
}

/// Tells whoever asks first why there is no kernel.
void refuse(const std::string& reason) {
  SharedRequest request;
  if (::recv(control_descriptor, &request, sizeof request, 0) > 0) {
    static_cast<void>(send_reply(request.prefix, CallStatus::failed, reason));
  }
}

bool is_socket(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

int worker_main(int argc, char** argv, bool enclosed) {
  std::uint64_t limit = 0;
  const std::string_view number = argc == 4 ? argv[3] : "0";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), limit);
  const bool sound = error == std::errc() && end == number.data() + number.size();
  if (argc < 3 || argc > 4 || !sound || !is_socket(control_descriptor)) {
    std::fputs("attest worker: started by attest itself to hold a kernel; use attest check --kernel ./LIBRARY.so\n",
               stderr);
    return 2;
  }
  // A kernel that crashes is expected here; its memory image is not.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  limit_own_memory(limit);
  // A process whose parent has ended comes to this one, where it is seen.
  if (enclosed) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Its death must be seen as what it is, whatever a sanitizer or a library of this program has put in the way.
  tell_last_words(limit);
  // What the kernel prints comes into the log when it prints it, not when its process is gone.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Library library;
  std::unique_ptr<OutsideKernel> kernel;
  try {
    library = load_library(argv[2]);
    if (enclosed) {
      KernelFunctions& functions = library.functions;
      functions.attention = with_handlers_kept(std::move(functions.attention));
      functions.multihead = with_handlers_kept(std::move(functions.multihead));
      functions.backward = with_handlers_kept(std::move(functions.backward));
    }
    kernel = outside_kernel(argv[2], parse_manifest(library.manifest, "its manifest"), library.functions);
  } catch (const std::exception& exception) {
    refuse(exception.what());
    return 3;
  }
  const Farewell farewell = serve(*kernel, library, enclosed);
  // Neither the kernel's static destructors nor its threads are ours to wait for.
  std::fflush(nullptr);
  if (farewell == Farewell::connection_closed) ::_exit(status_connection_closed);
  ::_exit(kernel->late_change() ? status_late_change : 0);
}

}  // namespace attest
