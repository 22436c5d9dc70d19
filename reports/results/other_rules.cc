#include "reports/results/other_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "reports/results/fault_margins.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Which rule stands where in other_rules().
enum Rule : std::size_t {
  allclose,
  five_times,
  two_times,
  mean_square,
  fixed_tight,
  fixed_loose,
  relative,
  twice_single
};

/// One row of a head as doubles.
struct RowInputs {
  const double* q;
  const double* k;
  const double* v;
  const std::vector<std::int64_t>& seen;
  const std::vector<double>& bias;     ///< of those seen
  const std::vector<double>& applied;  ///< of those seen: what a weight is multiplied by, where some are dropped
  std::int64_t dk, dv;
  double scale, softcap, sink;
  bool pre_scale, drops;
};

/// Does the plain formula have every variant of the problem? It has no factors, no caches, and no mask of dropout that
/// is the kernel's own.
bool has_plain_formula(const Case& c) {
  if (draws_own_dropout(c)) return false;
  const auto lacks = [](const Variant& variant) {
    constexpr std::array without{descale_variant.name, paged_variant.name, append_variant.name,
                                 cache_index_variant.name};
    return std::ranges::find(without, variant.name) != without.end();
  };
  return std::ranges::none_of(variants_of(c), lacks);
}

/// The formula on Real, `round` after each operation on a tensor.
template <class Real, class Round>
void plain_row(const RowInputs& row, Round round, double* out) {
  std::vector<Real> s(row.seen.size());
  const Real cap = static_cast<Real>(row.softcap), sink = static_cast<Real>(row.sink);
  Real maximum = sink, sum = 0;
  for (std::size_t n = 0; n < s.size(); ++n) {
    const double* key = row.k + row.seen[n] * row.dk;
    Real product = 0;
    for (std::int64_t c = 0; c < row.dk; ++c) product += static_cast<Real>(row.q[c]) * static_cast<Real>(key[c]);
    const Real scale = static_cast<Real>(row.scale), bias = static_cast<Real>(row.bias[n]);
    s[n] = round(scale * (row.pre_scale ? round(round(product) + bias) : round(product)));
    if (cap > 0) s[n] = round(cap * round(std::tanh(round(s[n] / cap))));
    if (!row.pre_scale) s[n] = round(s[n] + bias);
    maximum = std::max(maximum, s[n]);
  }
  for (Real& x : s) sum += x = std::exp(x - maximum);
  if (sink > -std::numeric_limits<Real>::infinity()) sum += std::exp(sink - maximum);
  for (std::size_t n = 0; n < s.size(); ++n) {
    s[n] = round(s[n] / sum);
    if (row.drops) s[n] = round(s[n] * static_cast<Real>(row.applied[n]));
  }
  for (std::int64_t c = 0; c < row.dv; ++c) {
    Real total = 0;
    for (std::size_t n = 0; n < s.size(); ++n)
      if (!row.drops || row.applied[n] != 0) total += s[n] * static_cast<Real>(row.v[row.seen[n] * row.dv + c]);
    out[c] = static_cast<double>(round(total));
  }
}

