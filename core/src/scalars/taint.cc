#include "attest/scalars/taint.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Taint)
}  // namespace attest
