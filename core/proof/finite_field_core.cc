#include "core/definition/bodies/instantiate.h"
#include "core/proof/finite_field.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Residue)
}  // namespace attest
