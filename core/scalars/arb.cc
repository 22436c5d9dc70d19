#include "core/scalars/arb.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Arb)
}  // namespace attest
