#include "core/test/fleet/written_bound.h"

#include <algorithm>
#include <cmath>

namespace attest::fleet {
namespace {

using Real = long double;
using Reals = std::vector<Real>;

Real power(Real u, Real count) {
  return std::expm1(count * std::log1p(u));
}
Real joined(Real a, Real b) {
  return a + b + a * b;
}

/// exp of log sum exp, in doubles where the correction is left out.
Real total(const Reals& exponents, bool in_doubles) {
  double sum = 0;
  Real exact = 0;
  for (const Real e : exponents) sum += std::exp(static_cast<double>(e)), exact += std::exp(e);
  return in_doubles ? static_cast<Real>(sum) : exact;
}

/// The row's quantities by the names of error-bounds.md, each function's from those before it.
struct Row {
  const Case& c;
  const Profile& p;
  Without left_out;

  std::size_t n = static_cast<std::size_t>(c.k().shape()[2]);
  Real count = static_cast<Real>(n), L1 = std::log(count) + 1 + static_cast<Real>(p.lazy);
  Real tau = without(Without::size_of_scale) ? c.scale : std::fabs(c.scale);
  bool pre_scale = c.mask_convention == MaskConvention::pre_scale;
  Real th_l2e = p.th_l2e, th_tau = p.th_tau, T = p.lazy, R = p.rescalings, u_a = p.u_a;

  // Of `exact_values`.
  Reals v{zeros()}, t{zeros()}, s{zeros()}, g{zeros()}, X{zeros()}, b{zeros()}, k1{zeros()}, la{zeros()},
      alpha{zeros()};
  Real q1 = 0, o = 0, g_mean = 0, s_mean = 0;
  // Of `scores`.
  Reals a{zeros()}, tm{zeros()}, ap{zeros()};
  Real most_a = 0;
  // Of `exponents`.
  Reals E{zeros()}, lowest{zeros()};
  Real common = 0;  ///< what all exponents err by
  Real Mabs = 0, lower = -HUGE_VALL;
  // Of `weights`.
  Reals pp{zeros()};
  Real S = 0, A = 0, lam_e = 0, twice = 0, lost = 0, denominators = 0;

  void exact_values();
  void scores(const std::vector<bool>& exact);
  void exponents();
  void weights();
  [[nodiscard]] Real bound() const;

