#include "core/definition/bodies/instantiate.h"
#include "core/scalars/dec_float.h"

namespace attest {
ATTEST_INSTANTIATE_CORE(DecFloat<100>)
}  // namespace attest
