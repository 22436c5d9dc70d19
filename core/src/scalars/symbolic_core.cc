#include "attest/definitions/instantiate.h"
#include "attest/scalars/symbolic.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
}  // namespace attest
