#include "core/definition/bodies/instantiate.h"
#include "core/proof/symbolic.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Symbolic)
}  // namespace attest
