// Blocks of keys with a running maximum folded into base 2: weight = exp2(fma(x, c, -fl(m c))), c = scale log2(e), as
// FlashAttention-2 has it. The weight of the largest key is therefore not exactly 1.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/kernels/builtin.h"

namespace attest {
namespace {

constexpr std::int64_t block = 32;

template <class Format>
void flash_exp2(const Row<Format>& row) {
  using Real = typename Format::Real;
  constexpr Real minus_infinity = -std::numeric_limits<Real>::infinity();
  Real* const x = row.scratch;

  // An additive mask after the scale leaves only log2(e) to fold; otherwise the factor of x goes along: the scale, or
  // the cap, as x is then the tanh of what the scale has gone into.
  const bool capped = row.softcap > 0;
  const bool divides = row.slope_form == SlopeForm::column_divided;
  const bool folds = (row.bias == nullptr || row.pre_scale) && (row.slope == 0 || divides);
  const Real log2e = std::numbers::log2e_v<Real>;
  const Real factor = capped ? row.softcap : row.scale;
  const Real c2 = folds ? factor * log2e : log2e;
  const Real to_tanh = capped ? row.scale / row.softcap : Real{1};
  const Real slope = row.slope / factor;  // beside x

  Real maximum = minus_infinity;  // of x, the scores without the factor that is folded
  Real sum = 0;
  std::fill_n(row.out, row.value_dim, Real{0});
  for (std::int64_t begin = 0; begin < row.keys; begin += block) {
    const std::int64_t end = std::min(begin + block, row.keys);

    // pass 1 over the block: scores and the maximum so far
    Real larger = maximum;
    for (std::int64_t j = begin; j < end; ++j) {
      x[j] = minus_infinity;
      if (!row.visible[j]) continue;
      if (!folds) {
        x[j] = row.score(j);
      } else if (capped) {
        x[j] = std::tanh(row.product(j) * to_tanh);
      } else {
        x[j] = row.bias == nullptr ? row.product(j) : row.product(j) + row.bias[j];
      }
      if (folds && slope != 0) x[j] += slope * row.slope_unit(j);
      larger = std::max(larger, x[j]);
    }
    // Nothing but keys of weight 0 up to here, hidden or so low that base 2 overflows: no maximum to fold.
    if (larger * c2 == minus_infinity) continue;

    // rescale what has been summed; the difference is taken before the factor, so nothing accumulates
    const Real rescale = std::exp2((maximum - larger) * c2);
    sum *= rescale;
    for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] *= rescale;
    maximum = larger;

    // pass 2 over the block: weights and their product with V
    const Real shift = maximum * c2;
    for (std::int64_t j = begin; j < end; ++j) {
      if (!row.visible[j]) continue;
      const Real weight = std::exp2(std::fma(x[j], c2, -shift));
      const Real rounded = Format::round(weight);
      sum += weight;
      if (row.drops(j)) continue;
      for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] += rounded * row.value(j)[c];
    }
  }
  Real reference = folds ? maximum * factor : maximum;

  // the sink, whose own score no factor has been folded out of
  if (row.sink > minus_infinity) {
    const Real sink = row.sink * log2e, shift = maximum * c2;
    if (sink > shift) {
      const Real rescale = std::exp2(shift - sink);
      sum = sum * rescale + 1;
      for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] *= rescale;
      reference = row.sink;
    } else {
      sum += std::exp2(sink - shift);
    }
  }
  for (std::int64_t c = 0; c < row.value_dim; ++c) row.out[c] = row.out[c] / sum * row.gain;
  *row.lse = reference + std::log(sum);
}

Arithmetic arithmetic(DType dtype) {
  Arithmetic a = row_arithmetic(dtype);
  a.weights = dtype;
  a.block = block;
  a.base2 = true;
  a.folded_exp2 = true;
  return a;
}

}  // namespace

BuiltinKernel flash_exp2_kernel() {
  BackwardForm backward = flash_backward(64);
  backward.base2 = backward.delta_in_sum = true;
  return {
      .name = "flash-exp2",
      .summary = "blocks of 32 keys, scale and maximum folded into exp2",
      .arithmetic = arithmetic,
      .claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values},
      .no_key = NoKey::zero,
      .rows = {flash_exp2<F64>, flash_exp2<F32>, flash_exp2<F16>, flash_exp2<BF16>},
      .slopes = SlopeForm::column_divided,
      .lse_of_columns = true,
      .backward = backward};
}

}  // namespace attest
