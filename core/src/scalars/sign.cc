#include "attest/scalars/sign.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Sign)
}  // namespace attest
