#include "attest/definitions/instantiate.h"
#include "attest/scalars/bin_float.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(BinFloat100)
}  // namespace attest
