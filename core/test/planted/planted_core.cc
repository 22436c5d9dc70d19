// The core on the scalars that prove, from the copies of its headers with faults planted in them. It defines what the
// library's own symbolic_core.cc and finite_field_core.cc define, so that the linker does not take those.
#include "attest/definitions/instantiate.h"
#include "attest/scalars/finite_field.h"
#include "attest/scalars/symbolic.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
ATTEST_INSTANTIATE_CORE(Residue)
}  // namespace attest
