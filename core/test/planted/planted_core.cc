// The core on the scalars that prove, from the copies of its headers with faults planted in them. It defines what the
// library's own files under src/scalars define, so that the linker does not take those.
#include "attest/definitions/instantiate.h"
#include "attest/scalars/finite_field.h"
#include "attest/scalars/sign.h"
#include "attest/scalars/symbolic.h"
#include "attest/scalars/taint.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
ATTEST_INSTANTIATE_CORE(Residue)
ATTEST_INSTANTIATE_CORE(Sign)
ATTEST_INSTANTIATE_CORE(Taint)
}  // namespace attest
