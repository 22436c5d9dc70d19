// A shared library of kernel.h: what its file is, what it exports, and its functions as ours.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/call/guarded_memory.h"
#include "core/kernel/kernel_under_test.h"

namespace attest::process {

/// Why a file cannot be loaded as a shared library into this program, and how to mend that, as seen from its first
/// bytes: no file, unreadable, empty, no library, of another machine. Empty: nothing speaks against it.
[[nodiscard]] std::string why_unloadable(const std::filesystem::path& file);

/// The functions of a loaded library; it is never unloaded, as kernels may leave threads behind.
struct Library {
  std::string manifest;       ///< JSON as it was given, not yet parsed
  KernelFunctions functions;  ///< each empty where it is not exported, not both attention and multihead
  /// What it did to the floating-point environment while it was loaded and asked for its manifest; empty: nothing. The
  /// environment is as it was before.
  std::string finding;
};
/// Throws KernelLoadError: one line without the library's name.
[[nodiscard]] Library load_library(const std::filesystem::path& file);

/// The kernel of a library loaded into this very process. Where the manifest does not say thread_safe, it and its
/// clones are called one at a time. Throws KernelLoadError; `id` begins the line.
[[nodiscard]] std::unique_ptr<Kernel> library_in_process(const std::string& id, const std::filesystem::path& file);

/// Where an address lies from the buffer for messages of this thread's calls. Async-signal-safe.
[[nodiscard]] std::optional<FaultPlace> place_in_message(const void* address) noexcept;

/// The multihead entry of a kernel whose manifest does not list "operations", which is sent the smallest problem: every
/// size 1, no biases.
[[nodiscard]] Case smallest_multihead(DType dtype);

}  // namespace attest::process