/// What autograd makes of the plain formula on Real: `round` after each operation on a tensor, sums in Real.
template <class Real, class Round, class Member>
void differentiate(const Case& c, Round round, Member member, std::array<Compared, gradient_count>& to) {
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t heads = q[1], M = q[2], dk = q[3], N = k[2], dv = c.v().shape()[3], group = heads / k[1];
  const auto reals = [](const Tensor& t) {
    std::vector<Real> all;
    for (const double x : t.to_doubles()) all.push_back(static_cast<Real>(x));
    return all;
  };
  const std::vector<Real> Q = reals(c.q()), K = reals(c.k()), V = reals(c.v()), G = reals(c[Slot::d_out]);
  const Real scale = static_cast<Real>(c.scale), cap = static_cast<Real>(c.softcap);
  const Real gain = static_cast<Real>(1 / (1 - c.dropout_p));
  const bool pre_scale = convention_of(c) == MaskConvention::pre_scale;
  std::vector<double>&dq = member(to[0]), &dK = member(to[1]), &dV = member(to[2]), &dmask = member(to[3]),
  &dsink = member(to[4]);
  const Shape& mask = c.mask().shape();
  std::vector<Real> p(static_cast<std::size_t>(N)), slope(p), dp(p), of_k(static_cast<std::size_t>(N * dk)),
      of_v(static_cast<std::size_t>(N * dv)), of_q(static_cast<std::size_t>(dk));
  std::vector<std::int64_t> seen;
  for (std::int64_t bh = 0; bh < q[0] * heads; ++bh) {
    const std::int64_t b = bh / heads, h = bh % heads, head = b * k[1] + h / group;
    const Real *const keys = K.data() + head * N * dk, *const values = V.data() + head * N * dv;
    std::ranges::fill(of_k, Real{0}), std::ranges::fill(of_v, Real{0});
    const bool sinks = c[Slot::sink].present();
    const Real sink = sinks ? static_cast<Real>(c[Slot::sink][h]) : -std::numeric_limits<Real>::infinity();
    for (std::int64_t i = 0; i < M; ++i) {
      const Real *const query = Q.data() + (bh * M + i) * dk, *const g = G.data() + (bh * M + i) * dv;
      seen.clear();
      Real most = sink, sum = 0, delta = 0;
      const Tensor& d_lse = c[Slot::d_lse];
      const Real of_lse = d_lse.present() ? static_cast<Real>(d_lse[bh * M + i]) : Real{0};
      for (std::int64_t j = 0; j < N; ++j) {
        if (hidden(c, b, h, i, j)) continue;
        seen.push_back(j);
        const auto at = static_cast<std::size_t>(j);
        const Real bias = static_cast<Real>(bias_of(c, b, h, i, j));
        Real product = 0;
        for (std::int64_t e = 0; e < dk; ++e) product += query[e] * keys[j * dk + e];
        product = round(product);
        slope[at] = 1;
        Real& s = p[at] = round(scale * (pre_scale ? round(product + bias) : product));
        if (cap > 0) {
          const Real y = round(std::tanh(round(s / cap)));
          s = round(cap * y), slope[at] = round(1 - round(y * y));
        }
        if (!pre_scale) s = round(s + bias);
        most = std::max(most, s);
      }
      if (seen.empty()) continue;
      for (const std::int64_t j : seen) {
        Real& x = p[static_cast<std::size_t>(j)];
        sum += x = std::exp(x - most);
      }
      if (sinks) sum += std::exp(sink - most);
      for (const std::int64_t j : seen) {
        const auto at = static_cast<std::size_t>(j);
        p[at] = round(p[at] / sum);
        dp[at] = 0;
        if (!keeps(c, b, h, i, j)) continue;
        const bool drops = c.dropout_p > 0;
        const Real applied = drops ? round(p[at] * gain) : p[at];
        for (std::int64_t e = 0; e < dv; ++e) {
          dp[at] += g[e] * values[j * dv + e];
          of_v[static_cast<std::size_t>(j * dv + e)] += applied * g[e];
        }
        dp[at] = round(dp[at]);
        if (drops) dp[at] = round(dp[at] * gain);
        delta += p[at] * dp[at];
      }
      std::ranges::fill(of_q, Real{0});
      for (const std::int64_t j : seen) {
        const auto at = static_cast<std::size_t>(j);
        Real ds = round(p[at] * (dp[at] - delta));
        if (of_lse != 0) ds = round(ds + round(of_lse * p[at]));
        if (!dmask.empty()) {
          const std::int64_t page = b % mask[0] * mask[1] + h % mask[1];
          double& x = dmask[static_cast<std::size_t>((page * M + i) * N + j)];
          x = static_cast<double>(round(static_cast<Real>(x) + (pre_scale ? round(scale * ds) : ds)));
        }
        if (cap > 0) ds = round(ds * slope[at]);
        ds = round(scale * ds);
        for (std::int64_t e = 0; e < dk; ++e) {
          of_q[static_cast<std::size_t>(e)] += ds * keys[j * dk + e];
          of_k[static_cast<std::size_t>(j * dk + e)] += ds * query[e];
        }
      }
      if (!dsink.empty() && sinks) {
        double& x = dsink[static_cast<std::size_t>(h)];
        x = static_cast<double>(
            round(static_cast<Real>(x) - round(round(std::exp(sink - most) / sum) * (delta - of_lse))));
      }
      for (std::int64_t e = 0; e < dk; ++e)
        dq[static_cast<std::size_t>((bh * M + i) * dk + e)] =
            static_cast<double>(round(of_q[static_cast<std::size_t>(e)]));
    }
    // A head that serves a group was repeated for it: what the copies have is added up.
    const auto add = [&](const std::vector<Real>& part, std::vector<double>& all) {
      for (std::size_t e = 0; e < part.size(); ++e) {
        double& x = all[static_cast<std::size_t>(head) * part.size() + e];
        x = static_cast<double>(round(static_cast<Real>(x) + round(part[e])));
      }
    };
    add(of_k, dK), add(of_v, dV);
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
      {"twice-f32", "tests against autograd in f32", "max|x-r| <= 2 max|s-r|, s = single rounded to the dtype"},
  }};
  return all;
}

