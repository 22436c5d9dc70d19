// The core on the scalars that prove, from the copies of its headers with faults planted in them. It defines what the
// library's own files under src/scalars define, so that the linker does not take those.
#include "core/definition/bodies/instantiate.h"
#include "core/proof/finite_field.h"
#include "core/proof/sign.h"
#include "core/proof/symbolic.h"
#include "core/proof/taint.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
ATTEST_INSTANTIATE_CORE(Residue)
ATTEST_INSTANTIATE_CORE(Sign)
ATTEST_INSTANTIATE_CORE(Taint)
}  // namespace attest
