// error-bounds.md 1.1, per key, as corrected by 1.7.
#include <algorithm>
#include <cmath>

#include "core/bound/key_pass.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

constexpr double log2_e = 1.4426950408889634;

/// `loss` by underflow, or `enough` where it is smaller and not 0: products with what doubles lose, which is subnormal,
/// take a hundred times as long.
double no_smaller(double loss, double enough) {
  return loss > 0 ? std::max(loss, enough) : loss;
}

/// a_j as a combination, with coefficients >= 0, of what is known of a key. All in units of the score.
struct ScoreError {
  double on_size = 0, on_t = 0, on_s = 0, on_b = 0, on_k1 = 0, constant = 0;
};

ScoreError score_error(const Profile& p, const RowKeys& row) {
  const double tau = std::fabs(p.of.scale);
  const double wide = p.prescaled ? std::max(1.0, tau) : tau;  // a pre-scaled product is not multiplied by tau (C4)
  const double gs = join(pw(p.u_s, static_cast<double>(p.n_s)), p.u_qpre);
  // A bias after the scale is in the sum as b/tau: rounded once, by a constant that is rounded once more than tau or by
  // itself, unless tau is exact, and exact then. What tau makes of it is b with the errors of tau.
  const bool divided = p.bias_in_sum && !p.prescaled && p.of.convention == MaskConvention::post_scale;
  // Factors of the product are in the quotient as well.
  const double of_constant = join(p.th_tau, p.u_factors);
  const double on_quotient = divided && of_constant > 0 ? join((p.u_s + of_constant) / (1 - of_constant), p.u_s) : 0;
  double on_size = gs, on_t = 0, on_b = p.bias_in_sum ? join(gs, on_quotient) : 0;
  double on_k1 = (1 + gs) * (p.prescaled ? p.lam_q + p.lam_in * std::max(1.0, tau) : tau * p.lam_in);
  const double lam_s =
      no_smaller(p.lam_s, 0x1p-1000 / std::max(1.0, wide));  // no sum of errors of a score would show less
  double constant = (1 + gs) * (2 * static_cast<double>(p.n_s) * lam_s * wide + tau * p.lam_in * row.q1);
  if (row.exact_dots) on_size = on_b = on_k1 = constant = 0;
  if (p.u_raw > 0 || p.lam_raw > 0 || p.u_factors > 0) {
    const double u_raw = join(p.u_raw, p.u_factors);
    on_size *= 1 + u_raw, on_b *= 1 + u_raw, on_k1 *= 1 + u_raw, constant *= 1 + u_raw;
    on_t += u_raw;
    if (p.bias_in_sum) on_b += u_raw;  // what is stored is the sum with the bias in it
    constant += p.lam_raw * wide;
  }
  // The product by a power of two is exact when no constant is folded into it; what is stored of it is not.
  const double th_scale = row.exact_dots && p.th_of_scale == 0 ? p.th_scale - p.u_score * (1 - 0x1p-20) : p.th_scale;
  const double thS = std::max(0.0, th_scale);
  if (p.of.softcap > 0) {
    // Of the scaled product alone: what becomes of it is known once the cap is.
    return {.on_size = (1 + thS) * on_size,
            .on_t = (1 + thS) * on_t + thS,
            .on_k1 = (1 + thS) * on_k1,
            .constant = (1 + thS) * constant + p.lam_scale};
  }
  const double tt = 1 + p.th_tau;

  ScoreError post;
  const double after = 1 + p.th_bias, before = tt * (1 + thS);
  post.on_size = after * before * on_size;
  post.on_t = after * (before * on_t + tt * thS) + p.th_bias * p.th_tau;
  post.on_s = p.th_bias;
  post.on_b =
      divided ? after * (before * join(on_b, p.u_bc) + p.th_tau + tt * thS) : after * join(before * on_b, p.u_bc);
  post.on_k1 = after * before * on_k1;
  post.constant = after * (before * constant + p.lam_scale + p.lam_bc) + p.lam_bias;
  if (p.of.convention == MaskConvention::post_scale || !p.of.bias) return post;

  ScoreError pre;
  const double th = join(p.th_bias, thS), both = tt * (1 + th);
  pre.on_size = both * on_size;
  pre.on_t = both * on_t;
  pre.on_s = tt * th;
  pre.on_b = both * join(on_b, p.u_bc);
  pre.on_k1 = both * on_k1;
  pre.constant = both * (constant + tau * p.lam_bc) + p.lam_scale + p.lam_bias;
  if (!p.prescaled && !p.declared.stored_scaled) return pre;
  // Scaled before the bias is added after all: tau*b is then rounded by itself, as in the other convention.
  return {std::max(pre.on_size, post.on_size), std::max(pre.on_t, post.on_t),   std::max(pre.on_s, post.on_s),
          std::max(pre.on_b, post.on_b),       std::max(pre.on_k1, post.on_k1), std::max(pre.constant, post.constant)};
}

