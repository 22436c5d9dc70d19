#include "core/kernel/kernel_under_test.h"

#include "core/kernel/limits.h"

namespace attest {

Reply Kernel::run(const Case& c) {
  return run(c, c.dtype(), asks_lse(manifest(), c, /*wanted=*/false));
}

Reply Kernel::backward(const Case& /*c*/, const BackwardCall& /*call*/, DType /*output*/) {
  return {CallStatus::unsupported, "has no attention_backward entry", {}, {}};
}

}  // namespace attest
