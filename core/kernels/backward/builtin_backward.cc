#include "core/kernels/backward/builtin_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/row.h"
#include "core/value/tensor.h"

namespace attest {
namespace {

template <class Real>
Real element(const attest_tensor& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
  return static_cast<Real>(load_element(t.data, static_cast<DType>(t.dtype), offset_in(t, b, h, i, c)));
}

/// Sums of gradients of one tensor [batch, heads, rows, columns], written once at the end.
template <class Real>
struct Sums {
  Sums(const attest_tensor& of, std::int64_t all_heads)
      : batch(of.shape[0]), heads(all_heads), rows(of.shape[2]), columns(of.shape[3]) {
    sums.assign(static_cast<std::size_t>(batch * heads * rows * columns), Real{0});
  }
  [[nodiscard]] Real* row(std::int64_t b, std::int64_t h, std::int64_t i) {
    return sums.data() + ((b * heads + h) * rows + i) * columns;
  }
  std::int64_t batch, heads, rows, columns;
  std::vector<Real> sums;
};

/// Writes each head's sums times a factor, those of `group` heads added up.
template <class Real, class Rounded>
void write(Sums<Real>& of, Real factor, std::int64_t group, const Rounded& partial, const attest_tensor& to) {
  if (to.data == nullptr) return;
  for (std::int64_t b = 0; b < of.batch; ++b)
    for (std::int64_t h = 0; h < of.heads / group; ++h)
      for (std::int64_t i = 0; i < of.rows; ++i)
        for (std::int64_t c = 0; c < of.columns; ++c) {
          Real sum = partial(factor * of.row(b, h * group, i)[c]);
          for (std::int64_t g = 1; g < group; ++g) sum += partial(factor * of.row(b, h * group + g, i)[c]);
          store_element(to.data, static_cast<DType>(to.dtype), offset_in(to, b, h, i, c), static_cast<double>(sum));
        }
}

/// The weights of a row's visible keys, of others 0.
template <class Format>
void from_lse(const Row<Format>& row, typename Format::Real lse, typename Format::Real* weights) {
  for (std::int64_t j = 0; j < row.keys; ++j) weights[j] = row.visible[j] != 0 ? std::exp(row.score(j) - lse) : 0;
}
template <class Format>
void normalised(const Row<Format>& row, typename Format::Real* weights) {
  using Real = typename Format::Real;
  Real most = -std::numeric_limits<Real>::infinity(), sum = 0;
  for (std::int64_t j = 0; j < row.keys; ++j)
    if (row.visible[j] != 0) most = std::max(most, weights[j] = row.score(j));
  for (std::int64_t j = 0; j < row.keys; ++j)
    if (row.visible[j] != 0) sum += weights[j] = std::exp(weights[j] - most);
  for (std::int64_t j = 0; j < row.keys; ++j) weights[j] = row.visible[j] != 0 ? Format::round(weights[j] / sum) : 0;
}

template <class Format, bool stored>
void run(const attest_backward_problem& problem, attest_gradients& gradients) {
  using Real = typename Format::Real;
  const attest_problem& p = *problem.forward;
  const std::int64_t group = p.q.shape[1] / p.k.shape[1], dk = p.q.shape[3], dv = p.v.shape[3];
  Sums<Real> of_q(p.q, p.q.shape[1]), of_k(p.k, p.q.shape[1]), of_v(p.v, p.q.shape[1]);
  std::vector<Real> g(static_cast<std::size_t>(dv)), of_weights(static_cast<std::size_t>(p.k.shape[2]));
  for_each_seeing_row<Format>(p, [&](const RowPlace& at, const Row<Format>& row) {
    Real* const weights = row.scratch;
    Real delta = 0;
    for (std::int64_t c = 0; c < dv; ++c) {
      g[static_cast<std::size_t>(c)] = element<Real>(problem.d_out, at.b, at.h, at.i, c);
      if constexpr (!stored) delta += g[static_cast<std::size_t>(c)] * element<Real>(problem.out, at.b, at.h, at.i, c);
    }
    if constexpr (stored)
      normalised(row, weights);
    else
      from_lse(row,
               static_cast<Real>(load_element(problem.lse.data, DType::f64, offset_in(problem.lse, at.b, at.h, at.i))),
               weights);
    for (std::int64_t j = 0; j < row.keys; ++j) {
      if (row.visible[j] == 0) continue;
      Real sum = 0;
      for (std::int64_t c = 0; c < dv; ++c) sum += g[static_cast<std::size_t>(c)] * row.value(j)[c];
      of_weights[static_cast<std::size_t>(j)] = stored ? Format::round(sum) : sum;
      if constexpr (stored) delta += weights[j] * of_weights[static_cast<std::size_t>(j)];
    }
    Real* const dq = of_q.row(at.b, at.h, at.i);
    for (std::int64_t j = 0; j < row.keys; ++j) {
      if (row.visible[j] == 0) continue;
      const Real score = Format::round(weights[j] * (of_weights[static_cast<std::size_t>(j)] - delta));
      const Real weight = Format::round(weights[j]);
      Real *const dk_row = of_k.row(at.b, at.h, j), *const dv_row = of_v.row(at.b, at.h, j);
      for (std::int64_t c = 0; c < dk; ++c) dq[c] += score * row.k[j * dk + c];
      for (std::int64_t c = 0; c < dk; ++c) dk_row[c] += score * row.q[c];
      for (std::int64_t c = 0; c < dv; ++c) dv_row[c] += weight * g[static_cast<std::size_t>(c)];
    }
  });
  const Real scale = static_cast<Real>(p.scale);
  const auto partial = [](Real x) { return stored ? x : Format::round(x); };
  write(of_q, scale, 1, [](Real x) { return x; }, gradients.dq);
  write(of_k, scale, group, partial, gradients.dk);
  write(of_v, Real{1}, group, partial, gradients.dv);
}

template <bool stored>
int run_in(const attest_backward_problem& problem, attest_gradients& gradients, std::string& message) {
  if ((problem.forward->variants & ~static_cast<std::uint32_t>(ATTEST_WINDOW | ATTEST_CHUNK)) != 0) {
    message = "its backward pass has windows and chunks, and no other variant";
    return ATTEST_UNSUPPORTED;
  }
  switch (static_cast<DType>(problem.forward->q.dtype)) {
    case DType::f64:
      run<F64, stored>(problem, gradients);
      return ATTEST_OK;
    case DType::f32:
      run<F32, stored>(problem, gradients);
      return ATTEST_OK;
    case DType::f16:
      run<F16, stored>(problem, gradients);
      return ATTEST_OK;
    case DType::bf16:
      run<BF16, stored>(problem, gradients);
      return ATTEST_OK;
    default:
      message = "runs in f64, f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
  }
}

BackwardArithmetic plain(DType dtype) {
  BackwardArithmetic a;
  a.output = dtype;
  a.dot = a.accumulate = a.of_weights = dtype == DType::f64 ? DType::f64 : DType::f32;
  a.weights = a.of_scores = dtype;
  return a;
}

}  // namespace

BuiltinBackward backward_from_lse() {
  return {.run = run_in<false>,
          .terms = {.masked_row = MaskedGradient::zero,
                    .weights = WeightsFrom::lse,
                    .delta = DeltaFrom::out,
                    .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                               Claim::ignores_dead_values},
                    .excluded = without_gradients()},
          .arithmetic = [](DType dtype) {
            BackwardArithmetic a = plain(dtype);
            a.group_partials = dtype;
            return a;
          }};
}

BuiltinBackward backward_from_weights() {
  return {.run = run_in<true>,
          .terms = {.uses_out = false,
                    .uses_lse = false,
                    .masked_row = MaskedGradient::zero,
                    .weights = WeightsFrom::stored,
                    .delta = DeltaFrom::weights,
                    .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                               Claim::ignores_dead_values},
                    .excluded = without_gradients()},
          .arithmetic = [](DType dtype) {
            BackwardArithmetic a = plain(dtype);
            a.of_weights = dtype;
            a.rounded_weights_in_scores = true;
            return a;
          }};
}

}  // namespace attest
