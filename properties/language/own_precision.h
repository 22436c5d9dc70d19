// What a kernel that computes on a scalar wider than every dtype answers before it is rounded to one.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// The verdict on an answer that was rounded to a dtype, and on the same call's own numbers (judge_wide): the worse of
/// the two. The verdict alone of every other kernel.
[[nodiscard]] Verdict and_at_own_precision(Verdict rounded, Kernel& kernel, const Case& c);

}  // namespace attest
