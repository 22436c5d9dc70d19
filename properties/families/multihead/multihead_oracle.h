// A multi-head answer against the exact one: what every property of the definition itself (000) asks of a kernel.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// The kernel's output on a multihead case, judged by the oracle element by element. Throws NoAnswer (answer.h).
[[nodiscard]] Verdict judged_multihead(Kernel& kernel, const Case& c);

}  // namespace attest
