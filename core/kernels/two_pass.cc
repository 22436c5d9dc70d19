// Two passes: the weights as the definition has them, normalised, then their product with the values.
#include <algorithm>
#include <cmath>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

template <class Format>
void two_pass(const Row<Format>& row) {
  using Real = typename Format::Real;
  Real* const w = row.scratch;

  // pass 1: scores and their maximum
  Real maximum = row.sink;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j]) continue;
    w[j] = row.score(j);
    maximum = std::max(maximum, w[j]);
  }

  // pass 2: weights, normalised and rounded to the format of the inputs, and their product with V
  Real sum = std::exp(row.sink - maximum);
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j]) continue;
    w[j] = std::exp(w[j] - maximum);
    sum += w[j];
  }
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j] || row.drops(j)) continue;
    const Real weight = Format::round(w[j] / sum * row.gain);
    for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] += weight * row.value(j)[c];
  }
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.weights = dtype;
  a.block = 0;
  a.normalise_first = true;
  return a;
}

}  // namespace

BuiltinKernel two_pass_kernel() {
  return {
      .name = "two-pass",
      .summary = "scores, then normalised weights, then their product with V",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::nan,
      .rows = {two_pass<F64>, two_pass<F32>, two_pass<F16>, two_pass<BF16>},
      .dropout = DropoutPlace::weights,
      .backward = unfused_backward(64)};
}

}  // namespace attest
