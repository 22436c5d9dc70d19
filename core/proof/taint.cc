#include "core/proof/taint.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Taint)
}  // namespace attest
