#include "attest/scalars/mpfr.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Mpfr)
}  // namespace attest
