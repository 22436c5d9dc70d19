// Limits that a kernel has and its manifest leaves open: found by asking a fixed list of shapes and seeing which it
// says it cannot do. The same list and the same answer on every machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// A limit that explains what was refused.
struct FoundLimit {
  std::string key;    ///< as a manifest states it: "\"limits\": {\"keys_multiple\": 64}"
  std::string words;  ///< "it refused 1, 2, 3 keys … and answered 64, 128"
};
struct FoundLimits {
  Manifest manifest;               ///< the kernel's, with what was found
  std::vector<FoundLimit> limits;  ///< none: nothing was refused, or no limit explains it
  std::string unexplained;         ///< what was refused without a limit that explains it; empty: nothing
};
/// Calls the kernel's attention entry: a handful of times, and where it answers `unsupported` to one of these shapes,
/// which all lie within the limits of the manifest, about a hundred times. Asked is only what the manifest says nothing
/// of: widths, lengths, groups, kinds of masks, causal forms with unequal lengths and with masks. Ends with what is
/// known by then at the first call that ends in anything but ok or `unsupported`: that is the run's to report.
[[nodiscard]] FoundLimits find_limits(Kernel& kernel);

/// The declared manifest with every limit of `found` that it says nothing of.
[[nodiscard]] Manifest with_limits_of(Manifest declared, const Manifest& found);

/// The kernel under a manifest with narrower limits; so are its clones.
[[nodiscard]] std::unique_ptr<Kernel> limited_kernel(std::unique_ptr<Kernel> kernel, Manifest manifest);

}  // namespace attest
