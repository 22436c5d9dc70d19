// One pass, key by key: every new maximum rescales what has been summed (Milakov and Gimelshein 2018).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

template <class Format>
void online(const Row<Format>& row) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();

  Real maximum = row.sink;
  Real sum = row.sink > minus_infinity ? 1 : 0;
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j]) continue;
    const Real score = row.score(j);
    // A score that overflowed to -inf has weight 0; before any other key there is no maximum to subtract.
    if (score == minus_infinity) continue;
    const Real larger = std::max(maximum, score);
    const Real rescale = std::exp(maximum - larger);
    const Real weight = std::exp(score - larger);
    sum = sum * rescale + weight;
    for (std::int64_t c = 0; c < row.value_dim; ++c)
      row.out[c] = row.drops(j) ? row.out[c] * rescale : row.out[c] * rescale + weight * row.value(j)[c];
    maximum = larger;
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] = row.out[c] / sum * row.gain;
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.block = 1;
  return a;
}

}  // namespace

BuiltinKernel online_kernel() {
  return {
      .name = "online",
      .summary = "one pass, rescaled key by key",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::zero,
      .rows = {online<F64>, online<F32>, online<F16>, online<BF16>},
      .backward = backward_by_weights(128)};
}

}  // namespace attest
