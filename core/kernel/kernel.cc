#include <stdexcept>

#include "core/kernel/wide.h"

namespace attest {

WideReply Kernel::run_wide(const Case&) {
  throw std::logic_error("run_wide is for kernels on a wide scalar: ask is_wide() first");
}

}  // namespace attest