/// The largest score of a key, where a row has a sink; -inf: it sees none.
double largest_of_keys(const KeyPass& x) {
  double most = -infinity;
  for (std::int64_t j = 0; j + 1 < x.n; ++j) most = std::max(most, x.keys.s[j]);
  return most;
}

/// 1.10: a of every key, which is the error of its scaled product, becomes that of its score.
void cap_errors(KeyPass& x) {
  const Profile& p = x.p;
  CapConstants c;
  c.cap = p.of.softcap;
  c.argument = p.th_argument, c.lam_z = p.lam_cap;
  c.relative = p.eps_tanh, c.absolute = p.abs_tanh;
  c.th_cap = p.th_cap, c.th_tau = p.th_tau, c.th_bias = p.th_bias;
  c.on_b = (1 + p.th_bias) * p.u_bc;
  c.constant = (1 + p.th_bias) * (p.lam_cap + p.lam_bc) + p.lam_bias;
  key_loops().cap_errors(x.keys, x.n, c, x.kap, x.of_tanh);
}

/// 1.9: a_sink. In the kernel's form of a row with a slope it is shifted as the scores are.
double sink_error(const Profile& p, const RowKeys& row) {
  const double size = std::fabs(row.s[row.n - 1]) + std::fabs(row.shift);
  return join(p.u_sink, p.u_shift) * size + p.lam_scale + p.lam_slope;
}

/// What a slope adds to the score of a key in the kernel's form.
double slope_term(const RowKeys& row, std::int64_t j) {
  return row.slopes[j] + row.shift;
}

/// 1.12: a of every key with what adding its slope's part makes of it.
void add_slope_errors(KeyPass& x) {
  const Profile& p = x.p;
  const double after = (1 + p.th_bias) * (1 + p.th_divided);
  SlopeConstants c;
  c.shift = x.row.shift;
  c.on_slope = after * p.u_slope, c.on_both = after * p.u_both * (1 + p.u_slope);
  c.divided = p.th_divided, c.on_s = p.th_divided * (1 + p.th_bias);
  c.constant = after * p.lam_slope;
  key_loops().slope_errors(x.keys, x.row.capped ? x.row.capped : x.row.t, x.row.b, x.row.slopes, x.n, c);
}

bool representable(DType dtype, double value) {
  return round_to(dtype, value) == value;
}

/// Is a - b exact, and a number of the format?
bool exact_difference(DType dtype, double a, double b) {
  const double d = a - b;
  return a - d == b && d + b == a && representable(dtype, d);
}

/// A score with a slope's part l is t + b + l exactly, in whichever order it is added up in the score's format.
bool exact_sum_with_slope(const Profile& p, const RowKeys& row, std::int64_t j) {
  const double s = row.s[j], t = row.t[j], l = row.slopes[j], b = row.b ? row.b[j] : 0.0;
  if (p.slope_form != SlopeForm::distance || !representable(p.score_format, l)) return false;
  if (!exact_difference(p.score_format, s, l) || !exact_difference(p.score_format, s, t)) return false;
  if (b == 0) return s - l == t;
  return exact_difference(p.score_format, s, b) && s - l - t == b;
}

/// Exactness rule: with q.k and the scale exact, a score that every format on its way can represent is exact.
bool exact_score(const Profile& p, const RowKeys& row, std::int64_t j) {
  const double s = row.s[j], t = row.t[j];
  if (row.slopes && !exact_sum_with_slope(p, row, j)) return false;
  if (!representable(p.score_format, s) || !representable(p.score_format, t)) return false;
  if (row.b) {
    const double b = row.b[j];
    if (!row.slopes && (s - t != b || s - b != t)) return false;
    if (!representable(p.score_format, b)) return false;
    if (p.any_mask_format && !representable(p.mask_format, b)) return false;
    if (p.of.convention == MaskConvention::pre_scale && !representable(p.score_format, s / p.of.scale)) return false;
  }
  for (const DType stored : p.stored_formats) {
    if (!representable(stored, s) || !representable(stored, t) || !representable(stored, t / p.of.scale)) return false;
    if (p.bias_in_sum && !representable(stored, s / p.of.scale)) return false;
  }
  return true;
}

/// D1a: a bias of up to the largest number of every format that a score has, beside products of at most `size` in all,
/// which are below a quarter of its last place: no sum of the two leaves the range, in any order. `b` as in RowKeys.
bool absorbed(const Profile& p, double size, double b) {
  const double tau = std::fabs(p.of.scale);
  const bool pre = p.of.convention == MaskConvention::pre_scale;
  // Nothing may multiply the bias by more than 1: no log2(e), no scale, and no constant rounded upwards.
  if (p.base2 || (pre && tau > 1) || (!pre && p.bias_in_sum && !p.prescaled && p.th_tau > 0)) return false;
  const auto holds = [&](DType dtype) {
    const Format& format = format_of(dtype);
    const bool converts = p.any_mask_format && format_of(p.mask_format).unit > format_of(p.of.mask).unit;
    if (converts && format_of(p.mask_format).largest > format.largest) return false;
    return std::fabs(b) <= (pre ? tau : 1.0) * format.largest && size <= format.largest * format.unit / 4;
  };
  return holds(p.score_format) && std::ranges::all_of(p.stored_formats, holds);
}

