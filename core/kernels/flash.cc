// Blocks of keys with a running maximum, subtracted before the exponential (Dao et al. 2022, algorithm 1 for one row).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

constexpr std::int64_t block = 16;

template <class Format>
void flash(const Row<Format>& row) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  Real* const s = row.scratch;

  Real maximum = row.sink;
  Real sum = row.sink > minus_infinity ? 1 : 0;
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t begin = 0; begin < row.keys; begin += block) {
    const std::int64_t end = std::min(begin + block, row.keys);

    // pass 1 over the block: scores and the maximum so far
    Real larger = maximum;
    for (std::int64_t j = begin; j < end; ++j) {
      s[j] = row.visible[j] ? row.score(j) : minus_infinity;
      larger = std::max(larger, s[j]);
    }
    // Nothing but hidden keys up to here: -inf - -inf would be NaN.
    if (larger == minus_infinity) continue;

    // rescale what has been summed to the new maximum
    const Real rescale = std::exp(maximum - larger);
    sum *= rescale;
    for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] *= rescale;
    maximum = larger;

    // pass 2 over the block: weights and their product with V; the sum takes them unrounded
    for (std::int64_t j = begin; j < end; ++j) {
      if (!row.visible[j]) continue;
      const Real weight = std::exp(s[j] - maximum);
      const Real rounded = Format::round(weight);
      sum += weight;
      if (row.drops(j)) continue;
      for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] += rounded * row.value(j)[c];
    }
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] = row.out[c] / sum * row.gain;
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.weights = dtype;
  a.block = block;
  return a;
}

}  // namespace

BuiltinKernel flash_kernel() {
  return {
      .name = "flash",
      .summary = "blocks of 16 keys, running maximum subtracted first",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::zero,
      .rows = {flash<F64>, flash<F32>, flash<F16>, flash<BF16>},
      .slopes = SlopeForm::column,
      .backward = flash_backward(16)};
}

}  // namespace attest