  [[nodiscard]] Reals zeros() const { return Reals(n); }
  /// What a score may be off by before log2(e) multiplies it, and after.
  [[nodiscard]] Real far(std::size_t j) const { return a[j] * (without(Without::far_scores) ? 1 : 1 + th_l2e); }
  [[nodiscard]] bool without(Without w) const { return left_out == w; }
};

void Row::exact_values() {
  const auto dk = static_cast<std::size_t>(c.k().shape()[3]);
  Real top = -HUGE_VALL;
  for (std::size_t e = 0; e < dk; ++e) q1 += std::fabs(c.q()[static_cast<std::int64_t>(e)]);
  for (std::size_t j = 0; j < n; ++j) {
    Real x = 0;
    for (std::size_t e = 0; e < dk; ++e) {
      const Real key = c.k()[static_cast<std::int64_t>(j * dk + e)];
      const Real product = key * static_cast<Real>(c.q()[static_cast<std::int64_t>(e)]);
      x += product, X[j] += std::fabs(product), k1[j] += std::fabs(key);
    }
    v[j] = c.v()[static_cast<std::int64_t>(j)];
    t[j] = static_cast<Real>(c.scale) * x;
    b[j] = p.of.bias ? static_cast<Real>(c.mask()[static_cast<std::int64_t>(j)]) : 0;
    if (pre_scale) b[j] *= static_cast<Real>(c.scale);
    s[j] = t[j] + b[j];
    g[j] = pre_scale ? s[j] : t[j];
    top = std::max(top, s[j]);
  }
  Reals shifted = s;
  for (Real& e : shifted) e -= top;
  const Real log_sum = std::log(total(shifted, false));
  for (std::size_t j = 0; j < n; ++j) {
    la[j] = shifted[j] - log_sum;
    alpha[j] = std::exp(la[j]);
    o += alpha[j] * v[j], g_mean += alpha[j] * g[j], s_mean += alpha[j] * s[j];
  }
}

void Row::scores(const std::vector<bool>& exact) {
  const Real n_s = static_cast<Real>(p.n_s), gs = joined(power(p.u_s, n_s), p.u_qpre), thS = p.th_scale,
             thB = p.th_bias;
  const bool prescaled = p.prescaled && !without(Without::prescaled_underflow);
  for (std::size_t j = 0; j < n; ++j) {
    // C30: a bias behind the scale enters the sum as b/tau.
    const bool divided = p.bias_in_sum && !prescaled && !pre_scale;
    const Real quotient =
        divided && th_tau > 0 ? joined(static_cast<Real>(p.u_s + th_tau) / (1 - th_tau), p.u_s) : static_cast<Real>(0);
    const Real of_b =
        divided ? (1 + th_tau) * (1 + thS) * joined(joined(gs, quotient), p.u_bc) + th_tau + (1 + th_tau) * thS : 0;
    const Real size = tau * X[j] + (p.bias_in_sum && !divided ? std::fabs(b[j]) : 0);
    Real e1 = gs * size +
              (prescaled ? (1 + gs) * (2 * n_s * p.lam_s * std::max<Real>(1, tau) +
                                       (p.lam_q + p.lam_in * std::max<Real>(1, tau)) * k1[j] + tau * p.lam_in * q1)
                         : tau * (1 + gs) * (2 * n_s * p.lam_s + p.lam_in * (q1 + k1[j])));
    e1 += p.u_raw * (std::fabs(t[j]) + e1) + (prescaled ? std::max<Real>(1, tau) : tau) * p.lam_raw;
    const bool begins = p.bias_in_sum && !divided && !without(Without::converted_start);
    const Real both = begins ? joined(gs, p.u_raw) * p.u_bc * std::fabs(b[j]) : 0;
    if (pre_scale) {
      const Real th = joined(thB, thS);
      a[j] =
          (1 + th_tau) * ((1 + th) * (e1 + both + p.u_bc * std::fabs(b[j]) + tau * p.lam_bc) + th * std::fabs(s[j])) +
          p.lam_scale + p.lam_bias;
    } else {
      a[j] = (1 + thB) * ((1 + th_tau) * ((1 + thS) * (e1 + both) + thS * std::fabs(t[j])) + p.lam_scale +
                          (divided ? of_b : static_cast<Real>(p.u_bc)) * std::fabs(b[j]) + p.lam_bc) +
             thB * (std::fabs(s[j]) + th_tau * std::fabs(t[j])) + p.lam_bias;
    }
    if (!exact.empty() && exact[j])
      a[j] = 0;
    else if (!exact.empty())
      a[j] -= (1 + thB) * (1 + th_tau) * (1 + thS) * e1;
    tm[j] = th_tau * (1 + th_l2e) * std::fabs(g[j] - g_mean) + th_l2e * std::fabs(s[j] - s_mean);
    ap[j] = a[j] * (1 + th_l2e) + th_tau * (1 + th_l2e) * std::fabs(g[j]) + th_l2e * std::fabs(s[j]);
    most_a = std::max(most_a, a[j]);
  }
}

void Row::exponents() {
  Real M = -HUGE_VALL, upper = -HUGE_VALL;
  for (std::size_t j = 0; j < n; ++j) {
    M = std::max(M, s[j] + far(j) + tm[j]);
    upper = std::max(upper, s[j] + ap[j]), lower = std::max(lower, s[j] - ap[j]);
  }
  const Real thE = power(p.u_e, p.c_e);
  Mabs = std::max(std::fabs(upper), std::fabs(lower));
  const Real of_exp = p.eps_exp / (1 - static_cast<Real>(p.eps_exp));
  const Real eps =
      (of_exp + (without(Without::exponent_underflow) ? 0 : p.lam_exponent)) * (1 + R + (p.lse_merge ? 2 : 0));
  common = eps;
  const bool near = without(Without::distant_reference);
  const Real fallen = near ? 0 : 2 * thE, reach = near ? p.u_lse : std::max<Real>(p.u_lse, thE);
  for (std::size_t j = 0; j < n; ++j) {
    Real D = M - (s[j] - far(j) - tm[j]) + 2 * T;
    if (p.fixed_shift) D = std::max(D, std::fabs(s[j]) + ap[j]);
    const Real Q = std::max(std::fabs(s[j]) + ap[j], Mabs) + (without(Without::lazy_residual) ? 0 : T);
    Real centred = tm[j], own = a[j] * (1 + th_l2e);
    if (p.lse_merge && !without(Without::centred_merge))
      centred = th_tau * (1 + th_l2e) * std::fabs(g[j] - g_mean) + th_l2e * std::max(std::fabs(s[j] - s_mean), D);
    if (without(Without::growing_constants)) own = a[j], centred -= th_tau * th_l2e * std::fabs(g[j] - g_mean);
    E[j] = own + centred + thE * D + p.c_m * p.u_e * (1 + thE) * Q + eps;
    const Real on_Q = p.u_lse * (1 + static_cast<Real>(p.u_lse)) * (1 + fallen);
    const Real of_merge = on_Q * L1 + p.eps_log * L1 * (1 + p.u_lse) + reach * L1 + fallen * of_exp;
    if (p.lse_merge) E[j] += on_Q * Q + p.u_lse * D + of_merge;
    if (p.lse_merge && j == 0) common += of_merge;
    lowest[j] = la[j] - E[j];
  }
}

void Row::weights() {
  const bool doubles = without(Without::logarithms);
  const Real Z = total(lowest, doubles);
  lam_e =
      p.lam_e * (2 + R * (without(Without::lazy_underflow) ? 1 : std::exp((1 + power(p.u_e, p.c_e)) * T + p.c_m / 2)));
  const bool once = without(Without::two_underflows);
  twice = once ? 0 : R * (17 + 16 * R) * p.lam_e * (p.lam_p + lam_e + p.lam_e);
  Real most_d = 0, most_v = 0;
  for (std::size_t j = 0; j < n; ++j) {
    // Term by term: the difference itself may be less than the last bit of either.
    Real d = 0;
    for (std::size_t l = 0; l < n; ++l) d += alpha[l] * (v[j] - v[l]);
    d = std::fabs(d);
    if (without(Without::separate_radius)) d = std::fabs(static_cast<double>(v[j]) - static_cast<double>(o));
    const Real grown = std::exp(la[j] + E[j]);
    pp[j] = std::min<Real>(1, grown / Z);
    if (doubles) {
      S += static_cast<double>(E[j] >= 1 ? grown : alpha[j] * std::expm1(E[j])) * d / Z;
    } else {
      S += (E[j] >= 1 ? grown : alpha[j] * std::expm1(E[j])) * d / Z;
    }
    A += pp[j] * std::fabs(v[j]);
    most_d = std::max(most_d, d), most_v = std::max(most_v, std::fabs(v[j]));
    const Real weight =
        without(Without::far_exponents) ? static_cast<Real>(std::exp(static_cast<double>(la[j] + E[j]))) : pp[j];
    const bool in_singles = p.u_score > 0x1p-50, alike = in_singles && format_of(p.declared.accumulate).unit > 0x1p-50;
    const Real dead = alike || (in_singles && without(Without::wider_sums)) ? -745 : -1490;
    const Real exponent = la[j] + E[j] - std::log(Z);
    const bool gone = exponent < -700 && exponent > dead && !without(Without::far_exponents);
    const Real stored = std::min<Real>(p.lam_p, pp[j]);
    Real cap = gone ? lam_e : once ? 2 * weight : Real{1.0625} * weight + stored;
    if (!p.exp_vanishes && !without(Without::clamped_exp)) cap = lam_e;
    lost += std::fabs(v[j]) * (stored + std::min(lam_e, cap) + twice);
    denominators += std::min(u_a, pp[j]);
  }
  S = S < most_d || (doubles && std::isnan(S)) ? S : most_d;
  A = std::min(A, most_v);
}

Real Row::bound() const {
  const Real h = static_cast<Real>(accumulation_depth(p.declared, p.of.keys, static_cast<std::int64_t>(n)));
  const bool short_of_one = !p.depth_declared || without(Without::normalised_depth);
  const Real cN = h + 1 + 2 * R + p.extra + (p.norm_first ? p.c_div - (short_of_one ? 1 : 0) : 0);
  const Real cD = h + 2 * R + p.extra, chain = power(u_a, count + 1 + 2 * R + p.extra);
  Real sums = power(u_a, cN) * A, UD = power(u_a, cD);
  if (p.nearest) {
    Real small = 0;
    for (std::size_t j = 0; j < n; ++j) small += std::min(u_a * A, pp[j] * std::fabs(v[j]));
    sums = std::min(
        sums, (1 + chain) * ((1 + 2 * R + p.extra + (p.norm_first ? p.c_div : 0)) * u_a * A + (1 + chain) * small));
    UD = std::min(UD, (1 + chain) * ((2 * R + p.extra) * u_a + (1 + chain) * denominators));
  }
  Real least = std::exp(cD * std::log1p(-u_a));
  const Real of_sum = UD;
  if (p.p_in_denom) UD = joined(UD, p.u_p), least *= 1 - p.u_p;
  least = std::max(p.p_in_denom && without(Without::rounded_shares) ? (1 - of_sum) * (1 - p.u_p) : 1 - UD, least);
  if (p.lse_merge) {
    const Real merge = 2 * p.u_lse * (Mabs + L1) + p.eps_log * L1 +
                       (without(Without::second_merge_error) ? 1 : 2) * static_cast<Real>(p.eps_exp);
    UD = joined(UD, std::expm1(merge));
    least *= std::exp(-merge);
  }
  Real factor = p.stored && !without(Without::stored_maximum) ? 2 * std::exp(2 * most_a) : 2;
  if (p.fixed_shift) factor *= std::exp(std::max<Real>(0, -lower));
  if (!without(Without::grown_losses)) {
    const Real thE = power(p.u_e, p.c_e), of_product = without(Without::lost_products) ? 0 : 1;
    const Real at_last = without(Without::last_reference) ? 0 : p.c_m * p.u_e * (1 + thE) * (Mabs + T);
    factor *= std::exp(2 * (thE * T + common) + at_last) *
              (1 + power(u_a, std::min(h + of_product, count) + R + p.extra)) * (1 + p.u_p) * (1 + power(p.lam_e, R));
  }
  const Real rescaled = 2 * R + (p.lse_merge && !without(Without::merge_operations) ? 3 * count : 0);
  const Real LD = factor * (count * (lam_e + twice) + (count + rescaled) * p.lam_a +
                            (p.p_in_denom ? count * (p.lam_p + std::min(p.lam_p, p.lam_a)) : 0));
  const Real LN =
      factor * (lost + (2 * count + rescaled) * p.lam_a) + (without(Without::flushed_inputs) ? 0 : p.lam_in);
  const Real N = p.u_p * A + (1 + p.u_p) * sums, Uf = joined(power(u_a, p.c_div), p.u_o);
  const Real pre = S + (N + LN + (std::fabs(o) + S) * (UD + LD)) / (least - LD);
  return (1 + 0x1p-30L) * ((1 + Uf) * pre + Uf * std::fabs(o) + (1 + Uf) * (p.c_div * p.lam_a + p.lam_o));
}

}  // namespace

double written_bound(const Case& c, const Profile& p, Without left_out, const std::vector<bool>& exact_scores) {
  Row row{c, p, left_out};
  row.exact_values();
  row.scores(exact_scores);
  row.exponents();
  row.weights();
  return static_cast<double>(row.bound());
}

}  // namespace attest::fleet