/// e^E - 1 from above for 0 <= E <= 1/16, relative error below 2^-40.
inline double small_expm1(double E) {
  return E *
         (1 + E * (1.0 / 2) * (1 + E * (1.0 / 3) * (1 + E * (1.0 / 4) * (1 + E * (1.0 / 5) * (1 + E * (1.0 / 5))))));
}

/// e^-E from below for 0 <= E <= 1/16.
inline double small_exp_minus(double E) {
  return 1 - E * (1 - E * (1.0 / 2) * (1 - E * (1.0 / 3) * (1 - E * (1.0 / 4) * (1 - E * (1.0 / 5)))));
}

/// cD: roundings that a weight passes in its sum.
double weight_roundings(const Profile& p, const RowKeys& row) {
  return static_cast<double>(accumulation_depth(p.declared, p.of.keys, row.n)) + 2 * p.rescalings + p.extra;
}

}  // namespace

Denominator denominator_of(const Profile& p, const RowKeys& row, const KeyTerms& terms, double sum_error) {
  Denominator out;
  out.UD = sum_error;
  double lowest = std::exp(weight_roundings(p, row) * std::log1p(-p.u_a));
  if (p.p_in_denom) out.UD = join(out.UD, p.u_p), lowest *= 1 - p.u_p;
  lowest = std::max(1 - out.UD, lowest);
  if (p.lse_merge) {
    out.UD = join(out.UD, std::expm1(terms.merge));
    lowest *= std::exp(-terms.merge);
  }
  out.least = lowest - terms.LD;
  return out;
}

KeyPass::KeyPass(const Profile& profile, const RowKeys& of, BoundScratch& w)
    : p(profile), row(of), n(of.n), count(static_cast<double>(of.n)), log_count(std::log(count) + 1 + p.lazy) {
  for (auto* array : {&w.a, &w.tm, &w.E, &w.ph, &w.pp, &w.caps, &w.big_ph, &w.big_pp, &w.small_ph, &w.small_pp})
    fit(*array, n + 16);
  for (auto* array : {&w.big_index, &w.small_index, &w.big_key, &w.small_key}) fit(*array, n + 16);
  if (p.of.softcap > 0) fit(w.kap, n + 16), fit(w.of_tanh, n + 16);
  kap = w.kap.data(), of_tanh = w.of_tanh.data();
  const double* g = row.capped ? row.capped : p.of.convention == MaskConvention::pre_scale ? row.s : row.t;
  // Neither the scale's error nor that of any other constant is a sink's, whose score is no part of g.
  if (row.has_sink && g == row.s) {
    fit(w.g, n + 16);
    std::copy_n(row.s, n, w.g.begin());
    w.g[static_cast<std::size_t>(n - 1)] = 0;
    g = w.g.data();
  }
  keys = {row.s,           row.t,      row.size,    g,          row.la,      row.alpha,  row.b,
          row.input_error, w.a.data(), w.tm.data(), w.E.data(), w.ph.data(), w.pp.data()};
  c.tau = std::fabs(p.of.scale);
  if (row.slopes) take_slopes(w);
}

/// Scores as the kernel has them, and the sizes of what is added, there and where they are evaluated.
void KeyPass::take_slopes(BoundScratch& w) {
  keys.b = row.slopes;
  if (row.shift == 0 && !row.b) return;
  fit(w.shifted, n + 16), fit(w.added, n + 16);
  for (std::int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    w.shifted[at] = row.s[j] + row.shift;
    const double part = std::max(std::fabs(row.slopes[j]), std::fabs(slope_term(row, j)));
    w.added[at] = part + (row.b ? std::fabs(row.b[j]) : 0.0);
  }
  // A sink has its shift and nothing else.
  if (row.has_sink) w.added[static_cast<std::size_t>(n - 1)] = 0;
  keys.s = w.shifted.data(), keys.b = w.added.data();
}

