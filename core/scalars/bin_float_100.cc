#include "core/definition/bodies/instantiate.h"
#include "core/scalars/bin_float.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(BinFloat100)
}  // namespace attest
