// The core on Symbolic from the copies of its headers with faults planted in them. It defines what the library's own
// symbolic_core.cc defines, so that the linker does not take that one.
#include "attest/definitions/instantiate.h"
#include "attest/scalars/symbolic.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
}  // namespace attest
