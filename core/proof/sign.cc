#include "core/proof/sign.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Sign)
}  // namespace attest