void find_score_errors(KeyPass& x, const double* centre) {
  const Profile& p = x.p;
  const RowKeys& row = x.row;
  const std::int64_t n = x.n;
  const KeyLoops& loops = key_loops();
  const ScoreError of_score = score_error(p, row);
  KeyConstants& c = x.c;
  c.on_size = of_score.on_size, c.on_t = of_score.on_t, c.on_s = of_score.on_s, c.on_b = of_score.on_b;
  c.constant = of_score.constant;
  c.th_tau = p.th_tau * (1 + p.th_l2e), c.th_l2e = p.th_l2e, c.shift_error = row.shift_error;
  const double th_tau = c.th_tau;
  if (centre)
    c.g_mean = c.s_mean = *centre;
  else if (th_tau > 0 || p.th_l2e > 0)
    loops.means(x.keys, n, c.g_mean, c.s_mean);
  loops.score_errors(x.keys, n, c);
  double* const a = x.keys.a;
  double* const tm = x.keys.tm;
  if (of_score.on_k1 > 0)
    for (std::int64_t j = 0; j < n; ++j) a[j] += of_score.on_k1 * row.k1[j];
  // A product of 0 stays 0 whatever the scale was rounded to.
  const bool scale_first = p.of.convention == MaskConvention::post_scale || !row.b;
  if (p.of.softcap > 0) cap_errors(x);
  if (row.slopes) add_slope_errors(x);
  if (row.exact_dots && p.of.softcap == 0 && (p.th_tau == 0 || scale_first) && !p.base2)
    for (std::int64_t j = 0; j < n; ++j)
      if ((p.th_tau == 0 || row.size[j] == 0) && exact_score(p, row, j)) a[j] = 0;
  if (row.has_sink) a[n - 1] = sink_error(p, row);
  if (row.input_error) {
    const double per_t = of_score.on_t + of_score.on_s;
    for (std::int64_t j = 0; j < n; ++j) {
      const double in = row.input_error[j];
      a[j] += in + per_t * (in + row.shift_error);
      tm[j] += (th_tau + p.th_l2e) * in;
    }
  }
  x.range = loops.score_range(x.keys, n, c);
  c.M = x.range.M, c.s_top = x.range.s_top;
  c.Mabs = std::max(std::fabs(x.range.top), std::fabs(x.range.bottom));
}

void set_exponent_constants(KeyPass& x) {
  const Profile& p = x.p;
  const RowKeys& row = x.row;
  const double L1 = x.log_count;
  const double thE = pw(p.u_e, p.c_e);
  const double of_exp = p.eps_exp / (1 - p.eps_exp);
  const double eps = (of_exp + p.lam_exponent) * (1 + p.rescalings + (p.lse_merge ? 2 : 0));
  // A log-sum-exp may be above all scores by ln n, and below its own part's maximum by what exp(0) is below 1 (P37).
  const double lse_on_Q = p.lse_merge ? p.u_lse * (1 + p.u_lse) * (1 + 2 * thE) : 0,
               lse_on_D = p.lse_merge ? p.u_lse : 0;
  const double lse_constant =
      p.lse_merge ? lse_on_Q * L1 + p.eps_log * L1 * (1 + p.u_lse) + std::max(lse_on_D, thE) * L1 + 2 * thE * of_exp
                  : 0;
  KeyConstants& c = x.c;
  c.lazy = p.lazy, c.twice_lazy = 2 * p.lazy;
  c.fixed_shift = p.fixed_shift, c.lse_merge = p.lse_merge;
  c.thE = thE, c.residual = p.c_m * p.u_e * (1 + thE), c.lse_on_Q = lse_on_Q, c.lse_on_D = lse_on_D;
  c.rest = eps + lse_constant;
  c.dead = p.vanishing_exponent, c.u_a = p.u_a;
  // A capped product is no further off than the product itself, but for its own operations and, where it is one of
  // pairs of doubles, what its exponential errs by. That is said of every evaluation, so that certificates are as their
  // units.
  const bool capped = p.of.softcap > 0;
  c.unit_here = row.unit * (static_cast<double>(p.of.dk) + (capped ? 12 : 4) + (row.slopes ? 1 : 0)) * (1 + 0x1p-20);
  c.unit = row.unit, c.exp_here = 16 * row.unit * (1 + p.of.softcap);
}

