#include "attest/definitions/instantiate.h"
#include "attest/scalars/finite_field.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Residue)
}  // namespace attest
