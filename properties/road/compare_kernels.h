// Two kernels on the same case, held against each other.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"

namespace attest {

/// |kernel - other| <= what both are allowed, element by element, out and, where both offer it, lse. Skipped where one
/// of the manifests rules the case out, and where the other kernel gives no output: that is nothing that this one did.
/// Counts the bits that agreed. An answer of the kernel that is none at all is violated, as by check_case.
[[nodiscard]] Verdict check_against(Kernel& kernel, Kernel& other, const Case& c);

/// shrink (property.h) of a case on which they disagree.
[[nodiscard]] Case shrink_against(Kernel& kernel, Kernel& other, const Case& c, int budget);

}  // namespace attest
