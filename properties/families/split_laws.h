// The law of blocks of keys, which is one with a sink and without.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// Attention over the keys is the merge of that over up to three blocks of them, weighted by e^lse; a sink is in
/// exactly one of these, of the case's own choice.
[[nodiscard]] Verdict split_merge(Kernel& kernel, const Case& c);

}  // namespace attest
