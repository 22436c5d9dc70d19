// The adapter scripts that travel with the program, and the kernels that they serve.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace attest {

/// The folder that holds python/attest_adapter.py, pytorch/ and the others: $ATTEST_ADAPTERS if it is set, else
/// ../share/attest/adapters beside the running program's folder (an installed program), else the source tree it was
/// built from. Empty when none of these exists.
[[nodiscard]] std::filesystem::path adapters_folder();

struct AdapterKernel {
  std::string_view id;       ///< "family:name"; the script's argument is the name
  std::string_view summary;  ///< one line for `attest list`
};

/// Kernels of one library, served by one script, each in a process of its own.
struct AdapterFamily {
  std::span<const AdapterKernel> kernels;  ///< sorted by id
  std::string_view script;                 ///< in the adapters folder
  std::span<const char* const> programs;   ///< that can run the script; the first that works is used
  std::string_view absent;                 ///< how the script's refusal begins where the library is not installed
  std::string_view remedy;                 ///< what to do about that
};

/// In the order of `attest list`.
[[nodiscard]] std::span<const AdapterFamily> adapter_families();

}  // namespace attest
