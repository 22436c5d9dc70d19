// Two passes with every sum over the keys taken pairwise: a term passes log2(n) roundings instead of n.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

/// term(begin) + … + term(end - 1), each half by itself. At least one term.
template <class Real, class Term>
Real pairwise_sum(std::int64_t begin, std::int64_t end, const Term& term) {
  if (end - begin == 1) return term(begin);
  const std::int64_t middle = begin + (end - begin) / 2;
  return pairwise_sum<Real>(begin, middle, term) + pairwise_sum<Real>(middle, end, term);
}

template <class Format>
void pairwise(const Row<Format>& row) {
  using Real = typename Format::Real;
  Real* const w = row.scratch;

  // pass 1: the visible keys, their scores and the maximum. The tree stands on the visible keys alone, so that hidden
  // ones change nothing wherever they are.
  thread_local std::vector<std::int64_t> seen;
  seen.clear();
  Real maximum = row.sink;
  for (std::int64_t j = 0; j < row.keys; ++j) {
    if (!row.visible[j]) continue;
    const auto n = static_cast<std::int64_t>(seen.size());
    w[n] = row.score(j);
    maximum = std::max(maximum, w[n]);
    seen.push_back(j);
  }
  const auto n = static_cast<std::int64_t>(seen.size());

  // pass 2: weights, their sum, and their product with V
  for (std::int64_t a = 0; a < n; ++a) w[a] = std::exp(w[a] - maximum);
  const Real sum = pairwise_sum<Real>(0, n, [&](std::int64_t a) { return w[a]; }) + std::exp(row.sink - maximum);
  for (std::int64_t c = 0; c < row.value_dim; ++c) {
    const auto term = [&](std::int64_t a) {
      const std::int64_t j = seen[static_cast<std::size_t>(a)];
      return row.drops(j) ? Real{0} : w[a] * row.value(j)[c];
    };
    row.out[c] = pairwise_sum<Real>(0, n, term) / sum * row.gain;
  }
  *row.lse = maximum + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.block = 0;
  a.blocked_sums = BlockedSums{.block = 1, .depth = 1, .pairwise = true};
  return a;
}

}  // namespace

BuiltinKernel pairwise_kernel() {
  return {
      .name = "pairwise",
      .summary = "two passes, sums over the keys taken pairwise",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::zero,
      .rows = {pairwise<F64>, pairwise<F32>, pairwise<F16>, pairwise<BF16>}};
}

}  // namespace attest