void Compared::judge(std::size_t e, DType dtype) {
  judged[e] = std::isfinite(round_to(dtype, exact[e]));
  plain_is_finite[e] = judged[e] && std::isfinite(plain[e]) && std::isfinite(single[e]);
}

bool Compared::says_something() const {
  return std::ranges::find(judged, true) != judged.end();
}

Yardstick::Yardstick(const Case& c) : dtype_(c.dtype()) {
  if (!has_plain_formula(c)) return;
  const Shape shape = c.out_shape(), &kv = c.k().shape();
  const std::int64_t batch = shape[0], heads = shape[1], M = shape[2], dv = shape[3], N = kv[2], dk = kv[3];
  const std::vector<double> q = c.q().to_doubles(), k = c.k().to_doubles(), v = c.v().to_doubles();
  compared_ = Compared(static_cast<std::size_t>(shape.elements()));
  std::vector<std::int64_t> seen;
  std::vector<double> bias, applied;
  for (std::int64_t row = 0; row < batch * heads * M; ++row) {
    const std::int64_t b = row / M / heads, h = row / M % heads, i = row % M;
    seen.clear(), bias.clear(), applied.clear();
    for (std::int64_t j = 0; j < N; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      seen.push_back(j);
      bias.push_back(bias_of(c, b, h, i, j));
      applied.push_back(keeps(c, b, h, i, j) ? 1 / (1 - c.dropout_p) : 0);
    }
    if (seen.empty()) continue;
    const std::int64_t head = b * kv[1] + kv_head_of(c, h);
    const RowInputs inputs{q.data() + row * dk,
                           k.data() + head * N * dk,
                           v.data() + head * N * dv,
                           seen,
                           bias,
                           applied,
                           dk,
                           dv,
                           c.scale,
                           c.softcap,
                           c[Slot::sink].present() ? c[Slot::sink][h] : -std::numeric_limits<double>::infinity(),
                           convention_of(c) == MaskConvention::pre_scale,
                           c.dropout_p > 0};
    const auto at = static_cast<std::size_t>(row * dv);
    plain_row<double>(inputs, [](double x) { return x; }, &compared_.exact[at]);
    plain_row<float>(inputs, [](float x) { return x; }, &compared_.single[at]);
    plain_row<float>(
        inputs, [&](float x) { return static_cast<float>(round_to(dtype_, double{x})); }, &compared_.plain[at]);
    for (std::size_t e = at; e < at + static_cast<std::size_t>(dv); ++e) compared_.judge(e, dtype_);
  }
}

