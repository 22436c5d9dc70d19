#include "core/bound/loops/inner_loops.h"

#include <cstring>

namespace attest::detail {
namespace {

constexpr int lanes = 2;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));
inline void mad(vec& accumulator, const vec& a, const vec& b) {
  accumulator += a * b;
}
typedef float singles __attribute__((vector_size(2 * lanes * sizeof(float))));
inline void mad(singles& accumulator, const singles& a, const singles& b) {
  accumulator += a * b;
}
/// `lanes` floats as doubles.
inline vec widened(const float* p) {
  return vec{static_cast<double>(p[0]), static_cast<double>(p[1])};
}
inline vec lower_half(const singles& v) {
  return vec{static_cast<double>(v[0]), static_cast<double>(v[1])};
}
inline vec upper_half(const singles& v) {
  return vec{static_cast<double>(v[2]), static_cast<double>(v[3])};
}

/// A factor of error-free products: Veltkamp's halves of 26 bits, high + low = value.
struct Factor {
  vec value, high, low;
};
inline Factor factor(const vec& a) {
  const vec c = 134217729.0 * a;
  const vec high = c - (c - a);
  return {a, high, a - high};
}
/// a b = p + e (Dekker 1971).
inline void two_product(const Factor& a, const Factor& b, vec& p, vec& e) {
  p = a.value * b.value;
  e = ((a.high * b.high - p) + a.high * b.low + a.low * b.high) + a.low * b.low;
}

#include "core/bound/loops/inner_loops.inc"

}  // namespace

#ifdef ATTEST_HAVE_X86_LOOPS
const InnerLoops& avx2_inner_loops();

namespace {
bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
}  // namespace
#endif

const InnerLoops* inner_loops_named(const char* name) {
  if (std::strcmp(name, "baseline") == 0) return &table;
#ifdef ATTEST_HAVE_X86_LOOPS
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
