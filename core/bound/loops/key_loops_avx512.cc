// Compiled with -mavx512f -mavx512dq -mavx512vl: as inner_loops_avx2.cc, nothing that another file could share with it.
#include "core/bound/loops/key_loops.h"

namespace attest::detail {
namespace {

constexpr int lanes = 8;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));

#include "core/bound/loops/key_loops.inc"

}  // namespace

const KeyLoops& avx512_key_loops();
const KeyLoops& avx512_key_loops() {
  return table;
}

}  // namespace attest::detail