namespace {

/// z = log sum exp(la - E): the least that the sum of weights may be, as an exponent.
double least_log_sum(const KeyPass& x) {
  const double* const la = x.keys.la;
  const double* const E = x.keys.E;
  double shift = -infinity;
  for (std::int64_t j = 0; j < x.n; ++j) shift = std::max(shift, la[j] - E[j]);
  double sum = 0;
  for (std::int64_t j = 0; j < x.n; ++j) sum += std::exp(la[j] - E[j] - shift);
  return shift + std::log(sum);
}

/// E of every key: with the score's errors those of subtracting the maximum, of exp, of rescaling and of merging.
void find_exponent_errors(KeyPass& x) {
  set_exponent_constants(x);
  x.most = key_loops().errors(x.keys, x.n, x.c);
  // A key vanishes when its weight does beside a sum that has shrunk as far as it may (C33), which is no matter where
  // every E is small. What others err by, that one may have.
  if (!(x.most.E > 0x1p-4) || !x.most.finite) return;
  x.z = least_log_sum(x);
  x.c.dead += x.z;
  x.most = key_loops().errors(x.keys, x.n, x.c);
}

/// ph and pp of every key, for errors of any size: always as one exponent (C2).
WeightSums weights_by_exponents(const KeyPass& x) {
  const std::int64_t n = x.n;
  const double* const la = x.keys.la;
  const double* const E = x.keys.E;
  double* const ph = x.keys.ph;
  double* const pp = x.keys.pp;
  const double z = x.z;
  WeightSums sums;
  for (std::int64_t j = 0; j < n; ++j) {
    const bool live = la[j] + E[j] > x.c.dead;
    if (!live) {
      ph[j] = pp[j] = 0;
      continue;
    }
    const double grown = la[j] + E[j] - z;
    pp[j] = grown < 0 ? std::exp(grown) : 1.0;
    ph[j] = E[j] < 1 ? std::exp(std::min(690.0, la[j] - z)) * std::expm1(E[j]) : std::exp(std::min(690.0, grown));
    sums.reach += ph[j];
  }
  for (std::int64_t j = 0; j < n; ++j) {
    sums.denominators += std::min(pp[j], x.p.u_a);
    sums.big += pp[j] > x.p.u_a;
  }
  return sums;
}

/// ph = exp(la - z) (e^E - 1) and pp = min(1, exp(la + E - z)) of every key, z = log sum exp(la - E). Where every E is
/// small the products cannot leave the range, and need no exponential each.
WeightSums find_weights(const KeyPass& x) {
  return x.most.E <= 0x1p-4 ? key_loops().weights(x.keys, x.n, x.c) : weights_by_exponents(x);
}

/// Lists of keys by weight, for the refined sums (1.2): any partition is valid, u_a makes it nearly the best.
void list_by_weight(const KeyPass& x, KeyTerms& out, BoundScratch& w) {
  w.all_big = out.big == x.n;
  if (w.all_big) return;
  const double* const ph = x.keys.ph;
  const double* const pp = x.keys.pp;
  std::int64_t big = 0, small = 0;
  for (std::int64_t j = 0; j < x.n; ++j) {
    if (pp[j] > x.p.u_a)
      w.big_key[static_cast<std::size_t>(big++)] = j;
    else if (pp[j] > 0 || ph[j] > 0)
      w.small_key[static_cast<std::size_t>(small++)] = j;
  }
  out.small = small;
  const auto gather = [&](const std::vector<std::int64_t>& keys, std::int64_t count, std::vector<std::int64_t>& index,
                          std::vector<double>& listed_ph, std::vector<double>& listed_pp) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t j = keys[static_cast<std::size_t>(i)];
      index[static_cast<std::size_t>(i)] = x.row.index ? x.row.index[j] : j;
      listed_ph[static_cast<std::size_t>(i)] = ph[j];
      listed_pp[static_cast<std::size_t>(i)] = pp[j];
    }
  };
  gather(w.big_key, out.big, w.big_index, w.big_ph, w.big_pp);
  gather(w.small_key, small, w.small_index, w.small_ph, w.small_pp);
}

}  // namespace

void find_weight_gains(const KeyPass& x, KeyTerms& out) {
  const Profile& p = x.p;
  // D6 with C9: without a maximum a weight is e^s itself, and so large must sums and values let it be.
  const double largest_exponent = p.takes_no_maximum ? std::max(0.0, x.range.top) + 0.25 : 0.0;
  const double gain_exponent = p.lazy + (p.c_m > 0 ? std::min(0.5, p.c_m * p.u_e * x.most.Q) : 0.0) + largest_exponent;
  // The exponent of a stale maximum errs by thE T, and each exponential by itself (C42).
  const double by_exponentials = std::exp(x.c.thE * p.lazy + (1 + p.rescalings) * std::log1p(p.eps_exp));
  out.weight_gain = std::exp(gain_exponent) * by_exponentials;
  // A block, or a split, of nothing but keys that vanish in the end is summed up against a maximum of its own. Its
  // rescaling by exp(-huge) = 0 makes it vanish only if that sum is a number: folded, its largest weight is not 1 but
  // e to the residual u|m c|, infinite (or 0, and the part's mean 0/0) for masks such as -FLT_MAX/2. The second
  // residual that c_m counts with a merge (C7) enters the merge alone, where exp(-huge) = 0 whatever it is. Where all
  // keys share one maximum, it is that of a key that stays.
  const Arithmetic& declared = p.declared;
  // A sink may be taken in when all keys are summed.
  const bool one_maximum =
      !x.row.has_sink && !declared.split_merge && (declared.block == 0 || declared.block >= p.of.keys);
  const double folded_once = p.c_m > 0 && !one_maximum ? p.u_e * (1 + x.c.thE) : 0.0;
  // Where the maximum may have been taken before the scores were stored (C19), the largest weight is not 1 but as far
  // from it as a stored score from the score: Inf over Inf, or 0 over 0.
  const double before_storing = p.stored ? 2 * x.most.a : 0.0;
  out.vanished_gain = std::exp(p.lazy + std::max(folded_once * x.most.vanished_Q, before_storing)) * by_exponentials;
}

