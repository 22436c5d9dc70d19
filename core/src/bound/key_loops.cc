#include "key_loops.h"

#include <cstring>

namespace attest::detail {
namespace {

constexpr int lanes = 2;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));

struct Yes {
  static constexpr bool value = true;
};
struct No {
  static constexpr bool value = false;
};

#include "key_loops.inc"

}  // namespace

#ifdef ATTEST_HAVE_AVX2_LOOPS
const KeyLoops& avx2_key_loops();
#endif

const KeyLoops* key_loops_named(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &table;
#ifdef ATTEST_HAVE_AVX2_LOOPS
  if (std::strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &avx2_key_loops();
#endif
  return nullptr;
}

const KeyLoops& key_loops() {
  static const KeyLoops* const chosen = [] {
    const KeyLoops* fast = key_loops_named("avx2");
    return fast ? fast : &table;
  }();
  return *chosen;
}

}  // namespace attest::detail
