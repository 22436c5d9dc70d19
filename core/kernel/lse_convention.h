// Log-sum-exps as kernels return them, as those that the contract means.
#pragma once

#include <memory>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// The kernel; where its manifest says so, with each log-sum-exp that it returns in the form of the contract: without
/// the slope times the position that all scores of a row are larger by ("lse_convention"."alibi": "column"), with the
/// sink (of sinks, "lse": "without"), and -inf where a row sees no key ("lse_convention"."empty"). What is computed
/// here is taken in long double and rounded to double once, which the bounds of an lse and of gradients know. A
/// backward pass is given what the kernel returned: its replies keep that as Reply::own_lse, and a call without it
/// throws std::logic_error.
[[nodiscard]] std::unique_ptr<Kernel> with_lse_of_contract(std::unique_ptr<Kernel> kernel);

}  // namespace attest
