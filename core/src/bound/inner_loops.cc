#include "inner_loops.h"

#include <cstring>

namespace attest::detail {
namespace {

constexpr int lanes = 2;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));
inline void mad(vec& accumulator, const vec& a, const vec& b) {
  accumulator += a * b;
}

/// a b = p + e (Dekker, Veltkamp).
inline void two_product(const vec& a, const vec& b, vec& p, vec& e) {
  p = a * b;
  const vec ca = 134217729.0 * a, cb = 134217729.0 * b;
  const vec ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
  e = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

#include "inner_loops.inc"

}  // namespace

#ifdef ATTEST_HAVE_AVX2_LOOPS
const InnerLoops& avx2_inner_loops();

namespace {
bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
}  // namespace
#endif

const InnerLoops* inner_loops_named(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &table;
#ifdef ATTEST_HAVE_AVX2_LOOPS
  if (std::strcmp(name, "avx2") == 0 && runs_avx2()) return &avx2_inner_loops();
#endif
  return nullptr;
}

const InnerLoops& inner_loops() {
  static const InnerLoops* const chosen = [] {
    const InnerLoops* fast = inner_loops_named("avx2");
    return fast ? fast : &table;
  }();
  return *chosen;
}

}  // namespace attest::detail
