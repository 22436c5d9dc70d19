#include "core/bound/loops/key_loops.h"

#include <cstring>
#include <initializer_list>

namespace attest::detail {
namespace {

constexpr int lanes = 2;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));

#include "core/bound/loops/key_loops.inc"

}  // namespace

#ifdef ATTEST_HAVE_X86_LOOPS
const KeyLoops& avx2_key_loops();
const KeyLoops& avx512_key_loops();
#endif

const KeyLoops* key_loops_named(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &table;
#ifdef ATTEST_HAVE_X86_LOOPS
  if (std::strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &avx2_key_loops();
  if (std::strcmp(name, "avx512") == 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return &avx512_key_loops();
#endif
  return nullptr;
}

const KeyLoops& key_loops() {
  static const KeyLoops* const chosen = [] {
    for (const char* name : {"avx512", "avx2"})
      if (const KeyLoops* fast = key_loops_named(name)) return fast;
    return &table;
  }();
  return *chosen;
}

}  // namespace attest::detail
