// Compiled with -mavx2 -mfma, so it must hold nothing that another file could share with it: no standard containers,
// only functions with internal linkage and one with a name of its own.
#include <immintrin.h>

#include "core/bound/loops/inner_loops.h"

namespace attest::detail {
namespace {

constexpr int lanes = 4;
typedef double vec __attribute__((vector_size(lanes * sizeof(double))));
inline void mad(vec& accumulator, const vec& a, const vec& b) {
  accumulator = (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)accumulator);
}
typedef float singles __attribute__((vector_size(2 * lanes * sizeof(float))));
inline void mad(singles& accumulator, const singles& a, const singles& b) {
  accumulator = (singles)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)accumulator);
}
/// `lanes` floats as doubles.
inline vec widened(const float* p) {
  return (vec)_mm256_cvtps_pd(_mm_loadu_ps(p));
}
inline vec lower_half(const singles& v) {
  return (vec)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
}
inline vec upper_half(const singles& v) {
  return (vec)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

/// A factor of error-free products: a fused operation needs no parts of it.
struct Factor {
  vec value;
};
inline Factor factor(const vec& a) {
  return {a};
}
/// a b = p + e.
inline void two_product(const Factor& a, const Factor& b, vec& p, vec& e) {
  p = a.value * b.value;
  e = (vec)_mm256_fmsub_pd((__m256d)a.value, (__m256d)b.value, (__m256d)p);
}

#include "core/bound/loops/inner_loops.inc"

}  // namespace

const InnerLoops& avx2_inner_loops();
const InnerLoops& avx2_inner_loops() {
  return table;
}

}  // namespace attest::detail
