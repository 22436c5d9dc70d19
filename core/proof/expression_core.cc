#include "core/definition/bodies/instantiate.h"
#include "core/proof/expression.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Expression)
}  // namespace attest
