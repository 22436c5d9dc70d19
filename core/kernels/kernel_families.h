// Families of kernels with names, beyond those that core has itself.
#pragma once

#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Makes the entries known to open_kernels and known_kernels, for a library that core knows nothing of. Before the
/// first call of either; not thread-safe. A family that is known already is not added again.
void add_kernel_family(std::vector<KernelEntry> (*family)());

}  // namespace attest
