// Blocks of keys whose reference point follows the maximum only when it has fallen behind by more than a threshold, as
// FlashAttention-4 does to save rescalings. Weights reach exp(threshold).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

constexpr std::int64_t block = 8;
constexpr int threshold = 4;  ///< nats

template <class Format>
void lazy(const Row<Format>& row) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  Real* const s = row.scratch;

  Real reference = row.sink;
  Real sum = row.sink > minus_infinity ? 1 : 0;
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t begin = 0; begin < row.keys; begin += block) {
    const std::int64_t end = std::min(begin + block, row.keys);

    // pass 1 over the block: scores and their maximum
    Real maximum = minus_infinity;
    for (std::int64_t j = begin; j < end; ++j) {
      s[j] = row.visible[j] ? row.score(j) : minus_infinity;
      maximum = std::max(maximum, s[j]);
    }
    if (maximum == minus_infinity) continue;

    // rescale only when the reference has fallen behind; the first block always sets it. With >= on the rounded
    // difference the exact one stays below the threshold.
    if (maximum - reference >= Real{threshold}) {
      const Real rescale = std::exp(reference - maximum);
      sum *= rescale;
      for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] *= rescale;
      reference = maximum;
    }

    // pass 2 over the block: weights and their product with V
    for (std::int64_t j = begin; j < end; ++j) {
      if (!row.visible[j]) continue;
      const Real weight = std::exp(s[j] - reference);
      const Real rounded = Format::round(weight);
      sum += weight;
      if (row.drops(j)) continue;
      for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] += rounded * row.value(j)[c];
    }
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] = row.out[c] / sum * row.gain;
  *row.lse = reference + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.weights = dtype;
  a.block = block;
  a.max = MaxPolicy::lazy;
  a.lazy_nats = threshold;
  return a;
}

}  // namespace

BuiltinKernel lazy_kernel() {
  BackwardForm backward = flash_backward(128);
  backward.scale_first = true;
  return {
      .name = "lazy",
      .summary = "blocks of 8 keys, rescaled only when the maximum rises by more than 4",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::zero,
      .rows = {lazy<F64>, lazy<F32>, lazy<F16>, lazy<BF16>},
      .backward = backward};
}

}  // namespace attest
