// The keys in four parts, each attended to by itself, merged through their log-sum-exps (flash decoding).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

constexpr std::int64_t splits = 4;

/// Attention over keys [begin, end): out [dv] normalised. Returns the log-sum-exp, -inf where the part sees nothing.
template <class Format>
typename Format::Real attend(const Row<Format>& row, std::int64_t begin, std::int64_t end, typename Format::Real* out) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  Real* const s = row.scratch;
  std::fill_n(out, row.value_dim, Real{0});

  // pass 1: scores and their maximum
  Real maximum = minus_infinity;
  for (std::int64_t j = begin; j < end; ++j) {
    s[j] = row.visible[j] ? row.score(j) : minus_infinity;
    maximum = std::max(maximum, s[j]);
  }
  if (maximum == minus_infinity) return minus_infinity;

  // pass 2: weights and their product with V
  Real sum = 0;
  for (std::int64_t j = begin; j < end; ++j) {
    if (!row.visible[j]) continue;
    const Real weight = std::exp(s[j] - maximum);
    const Real rounded = Format::round(weight);
    sum += weight;
    if (row.drops(j)) continue;
    for (std::int64_t c = 0; c < row.value_dim; ++c) out[c] += rounded * row.value(j)[c];
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) out[c] /= sum;
  return maximum + std::log(sum);
}

template <class Format>
void split_k(const Row<Format>& row) {
  using Real = typename Format::Real;
  thread_local std::vector<Real> parts;  // [splits, dv]
  parts.resize(static_cast<std::size_t>(splits * row.value_dim));
  Real lse[splits];

  // pass 1: each part by itself
  const std::int64_t length = (row.keys + splits - 1) / splits;
  for (std::int64_t p = 0; p < splits; ++p) {
    const std::int64_t begin = std::min(p * length, row.keys);
    lse[p] = attend(row, begin, std::min(begin + length, row.keys), parts.data() + p * row.value_dim);
  }

  // pass 2: the mean of the parts, weighted by exp(lse); a part that sees nothing has weight exp(-inf) = 0
  // and the sink is one without values
  const Real maximum = std::max(row.sink, *std::max_element(lse, lse + splits));
  Real sum = std::exp(row.sink - maximum);
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t p = 0; p < splits; ++p) {
    const Real weight = std::exp(lse[p] - maximum);
    sum += weight;
    for (std::int64_t c = 0; c < row.value_dim; ++c) {
      row.out[c] += weight * parts[static_cast<std::size_t>(p * row.value_dim + c)];
    }
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] = row.out[c] / sum * row.gain;
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.weights = dtype;
  a.split_merge = true;
  return a;
}

}  // namespace

BuiltinKernel split_k_kernel() {
  // Where the parts begin depends on N, so padding moves them: no claim to be padding-invariant.
  return {.name = "split-k",
          .summary = "four parts merged through their log-sum-exps",
          .arithmetic = arithmetic,
          .claims = {Claim::deterministic, Claim::batch_invariant, Claim::ignores_dead_values},
          .no_key = NoKey::zero,
          .rows = {split_k<F64>, split_k<F32>, split_k<F16>, split_k<BF16>},
          .backward = split_backward(64, splits)};
}

}  // namespace attest