namespace {

/// Underflow is relative to the sum of weights, at least 1/2 when the maximum is taken over the scores that enter exp,
/// e^{-2 max a}/2 when they were stored in between (C19), e^{max s} when nothing is subtracted (P7). What is lost grows
/// with all that the sum passes afterwards (P40).
double underflow_factor(const KeyPass& x) {
  const Profile& p = x.p;
  const double R = p.rescalings;
  // A product that is lost was rounded before the sum of a declared depth (P51).
  const std::int64_t of_sum = std::min(accumulation_depth(p.declared, p.of.keys, x.n) + 1, x.n);
  const double depth = static_cast<double>(of_sum) + R + p.extra;
  // The sum of weights is below 1 by what a folded reference was rounded by (P50).
  const double at_last = x.c.residual * (x.c.Mabs + p.lazy);
  const double grown = std::exp(2 * (x.c.thE * p.lazy + x.c.rest) + at_last) * (1 + pw(p.u_a, depth)) * (1 + p.u_p) *
                       (1 + pw(p.lam_e, R));
  double factor = (p.stored ? 2 * std::exp(std::min(700.0, 2 * x.most.a)) : 2.0) * grown;
  if (p.fixed_shift && x.range.bottom >= std::log(p.least_weight) + 1)
    factor *= std::exp(std::max(0.0, -x.range.bottom));
  return factor;
}

}  // namespace

void find_denominator(const KeyPass& x, double least_weights, KeyTerms& out) {
  const Profile& p = x.p;
  const double count = x.count, R = p.rescalings, L1 = x.log_count;
  out.lam_weight = p.lam_e * (2 + R * std::exp((1 + x.c.thE) * p.lazy + p.c_m / 2));   // C3
  out.lam_twice = p.lam_e * (p.lam_p + out.lam_weight + p.lam_e) * R * (17 + 16 * R);  // C39
  const double cD = weight_roundings(p, x.row);
  out.sum_error = pw(p.u_a, cD);
  if (p.nearest) {
    const double chain = pw(p.u_a, count + 1 + 2 * R + p.extra);
    out.sum_error = std::min(out.sum_error, (1 + chain) * ((2 * R + p.extra) * p.u_a + (1 + chain) * least_weights));
  }
  if (p.lse_merge) out.merge = 2 * p.u_lse * (x.c.Mabs + L1) + p.eps_log * L1 + 2 * p.eps_exp;  // C16
  const double factor = underflow_factor(x);
  out.factor = factor;
  // Relative to a sum of weights of at least 1, which errs by the rounding of a weight anyway.
  const double enough = 0x1p-1000 / factor, lam_a = no_smaller(p.lam_a, enough);
  out.LD = factor * (count * no_smaller(out.lam_weight + out.lam_twice, enough) +
                     (count + p.rescaling_operations(count)) * lam_a +
                     (p.p_in_denom ? count * (p.lam_p + std::min(p.lam_p, lam_a)) : 0.0));
  const Denominator denominator = denominator_of(p, x.row, out, out.sum_error);
  out.UD = denominator.UD;
  out.denominator = denominator.least;
}

namespace {

/// How far the logarithm of the sum of weights moves, upwards or downwards, where the exponent of key j moves by up to
/// lse_E[j].
double log_sum_error(const KeyPass& x, const double* lse_E) {
  const std::int64_t n = x.n;
  const double* const la = x.keys.la;
  const double* const alpha = x.keys.alpha;
  double up = 0, down = 0, up_shift = -1e300, down_shift = -1e300;
  for (std::int64_t j = 0; j < n; ++j) {
    up_shift = std::max(up_shift, la[j] + lse_E[j]);
    down_shift = std::max(down_shift, la[j] - lse_E[j]);
  }
  const double plain = x.most.E <= 0x1p-4 ? *std::max_element(lse_E, lse_E + n) : 1.0;
  if (plain <= 0x1p-4) {
    for (std::int64_t j = 0; j < n; ++j) {
      up += alpha[j] * small_expm1(lse_E[j]);
      down += alpha[j] * (1 - small_exp_minus(lse_E[j]));
    }
  } else {
    for (std::int64_t j = 0; j < n; ++j) {
      up += lse_E[j] < 1 ? alpha[j] * std::expm1(lse_E[j]) : std::exp(la[j] + lse_E[j]);
      down -= alpha[j] * std::expm1(-lse_E[j]);
    }
  }
  double up_lse = std::log1p(up);
  double down_lse = -std::log1p(-down);
  // The sums themselves where 1 + up overflows or 1 - down cancels.
  if (!(up < 0x1p900)) {
    up = 0;
    for (std::int64_t j = 0; j < n; ++j) up += std::exp(la[j] + lse_E[j] - up_shift);
    up_lse = up_shift + std::log(up);
  }
  if (!(down < 0.5)) {
    down = 0;
    for (std::int64_t j = 0; j < n; ++j) down += std::exp(la[j] - lse_E[j] - down_shift);
    down_lse = -(down_shift + std::log(down));
  }
  return std::max(up_lse, down_lse);
}

/// Of a row whose keys are at hand.
double log_sum_error(const KeyPass& x, BoundScratch& w) {
  const Profile& p = x.p;
  const KeyArrays& keys = x.keys;
  fit(w.lse_E, x.n + 16);
  double* const lse_E = w.lse_E.data();
  for (std::int64_t j = 0; j < x.n; ++j) {
    // The constants' errors are not common shifts here.
    const double e = keys.E[j] - keys.tm[j] + x.c.th_tau * std::fabs(keys.g[j]) + p.th_l2e * std::fabs(keys.s[j]) +
                     x.row.shift_error;
    // A key that is gone, a mask with a huge error say, must not hide how well the others are known.
    // Beside the exact sum, which is no smaller than it is.
    lse_E[j] = keys.la[j] + e > x.c.dead - x.z ? e : 0.0;
  }
  return log_sum_error(x, lse_E);
}

}  // namespace

