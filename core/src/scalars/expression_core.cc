#include "attest/definitions/instantiate.h"
#include "attest/scalars/expression.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Expression)
}  // namespace attest
