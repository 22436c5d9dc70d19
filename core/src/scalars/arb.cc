#include "attest/scalars/arb.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Arb)
}  // namespace attest