double lse_bound(const KeyPass& x, const KeyTerms& terms, double delta) {
  const Profile& p = x.p;
  // A stale maximum may be T from the scores, and where there is none the sum's logarithm is all there is (C44).
  const double Mabs = x.c.Mabs + p.lazy, L1 = x.log_count + (p.fixed_shift ? x.c.Mabs : 0);
  const double lse_size = std::fabs(x.row.lse + x.row.shift);
  // Between the kernel's form of a row with a slope, and the one in which it returns its log-sum-exp.
  const bool moved =
      p.of.slope != 0 && p.of.causal && (p.slope_form != SlopeForm::distance) != p.declared.lse_of_columns;
  const double u_moved = pw(p.u_lse, p.base2 ? 8 : 4);
  // What Attest takes off is rounded to a double.
  const bool taken_off = p.of.slope != 0 && p.of.causal && p.declared.lse_of_columns;
  const double by_moving =
      (moved ? u_moved * (std::fabs(x.row.lse) + std::fabs(x.row.slope_shift)) + p.lam_slope : 0.0) +
      (taken_off ? 0x1p-52 * std::fabs(x.row.lse) : 0.0);
  const double spread = terms.denominator > 0 ? std::max(-std::log(terms.denominator), terms.UD + terms.LD) : infinity;
  return (1 + 0x1p-20) * (delta + spread + p.eps_log * (L1 + terms.UD) + std::max(1.0, p.c_m) * p.u_e * Mabs +
                          (pw(p.u_lse, 3) + 2 * p.th_l2e) * (lse_size + delta + L1 + Mabs) + by_moving);
}

namespace {

/// log2(e) where the scores are exponents of 2, by which every number on its way to one may be multiplied.
double base_factor(const Profile& p) {
  return p.base2 ? log2_e : 1.0;
}

/// What no number on the way to a score exceeds, with products that add up to `size` and a bias.
double most_on_the_way(const KeyPass& x, double size, double bias) {
  const Profile& p = x.p;
  const double tau = x.c.tau;
  const double kap = most_factor(p);
  // And what it is made of may have been rounded before (C41).
  const double made = (1 + p.u_qpre) * (1 + p.th_tau) * (1 + p.u_bc) * (1 + p.u_factors);
  const double inflate = made * (1 + pw(p.u_range, static_cast<double>(p.of.dk) + 4)) * (1 + 0x1p-40);
  const bool pre = p.of.convention == MaskConvention::pre_scale;
  const double of_bias = pre ? kap / tau : base_factor(p);
  return inflate * (kap * size + base_factor(p) * p.of.softcap + std::max(of_bias, slope_factor(p)) * bias);
}

}  // namespace

double slope_factor(const Profile& p) {
  if (p.of.slope == 0) return 0;
  if (p.slope_form != SlopeForm::column_divided) return base_factor(p);
  const double tau = std::fabs(p.of.scale), cap = p.of.softcap;
  return base_factor(p) * std::max({1.0, 1 / tau, cap > 0 ? 1 / cap : 0.0, cap > 0 ? tau / cap : 0.0});
}

double most_factor(const Profile& p) {
  const double tau = std::fabs(p.of.scale);
  return std::max({1.0, tau, p.base2 ? tau * log2_e : 0.0, p.of.softcap > 0 ? tau / p.of.softcap : 0.0});
}

bool sizes_stay_in_range(const KeyPass& x) {
  return most_on_the_way(x, x.range.size, x.range.bias) <= x.p.H_s;
}

