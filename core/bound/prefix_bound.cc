// error-bounds.md 5.1.
#include "core/bound/prefix_bound.h"

#include <algorithm>
#include <cmath>

#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

/// Largest E of which e^E - 1 and e^E are bounded by the first powers of it.
constexpr double largest_E = 0x1p-4;

}  // namespace

void PrefixKeys::begin(const Profile& p, const RowKeys& row, double centre, BoundScratch& scratch) {
  p_ = &p;
  row_ = row;
  pass_.emplace(p, row_, scratch);
  find_score_errors(*pass_, &centre);
  set_exponent_constants(*pass_);
  top_ = pass_->range.s_top;
  taken_ = 0;
  most_ = {.range = {-infinity, -infinity, -infinity, -infinity, 0, 0}, .s_low = infinity, .least_e = infinity};
  find_own_errors();
}

void PrefixKeys::find_own_errors() {
  const KeyConstants& c = pass_->c;
  const KeyArrays& keys = pass_->keys;
  const std::int64_t n = row_.n;
  fit(e_, n), fit(f_, n);
  // |shat_j - s_j|, as in the loops over keys: nothing but the scores is scaled.
  const double on_s = c.th_tau + c.th_l2e, grown = 1 + c.th_l2e;
  least_Mabs_ = infinity;
  double top = -infinity, bottom = -infinity;
  for (std::int64_t j = 0; j < n; ++j) {
    const double ap = keys.a[j] * grown + on_s * std::fabs(keys.s[j]);
    top = std::max(top, keys.s[j] + ap), bottom = std::max(bottom, keys.s[j] - ap);
    least_Mabs_ = std::min(least_Mabs_, std::max(std::fabs(top), std::fabs(bottom)));
  }
  const double on_D = c.thE + c.lse_on_D, on_Q = c.residual + c.lse_on_Q;
  for (std::int64_t j = 0; j < n; ++j) {
    const double s = keys.s[j], a = keys.a[j], tm = keys.tm[j], size = std::fabs(s) + a * grown + on_s * std::fabs(s);
    const double unknown = a * grown + tm + c.twice_lazy;
    double D = (top_ - s) + unknown;
    if (c.fixed_shift) D = std::max(D, size);
    double centred = tm;
    if (c.lse_merge) {
      const double apart = std::fabs(s - c.s_mean);
      centred += c.th_l2e * std::max(0.0, (c.s_mean - s) + unknown - apart);
    }
    const auto at = static_cast<std::size_t>(j);
    e_[at] = a * grown + centred + on_D * D + on_Q * std::max(0.0, size - least_Mabs_);
    f_[at] = e_[at] - tm + on_s * std::fabs(s);
  }
}

void PrefixKeys::take(std::int64_t n) {
  const KeyConstants& c = pass_->c;
  const KeyArrays& keys = pass_->keys;
  const double on_s = c.th_tau + c.th_l2e, grown = 1 + c.th_l2e;
  Most m = most_;
  for (std::int64_t j = taken_; j < n; ++j) {
    const double s = keys.s[j], a = keys.a[j], ap = a * grown + on_s * std::fabs(s);
    const double e = e_[static_cast<std::size_t>(j)];
    m.range.M = std::max(m.range.M, s + a * grown + keys.tm[j]);
    m.range.top = std::max(m.range.top, s + ap), m.range.bottom = std::max(m.range.bottom, s - ap);
    m.range.s_top = std::max(m.range.s_top, s), m.s_low = std::min(m.s_low, s);
    m.range.size = std::max(m.range.size, keys.size[j]);
    m.size_of_s = std::max(m.size_of_s, std::fabs(s) + ap);
    m.a = std::max(m.a, a);
    m.e = std::max(m.e, e), m.least_e = std::min(m.least_e, e);
    m.f = std::max(m.f, f_[static_cast<std::size_t>(j)]);
  }
  most_ = m;
  taken_ = n;
}

double PrefixKeys::common(const Most& most) const {
  const KeyConstants& c = pass_->c;
  const double on_D = c.thE + c.lse_on_D, on_Q = c.residual + c.lse_on_Q;
  const double higher = most.range.M - top_;
  const double Mabs = std::max(std::fabs(most.range.top), std::fabs(most.range.bottom));
  // The difference of two large numbers is off by a part of them.
  const double rounding = 0x1p-48 * on_D * (std::fabs(top_) + std::fabs(most.range.M));
  return on_D * (c.fixed_shift ? std::max(0.0, higher) : higher) + on_Q * (Mabs + c.lazy) + c.rest +
         (c.lse_merge ? c.th_l2e * std::max(0.0, most.range.M - c.s_mean) : 0.0) + rounding;
}

