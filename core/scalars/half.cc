#include "core/scalars/half.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Eigen::half)
}  // namespace attest
