#include "core/isolation/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/call/float_environment.h"
#include "core/call/function_kernel.h"
#include "core/isolation/child.h"
#include "core/isolation/last_words.h"
#include "core/isolation/shared_call.h"
#include "core/kernel/forwarding_kernel.h"
#include "core/kernel/manifest.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"

namespace attest::process {
namespace {

constexpr std::size_t message_bytes = 4096;

/// What message_pages() gave this thread. A pointer of its own, as a signal handler may not be the first to ask for
/// what is made, and registered to be destroyed, when it is first used.
constinit thread_local const GuardedPages* own_message_pages = nullptr;

/// The buffer ends where the accessible pages do, so that a kernel that runs over it is stopped there.
GuardedPages& message_pages() {
  struct Published {
    Published() { own_message_pages = &pages; }
    ~Published() { own_message_pages = nullptr; }
    GuardedPages pages;
  };
  thread_local Published one;
  return one.pages;
}

/// An entry of the library as the function that a kernel over functions takes.
template <class Packed, class Result>
auto adapted(int (*entry)(const Packed*, Result*, char*, size_t)) {
  return [entry](const Packed& problem, Result& result, std::string& message) {
    GuardedPages& pages = message_pages();
    pages.resize(message_bytes);
    char* const text = reinterpret_cast<char*>(pages.end() - message_bytes);
    std::memset(text, 0, message_bytes);
    const auto outcome = [&](int status) {
      message.assign(text, ::strnlen(text, message_bytes - 1));  // a kernel may leave the terminator out
      return status;
    };
    return outcome(entry(&problem, &result, text, message_bytes));
  };
}

/// The loader's words with a remedy.
std::string explained(const std::string& error, const std::filesystem::path& file) {
  const auto has = [&](std::string_view words) { return error.find(words) != std::string::npos; };
  if (has("Too many open files")) return why_no_more(EMFILE);
  if (has("cannot open shared object file") && !error.starts_with(file.string())) {
    return fmt::format("it needs {}, which is not found; install it, or add its folder to LD_LIBRARY_PATH",
                       error.substr(0, error.find(':')));
  }
  if (const auto at = error.find("undefined symbol: "); at != std::string::npos) {
    const std::string symbol = error.substr(at + std::strlen("undefined symbol: "));
    return fmt::format("it uses {}, which nothing defines; link it with the library that does", symbol);
  }
  if (has("version `") && has("not found (required by")) {
    return fmt::format("it was built for newer libraries ({}); build it on this system", error);
  }
  if (has("cannot dynamically load")) {
    return fmt::format("it is a program ({}); compile a library with cc -shared -fPIC, or write exec:COMMAND", error);
  }
  if (has("Cannot allocate memory")) {
    return fmt::format("it does not fit into the memory that a kernel's process may hold ({}); give more with --memory",
                       error);
  }
  return fmt::format("it cannot be opened: {}; build it again for this system", error);
}

/// Notes what has happened to the environment since it was made, and sets it back.
class EnvironmentWatch {
 public:
  ~EnvironmentWatch() { before_.install(); }
  EnvironmentWatch() = default;
  EnvironmentWatch(const EnvironmentWatch&) = delete;
  EnvironmentWatch& operator=(const EnvironmentWatch&) = delete;
  [[nodiscard]] std::string changes() const {
    const FloatEnvironment now = FloatEnvironment::current();
    if (now == before_) return {};
    // What follows computes too.
    before_.install();
    return now.difference_from(before_);
  }

 private:
  FloatEnvironment before_ = FloatEnvironment::current();
};

std::string finding_of(std::string_view when, const std::string& changes) {
  if (changes.empty()) return {};
  return fmt::format(
      "{} it changed the floating-point environment of the program that loads it: that {} from then on, in all of its "
      "arithmetic; link it without -ffast-math (crtfastmath.o does this), or set the environment back",
      when, changes);
}

std::string manifest_text(const char* text) {
  if (text == nullptr) {
    throw KernelLoadError("attest_kernel_manifest returned no text; it must return JSON in static storage");
  }
  const std::size_t size = ::strnlen(text, max_text + 1);
  if (size > max_text) {
    throw KernelLoadError(fmt::format("its manifest has more than {} bytes, or no end; shorten it", max_text));
  }
  return {text, size};
}

class InProcessKernel final : public ForwardingKernel {
 public:
  InProcessKernel(std::unique_ptr<Kernel> kernel, std::string finding, std::shared_ptr<std::mutex> one_at_a_time)
      : ForwardingKernel(std::move(kernel)), finding_(std::move(finding)), one_at_a_time_(std::move(one_at_a_time)) {}
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    std::unique_lock<std::mutex> lock;
    if (one_at_a_time_) lock = std::unique_lock(*one_at_a_time_);
    return is_in_cache(c) ? ForwardingKernel::run(laid_out_in_cache(c), output, want_lse)
                          : ForwardingKernel::run(c, output, want_lse);
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    std::unique_lock<std::mutex> lock;
    if (one_at_a_time_) lock = std::unique_lock(*one_at_a_time_);
    return ForwardingKernel::backward(c, call, output);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<InProcessKernel>(inner().clone(), finding_, one_at_a_time_);
  }
  [[nodiscard]] std::string load_finding() const override { return finding_; }

