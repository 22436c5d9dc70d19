#include "attest/scalars/mpfi.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Interval)
}  // namespace attest