namespace {

/// D1 and D7 of a sink: it does not overflow on its way, but to -inf beside a key, and neither does its weight beside
/// the keys'.
bool sink_stays_in_range(const KeyPass& x) {
  const RowKeys& row = x.row;
  if (!row.has_sink) return true;
  const Profile& p = x.p;
  const double sink = x.keys.s[row.n - 1], most = largest_of_keys(x);
  const double factor = std::max(base_factor(p), slope_factor(p));
  if ((sink > 0 || most == -infinity) && !(factor * std::fabs(sink) * (1 + 4 * p.u_sink) <= p.H_s)) return false;
  if (p.declared.sink_in_max || most == -infinity) return true;
  const double a = x.keys.a[row.n - 1];
  return sink - most + 2 * x.most.a + a + std::log(2.0) <= std::log(std::min(p.H_s, p.H_a));
}

/// D1 and D1a: no score overflows on its way, but those of keys that vanish with all that is wrong with them.
bool scores_stay_in_range(const KeyPass& x) {
  const Profile& p = x.p;
  const RowKeys& row = x.row;
  if (sizes_stay_in_range(x)) return true;
  const double kap = most_factor(p);
  const auto of_slope = [&](std::int64_t j) { return row.slopes ? std::fabs(slope_term(row, j)) : 0.0; };
  const auto sinks = [&](std::int64_t j) {
    return row.b && row.b[j] < 0 && kap * row.size[j] + slope_factor(p) * of_slope(j) <= p.H_s / 4 &&
           x.keys.la[j] + x.keys.E[j] < std::log(p.lam_e) - 1;
  };
  for (std::int64_t j = 0; j < x.n; ++j) {
    const double bias = row.b ? std::fabs(row.b[j]) : 0;
    if (!(most_on_the_way(x, row.size[j], bias + of_slope(j)) <= p.H_s) && !sinks(j) &&
        !(row.b && absorbed(p, most_on_the_way(x, row.size[j], of_slope(j)), row.b[j])))
      return false;
  }
  return true;
}

}  // namespace

bool weights_stay_in_range(const KeyPass& x, const KeyTerms& terms) {
  const Profile& p = x.p;
  if (p.c_m > 0 && !(p.u_e * base_factor(p) * x.most.Q <= 0.5)) return false;
  // D5: the sum is rounded, of weights that were, or not (C43).
  const double of_sum = (1 + terms.sum_error) * (p.p_in_denom ? 1 + p.u_p : 1);
  if (!(terms.weight_gain * x.count * of_sum <= p.H_a && terms.weight_gain * (1 + p.u_p) <= p.H_p)) return false;
  if (!p.takes_no_maximum) return true;
  const bool inverted = p.c_div > 1;  // 1/sum must be a normal number too
  return x.range.bottom >= std::log(p.least_weight) + 1 &&
         (!inverted || x.range.top + std::log(x.count) <= -std::log(p.least_weight));
}

namespace {

/// D1c: a cap, its reciprocal and the scale over it are normal numbers.
bool cap_stays_in_range(const Profile& p) {
  const double least = format_of(p.score_format).min_normal, most = format_of(p.score_format).largest;
  const double cap = p.of.softcap, divided = std::fabs(p.of.scale) / cap;
  return cap >= least && base_factor(p) * cap * (1 + 8 * p.u_score) <= most && 1 / cap >= least && 1 / cap <= most &&
         divided >= p.least_scale && divided <= most;
}

}  // namespace

bool scale_stays_in_range(const KeyPass& x, const double* q) {
  const Profile& p = x.p;
  if (!(slope_factor(p) * std::fabs(p.of.slope) * (1 + 4 * p.u_slope) <= p.H_s)) return false;
  const double tau = x.c.tau;
  const double tau_folded = p.base2 ? tau * log2_e : tau;
  if (!(tau >= p.least_scale && std::max(tau, tau_folded) <= format_of(p.score_format).largest)) return false;
  if (p.of.softcap > 0 && !cap_stays_in_range(p)) return false;
  if (!p.prescaled) return true;
  double most_q = 0;
  for (std::int64_t i = 0; i < p.of.dk; ++i) most_q = std::max(most_q, std::fabs(q[i]));
  return most_q * most_factor(p) * (1 + 2 * p.u_qpre) <= p.H_q;
}

KeyTerms key_terms(const Profile& p, const RowKeys& row, const double* q, BoundScratch& w) {
  KeyPass x(p, row, w);
  find_score_errors(x, nullptr);
  find_exponent_errors(x);
  KeyTerms out;
  out.largest_score = x.c.Mabs;
  out.most_E = x.most.E;
  out.z = x.z;
  out.g_mean = x.c.g_mean, out.s_mean = x.c.s_mean;
  out.most_E_here = x.most.here;
  out.ratio_here = x.most.here > 0 ? x.most.here / x.most.least_E : 0;

  const WeightSums sums = find_weights(x);
  out.reach = sums.reach;
  out.big = sums.big;
  // e^690 stands for whatever is larger, and would not outweigh a distance that a double has lost.
  out.capped = x.most.E > 0x1p20 || !(sums.reach < 0x1p990);
  list_by_weight(x, out, w);
  find_weight_gains(x, out);
  find_denominator(x, sums.denominators, out);
  if (row.want_lse) out.lse_allowed = lse_bound(x, out, log_sum_error(x, w));
  // Domain of definition (section 2 with C8-C11).
  out.in_domain = x.most.finite && scores_stay_in_range(x) && sink_stays_in_range(x) && weights_stay_in_range(x, out) &&
                  scale_stays_in_range(x, q);
  return out;
}

}  // namespace attest::detail
