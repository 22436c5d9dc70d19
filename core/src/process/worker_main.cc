// The other side of library_carrier.cc: the process in which a shared library under test lives.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "attest/kernel_under_test.h"
#include "attest/manifest.h"
#include "attest/worker.h"
#include "fmt/format.h"
#include "process/shared_call.h"
#include "process/shared_memory.h"

namespace attest {
namespace {

using namespace process;

/// A shared library with its entries; the library is never unloaded, as kernels may leave threads behind.
struct Library {
  const char* (*manifest)() = nullptr;
  int (*attention)(const attest_problem*, attest_result*, char*, size_t) = nullptr;
  int (*multihead)(const attest_multihead_problem*, attest_result*, char*, size_t) = nullptr;
};

/// Throws KernelLoadError.
Library load(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw KernelLoadError(fmt::format("it cannot be opened: {}", ::dlerror()));
  Library library;
  const auto find = [&](const char* name, auto& entry) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(handle, name));
  };
  find("attest_kernel_manifest", library.manifest);
  find("attest_kernel_attention", library.attention);
  find("attest_kernel_multihead", library.multihead);
  if (library.manifest == nullptr) {
    throw KernelLoadError(
        "it does not export attest_kernel_manifest; a kernel includes <attest/kernel.h> and exports "
        "attest_kernel_manifest "
        "and attest_kernel_attention");
  }
  if (library.attention == nullptr && library.multihead == nullptr) {
    throw KernelLoadError(
        "it exports attest_kernel_manifest but neither attest_kernel_attention nor attest_kernel_multihead");
  }
  return library;
}

/// Throws KernelLoadError.
std::string manifest_of(const Library& library) {
  const char* const text = library.manifest();
  if (text == nullptr) throw KernelLoadError("attest_kernel_manifest returned no text");
  std::string json = text;
  if (json.size() > max_text) {
    throw KernelLoadError(fmt::format("its manifest has {} bytes; {} is the most", json.size(), max_text));
  }
  return json;
}

/// An entry of the library as the function that function_kernel takes.
template <class Problem>
auto adapted(int (*entry)(const Problem*, attest_result*, char*, size_t)) {
  return [entry](const Problem& problem, attest_result& result, std::string& message) {
    std::array<char, 4096> text{};
    const int status = entry(&problem, &result, text.data(), text.size());
    text.back() = '\0';
    message = text.data();
    return status;
  };
}

bool send_reply(SharedKind kind, CallStatus status, std::string_view text) {
  text = text.substr(0, max_text);
  SharedReply header;
  header.prefix.kind = kind;
  header.status = static_cast<std::int32_t>(status);
  header.text_bytes = static_cast<std::uint32_t>(text.size());
  std::string packet(sizeof header, '\0');
  std::memcpy(packet.data(), &header, sizeof header);
  packet += text;
  while (::send(control_descriptor, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

Shape shape_of(const SharedTensor& t) {
  return Shape(std::span(t.shape).first(static_cast<std::size_t>(t.rank)));
}

/// The case a request describes, copied out of the shared memory.
Case case_of(const SharedRequest& request, const std::byte* memory) {
  Case c;
  c.operation = static_cast<Operation>(request.operation);
  c.scale = request.scale;
  c.mask_convention = static_cast<MaskConvention>(request.mask_convention);
  c.causal = static_cast<Causal>(request.causal);
  c.heads = request.heads;
  set_layouts(c, request.layouts);
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const SharedTensor& from = request.inputs[i];
    if (from.dtype < 0) continue;
    c.tensors[i] = Tensor(static_cast<DType>(from.dtype), shape_of(from));
    const auto bytes = c.tensors[i].bytes();
    if (!bytes.empty()) std::memcpy(bytes.data(), memory + from.offset, bytes.size());
  }
  return c;
}

void put(const Tensor& tensor, const SharedTensor& to, std::byte* memory) {
  const auto bytes = tensor.bytes();
  if (!bytes.empty()) std::memcpy(memory + to.offset, bytes.data(), bytes.size());
}

void serve(Kernel& kernel, const std::string& manifest) {
  SharedMemory memory;
  for (;;) {
    SharedRequest request;
    const ssize_t got = ::recv(control_descriptor, &request, sizeof request, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof(SharedPrefix)) || request.prefix.magic != shared_magic) return;
    if (request.prefix.kind == SharedKind::manifest) {
      if (!send_reply(SharedKind::manifest, CallStatus::ok, manifest)) return;
      continue;
    }
    memory.map(memory_descriptor, request.memory_bytes);
    const Case c = case_of(request, memory.data());
    const bool want_lse = request.lse.dtype >= 0;
    const Reply reply = kernel.run(c, static_cast<DType>(request.out.dtype), want_lse);
    if (reply.status == CallStatus::ok) {
      put(reply.out, request.out, memory.data());
      if (want_lse) put(reply.lse, request.lse, memory.data());
    }
    if (!send_reply(SharedKind::call, reply.status, reply.message)) return;
  }
}

/// Tells whoever asks first why there is no kernel.
void refuse(const std::string& reason) {
  SharedRequest request;
  if (::recv(control_descriptor, &request, sizeof request, 0) > 0) {
    static_cast<void>(send_reply(SharedKind::manifest, CallStatus::failed, reason));
  }
}

bool is_socket(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

int worker_main(int argc, char** argv) {
  if (argc != 3 || !is_socket(control_descriptor)) {
    std::fputs("attest worker: started by attest itself to hold a kernel; use attest check --kernel ./LIBRARY.so\n",
               stderr);
    return 2;
  }
  // A kernel that crashes is expected here; its memory image is not.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Its death must be seen as what it is, whatever a sanitizer or a library of this program has put in the way.
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(number, SIG_DFL);
  std::string json;
  std::unique_ptr<Kernel> kernel;
  try {
    const Library library = load(argv[2]);
    json = manifest_of(library);
    AttentionFunction attention;
    MultiheadFunction multihead;
    if (library.attention != nullptr) attention = adapted(library.attention);
    if (library.multihead != nullptr) multihead = adapted(library.multihead);
    kernel = function_kernel(argv[2], parse_manifest(json, "its manifest"), std::move(attention), std::move(multihead));
  } catch (const std::exception& error) {
    refuse(error.what());
    return 3;
  }
  serve(*kernel, json);
  // Neither the kernel's static destructors nor its threads are ours to wait for.
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace attest
