#include "reports/results/other_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/problem/sight.h"
#include "reports/results/fault_margins.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Which rule stands where in other_rules().
enum Rule : std::size_t { allclose, five_times, two_times, mean_square, fixed_tight, fixed_loose, relative };

/// One row of a head as doubles.
struct RowInputs {
  const double* q;
  const double* k;
  const double* v;
  const std::vector<std::int64_t>& seen;
  const std::vector<double>& bias;  ///< of those seen
  std::int64_t dk, dv;
  double scale;
  bool pre_scale;
};

/// The formula on Real, `round` after each operation on a tensor.
template <class Real, class Round>
void plain_row(const RowInputs& row, Round round, double* out) {
  std::vector<Real> s(row.seen.size());
  Real maximum = -std::numeric_limits<Real>::infinity(), sum = 0;
  for (std::size_t n = 0; n < s.size(); ++n) {
    const double* key = row.k + row.seen[n] * row.dk;
    Real product = 0;
    for (std::int64_t c = 0; c < row.dk; ++c) product += static_cast<Real>(row.q[c]) * static_cast<Real>(key[c]);
    const Real scale = static_cast<Real>(row.scale), bias = static_cast<Real>(row.bias[n]);
    s[n] = row.pre_scale ? round(scale * round(round(product) + bias)) : round(round(scale * round(product)) + bias);
    maximum = std::max(maximum, s[n]);
  }
  for (Real& x : s) sum += x = std::exp(x - maximum);
  for (std::int64_t c = 0; c < row.dv; ++c) {
    Real total = 0;
    for (std::size_t n = 0; n < s.size(); ++n)
      total += round(s[n] / sum) * static_cast<Real>(row.v[row.seen[n] * row.dv + c]);
    out[c] = static_cast<double>(round(total));
  }
}

}  // namespace

std::optional<Tolerance> pytorch_default(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return Tolerance{1e-7, 1e-7};
    case DType::f32:
      return Tolerance{1e-5, 1.3e-6};
    case DType::f16:
      return Tolerance{1e-5, 1e-3};
    case DType::bf16:
      return Tolerance{1e-5, 1.6e-2};
    default:
      return std::nullopt;
  }
}

std::string beside_pytorch(const ToleranceRow& row) {
  const std::optional<DType> dtype = named<DType>(row.dtype);
  const std::optional<Tolerance> theirs = dtype ? pytorch_default(*dtype) : std::nullopt;
  if (!theirs || !row.is_ordinary()) return {};
  // The least atol is kept for some rtol: the next smaller one needs more than theirs does, the next larger one less.
  const double unit = format_of(*dtype).unit;
  std::optional<LogCode> smaller, larger;
  for (std::size_t step = 0; step < relative_steps.size(); ++step) {
    const double rtol = relative_steps[step] * unit;
    if (rtol <= theirs->rtol) smaller = row.cell.atol[step];
    if (rtol >= theirs->rtol && !larger) larger = row.cell.atol[step];
  }
  std::string words = fmt::format("PyTorch's {}, {} misses at least {}", short_number(theirs->atol),
                                  short_number(theirs->rtol), misses_of(*theirs, *dtype).faults.size());
  if (smaller && size_of_code(*smaller) <= theirs->atol) words += " and refuses no right answer";
  // A code rounds up by less than 1 part in 64.
  else if (larger && size_of_code(*larger) * (1 - 1.0 / 64) > theirs->atol)
    words += " and refuses right answers";
  return words;
}

const std::array<OtherRule, other_rule_count>& other_rules() {
  static constexpr std::array<OtherRule, other_rule_count> all{{
      {"allclose", "PyTorch's defaults", "|x-r| <= 1e-5 + t|r|, t = 1.3e-6 (f32), 1e-3 (f16), 1.6e-2 (bf16)"},
      {"five-times", "PyTorch's SDPA tests", "max|x-r| <= max(1e-5, 5 max|plain-r|)"},
      {"two-times", "FlashAttention's tests", "max|x-single| <= 2 max|plain-single| + 1e-5"},
      {"mean-square", "llama.cpp", "sum (x-r)^2 <= 5e-4 sum r^2"},
      {"fixed-0.001", "vLLM, ONNX Runtime", "|x-r| <= 1e-3"},
      {"fixed-0.02", "vLLM, ONNX Runtime", "|x-r| <= 2e-2"},
      {"relative-0.001", "ONNX", "|x-r| <= 1e-7 + 1e-3|r|"},
  }};
  return all;
}

