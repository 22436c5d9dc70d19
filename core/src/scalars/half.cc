#include "attest/scalars/half.h"

#include "attest/definitions/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Eigen::half)
}  // namespace attest