PrefixTerms PrefixKeys::terms(const PrefixSums& sums, double reference, const double* q, double most_abs_sum,
                              BoundScratch& scratch) const {
  const Profile& p = *p_;
  PrefixTerms out;
  const double C = common(most_), L = sums.weight, n = static_cast<double>(taken_);
  const double most_E = most_.e + C, r = sums.error / L + C;
  // Where much of e_j is taken back by C the rounding of their sums would count.
  if (!(most_E <= largest_E) || !(C >= -(1 - 0x1p-10) * most_.least_e) || !(r >= 0)) return out;

  RowKeys row = row_;
  row.n = taken_;
  row.lse = reference + std::log(L);
  KeyPass x(p, row, scratch);
  x.range = most_.range;
  x.c = pass_->c;
  x.c.M = most_.range.M, x.c.s_top = most_.range.s_top;
  x.c.Mabs = std::max(std::fabs(most_.range.top), std::fabs(most_.range.bottom));
  x.most.E = most_E, x.most.a = most_.a;
  x.most.Q = x.most.vanished_Q = std::max(most_.size_of_s, x.c.Mabs) + x.c.lazy;
  const auto rescalings = static_cast<double>(sums.rescalings);
  x.most.here = x.c.unit_here * x.c.tau * most_.range.size + x.c.unit * (most_.range.s_top - most_.s_low) +
                x.c.exp_here + x.c.unit * (64 + 16 * rescalings);
  out.most_E_here = x.most.here;
  if (!(x.most.here <= 0x1p-24)) return out;

  PrefixConstants& c = out.columns;
  c.inverse = 1 / L;
  c.common = C;
  const double least_Z = 1 - r;
  c.G = (1 + 0.55 * most_E) / least_Z;
  c.H = (1 + 1.04 * most_E) / least_Z;
  c.reach = c.G * r;
  KeyTerms terms;
  find_weight_gains(x, terms);
  find_denominator(x, static_cast<double>(sums.big) * p.u_a + c.H * sums.small / L, terms);
  const double rounded_up = (1 + pw(p.u_a, 2 * n + 4)) * (1 + p.u_p) * (1 + 0x1p-40);  // C42
  const double range = terms.weight_gain * rounded_up;
  const bool in_domain = sizes_stay_in_range(x) && weights_stay_in_range(x, terms) && scale_stays_in_range(x, q) &&
                         range * most_abs_sum <= p.H_a;
  if (!in_domain || !(terms.denominator > 0)) return out;

  c.unit = (2 * (n + rescalings) + 8) * row.unit;
  c.ratio_here = x.most.here / (most_.least_e + C);
  c.least = n * 0x1p-1020;
  c.underflow_here = (2 * n + 16) * 0x1p-1070;
  const Accumulation accumulation(p, taken_, sums.big);
  const double chain = accumulation.chain;
  c.plain = accumulation.plain;
  c.refined = (1 + chain) * (accumulation.local + (1 + chain) * accumulation.merges);
  c.of_small = (1 + chain) * (1 + chain);
  c.nearest = p.nearest;
  c.u_p = p.u_p;
  c.LN = terms.factor * (2 * n + p.rescaling_operations(n)) * p.lam_a + p.lam_in;
  c.of_denominator = terms.UD + terms.LD;
  c.inverse_denominator = 1 / terms.denominator;
  const Finish finish(p);
  c.Uf = finish.Uf, c.lam = finish.lam;
  c.lam_weight = terms.lam_weight + terms.lam_twice;
  c.lam_p = std::min(p.lam_p, 1.0);
  c.big = static_cast<double>(sums.big);
  c.lost = n * 0x1p-1009;
  c.per_lost = (1 + 0x1p-30) * (1 + finish.Uf) * c.inverse_denominator * terms.factor;
  out.most_size = p.H_o;
  const double vanished = terms.vanished_gain * (1 + 0x1p-20);
  out.finite_required = vanished * rounded_up * std::max(n, most_abs_sum) <= p.H_a && vanished * (1 + p.u_p) <= p.H_p &&
                        vanished * p.least_weight <= 1;
  if (row_.want_lse) {
    const double most_l = most_.f + C, mean = sums.lse_error / L + C;
    if (!(most_l <= largest_E)) return out;
    const double delta = std::max(std::log1p((1 + 0.55 * most_l) * mean), -std::log1p(-mean));
    out.lse_allowed = lse_bound(x, terms, delta);
  }
  out.usable = true;
  return out;
}

}  // namespace attest::detail
