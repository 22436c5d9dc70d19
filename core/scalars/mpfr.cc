#include "core/scalars/mpfr.h"

#include "core/definition/bodies/instantiate.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(Mpfr)
}  // namespace attest
