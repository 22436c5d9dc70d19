#include "core/scalars/mpfi.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Interval)
}  // namespace attest