Yardstick::Yardstick(const Case& c) : dtype_(c.dtype()) {
  const Shape shape = c.out_shape(), &kv = c.k().shape();
  const std::int64_t batch = shape[0], heads = shape[1], M = shape[2], dv = shape[3], N = kv[2], dk = kv[3];
  const std::vector<double> q = c.q().to_doubles(), k = c.k().to_doubles(), v = c.v().to_doubles();
  const auto size = static_cast<std::size_t>(shape.elements());
  exact_.assign(size, 0.0), single_.assign(size, 0.0), plain_.assign(size, 0.0);
  judged_.assign(size, false), plain_is_finite_.assign(size, false);
  std::vector<std::int64_t> seen;
  std::vector<double> bias;
  for (std::int64_t row = 0; row < batch * heads * M; ++row) {
    const std::int64_t b = row / M / heads, h = row / M % heads, i = row % M;
    seen.clear(), bias.clear();
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      seen.push_back(j);
      bias.push_back(bias_of(c, b, h, i, j));
    }
    if (seen.empty()) continue;
    const std::int64_t head = b * kv[1] + kv_head_of(c, h);
    const RowInputs inputs{q.data() + row * dk,
                           k.data() + head * N * dk,
                           v.data() + head * N * dv,
                           seen,
                           bias,
                           dk,
                           dv,
                           c.scale,
                           c.mask_convention == MaskConvention::pre_scale};
    const auto at = static_cast<std::size_t>(row * dv);
    plain_row<double>(inputs, [](double x) { return x; }, &exact_[at]);
    plain_row<float>(inputs, [](float x) { return x; }, &single_[at]);
    plain_row<float>(inputs, [&](float x) { return static_cast<float>(round_to(dtype_, double{x})); }, &plain_[at]);
    for (std::size_t e = at; e < at + static_cast<std::size_t>(dv); ++e) {
      judged_[e] = std::isfinite(round_to(dtype_, exact_[e]));
      plain_is_finite_[e] = judged_[e] && std::isfinite(plain_[e]) && std::isfinite(single_[e]);
      says_something_ = says_something_ || judged_[e];
    }
  }
}

RuleSet Yardstick::rejecting(const Tensor& out) const {
  RuleSet rejecting;
  const Tolerance close = pytorch_default(dtype_).value_or(Tolerance());
  double farthest = 0, farthest_single = 0, plain_error = 0, plain_single = 0, squares = 0, reference = 0;
  for (std::size_t e = 0; e < judged_.size(); ++e) {
    if (!judged_[e]) continue;
    const double x = out[static_cast<std::int64_t>(e)], r = exact_[e];
    if (!std::isfinite(x)) return RuleSet().set();
    const double error = std::fabs(x - r);
    if (!(error <= close.atol + close.rtol * std::fabs(r))) rejecting.set(allclose);
    if (!(error <= 1e-3)) rejecting.set(fixed_tight);
    if (!(error <= 2e-2)) rejecting.set(fixed_loose);
    if (!(error <= 1e-7 + 1e-3 * std::fabs(r))) rejecting.set(relative);
    squares += error * error, reference += r * r;
    if (!plain_is_finite_[e]) continue;
    farthest = std::max(farthest, error), farthest_single = std::max(farthest_single, std::fabs(x - single_[e]));
    plain_error = std::max(plain_error, std::fabs(plain_[e] - r));
    plain_single = std::max(plain_single, std::fabs(plain_[e] - single_[e]));
  }
  if (!(squares <= 5e-4 * reference)) rejecting.set(mean_square);
  if (!(farthest <= std::max(1e-5, 5 * plain_error))) rejecting.set(five_times);
  if (!(farthest_single <= 2 * plain_single + 1e-5)) rejecting.set(two_times);
  return rejecting;
}

}  // namespace attest