 private:
  std::string finding_;
  std::shared_ptr<std::mutex> one_at_a_time_;  ///< null: the manifest says thread_safe
};

}  // namespace

Library load_library(const std::filesystem::path& file) {
  const EnvironmentWatch watch;
  enter(Stage::loading);
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw KernelLoadError(explained(::dlerror(), file));
  Library library;
  library.finding = finding_of("as it was loaded", watch.changes());
  const auto find = [&]<class Entry>(const char* name, Entry*& entry) {
    entry = reinterpret_cast<Entry*>(::dlsym(handle, name));
  };
  const char* (*manifest)() = nullptr;
  int (*attention)(const attest_problem*, attest_result*, char*, size_t) = nullptr;
  int (*multihead)(const attest_multihead_problem*, attest_result*, char*, size_t) = nullptr;
  int (*backward)(const attest_backward_problem*, attest_gradients*, char*, size_t) = nullptr;
  find("attest_kernel_manifest", manifest);
  find("attest_kernel_attention", attention);
  find("attest_kernel_multihead", multihead);
  find("attest_kernel_attention_backward", backward);
  if (manifest == nullptr) {
    throw KernelLoadError(
        "it does not export attest_kernel_manifest; a kernel includes <attest/kernel.h> and exports "
        "attest_kernel_manifest and attest_kernel_attention (in C++ inside extern \"C\")");
  }
  if (attention == nullptr && multihead == nullptr) {
    throw KernelLoadError(
        "it exports attest_kernel_manifest but neither attest_kernel_attention nor attest_kernel_multihead; one of "
        "them "
        "must be there");
  }
  enter(Stage::manifest);
  library.manifest = manifest_text(manifest());
  enter(Stage::between_calls);
  if (library.finding.empty()) library.finding = finding_of("as it was asked for its manifest", watch.changes());
  if (attention != nullptr) library.functions.attention = adapted(attention);
  if (multihead != nullptr) library.functions.multihead = adapted(multihead);
  if (backward != nullptr) library.functions.backward = adapted(backward);
  return library;
}

std::unique_ptr<Kernel> library_in_process(const std::string& id, const std::filesystem::path& file) {
  try {
    Library library = load_library(file);
    Manifest manifest = parse_manifest(library.manifest, "its manifest");
    const auto made = [&] { return outside_kernel(id, manifest, library.functions); };
    if (!nlohmann::json::parse(library.manifest).contains("operations")) {
      const DType dtype = manifest.dtypes.front();
      manifest.multihead = made()->run(smallest_multihead(dtype), dtype, false).status == CallStatus::ok;
    }
    auto one_at_a_time = manifest.thread_safe ? nullptr : std::make_shared<std::mutex>();
    return std::make_unique<InProcessKernel>(made(), std::move(library.finding), std::move(one_at_a_time));
  } catch (const std::runtime_error& error) {
    throw KernelLoadError(fmt::format("{}: cannot be loaded: {}", id, error.what()));
  }
}

std::optional<FaultPlace> place_in_message(const void* address) noexcept {
  if (own_message_pages == nullptr || !own_message_pages->covers(address)) return std::nullopt;
  const GuardedPages& pages = *own_message_pages;
  const auto* const at = static_cast<const std::byte*>(address);
  const std::byte* const start = pages.end() - message_bytes;
  if (at >= pages.end())
    return FaultPlace{FaultPlace::Side::behind, "message", static_cast<std::size_t>(at - pages.end())};
  if (at >= start) return FaultPlace{FaultPlace::Side::within, "message", 0};
  return FaultPlace{FaultPlace::Side::before, "message", static_cast<std::size_t>(start - at)};
}

Case smallest_multihead(DType dtype) {
  Case c;
  c.operation = Operation::multihead;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(dtype, {1, 1, 1});
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = Tensor(dtype, {1, 1});
  return c;
}

}  // namespace attest::process
