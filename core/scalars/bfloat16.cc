#include "core/definition/bodies/instantiate.h"
#include "core/scalars/half.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Eigen::bfloat16)
}  // namespace attest
