// Families of kernels with names, beyond those that core has itself.
#pragma once

#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Makes the entries known to open_kernels and known_kernels, for a library that core knows nothing of. Before the
/// first call of either; not thread-safe. A family that is known already is not added again.
void add_kernel_family(std::vector<KernelEntry> (*family)());

/// A name for a kernel from outside, which is opened under its id as it is under what it is.
struct OutsideName {
  std::string id;
  std::string summary;  ///< one line for `attest list`
  std::string outside;  ///< a shared library's path, or "exec:COMMAND"
};
/// As add_kernel_family. Globs match these names where they begin with "FAMILY:" as the id does.
void add_outside_names(std::vector<OutsideName> (*family)());

}  // namespace attest
