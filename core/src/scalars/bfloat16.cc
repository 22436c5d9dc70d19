#include "attest/definitions/instantiate.h"
#include "attest/scalars/half.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Eigen::bfloat16)
}  // namespace attest