RuleSet Compared::rejecting(const Tensor& found, DType dtype) const {
  RuleSet rejecting;
  const Tolerance close = pytorch_default(dtype).value_or(Tolerance());
  double farthest = 0, farthest_single = 0, plain_error = 0, plain_single = 0, squares = 0, reference = 0;
  double farthest_of_all = 0, single_error = 0;
  for (std::size_t e = 0; e < judged.size(); ++e) {
    if (!judged[e]) continue;
    const double x = found[static_cast<std::int64_t>(e)], r = exact[e];
    if (!std::isfinite(x)) return RuleSet().set();
    const double error = std::fabs(x - r), of_single = std::fabs(round_to(dtype, single[e]) - r);
    if (!(error <= close.atol + close.rtol * std::fabs(r))) rejecting.set(allclose);
    if (!(error <= 1e-3)) rejecting.set(fixed_tight);
    if (!(error <= 2e-2)) rejecting.set(fixed_loose);
    if (!(error <= 1e-7 + 1e-3 * std::fabs(r))) rejecting.set(relative);
    squares += error * error, reference += r * r;
    if (std::isfinite(of_single)) {
      farthest_of_all = std::max(farthest_of_all, error);
      single_error = std::max(single_error, of_single);
    }
    if (!plain_is_finite[e]) continue;
    farthest = std::max(farthest, error), farthest_single = std::max(farthest_single, std::fabs(x - single[e]));
    plain_error = std::max(plain_error, std::fabs(plain[e] - r));
    plain_single = std::max(plain_single, std::fabs(plain[e] - single[e]));
  }
  if (!(squares <= 5e-4 * reference)) rejecting.set(mean_square);
  if (!(farthest <= std::max(1e-5, 5 * plain_error))) rejecting.set(five_times);
  if (!(farthest_single <= 2 * plain_single + 1e-5)) rejecting.set(two_times);
  if (!(farthest_of_all <= 2 * single_error)) rejecting.set(twice_single);
  return rejecting;
}

GradientYardstick::GradientYardstick(const Case& c) : dtype_(c.dtype()) {
  if (draws_own_dropout(c)) return;
  for (const Gradient one : every_gradient)
    if (has_argument_of(c, one))
      compared_[static_cast<std::size_t>(one)] = Compared(static_cast<std::size_t>(c[slot_of(one)].elements()));
  // No backward pass is asked for beside caches or factors.
  differentiate<double>(c, [](double x) { return x; }, [](Compared& to) -> auto& { return to.exact; }, compared_);
  differentiate<float>(c, [](float x) { return x; }, [](Compared& to) -> auto& { return to.single; }, compared_);
  differentiate<float>(
      c, [&](float x) { return static_cast<float>(round_to(dtype_, double{x})); },
      [](Compared& to) -> auto& { return to.plain; }, compared_);
  const Shape& q = c.q().shape();
  std::vector<bool> has_key(static_cast<std::size_t>(q[0] * q[1] * q[2]), false);
  for (std::size_t row = 0; row < has_key.size(); ++row) {
    const auto n = static_cast<std::int64_t>(row);
    for (std::int64_t j = 0; j < c.k().shape()[2] && !has_key[row]; ++j)
      has_key[row] = !hidden(c, n / q[2] / q[1], n / q[2] % q[1], n % q[2], j);
  }
  for (const Gradient one : every_gradient) {
    Compared& to = compared_[static_cast<std::size_t>(one)];
    for (std::size_t e = 0; e < to.exact.size(); ++e)
      if (one != Gradient::q || has_key[e / static_cast<std::size_t>(q[3])]) to.judge(e, dtype_);
  }
}

bool GradientYardstick::says_something() const {
  return std::ranges::any_of(compared_, &Compared::says_something);
}

RuleSet GradientYardstick::rejecting(const std::array<Values, gradient_count>& found) const {
  RuleSet all;
  for (std::size_t one = 0; one < compared_.size(); ++one)
    if (found[one].present()) all |= compared_[one].rejecting(found[one].tensor(), dtype_);
  return all;
}

}  // namespace attest
