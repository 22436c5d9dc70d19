#include "core/bound/gradient_terms.h"

#include <algorithm>
#include <cmath>

#include "core/bound/loops/inner_loops.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

/// Up to here e^x - 1 is the first terms of its series (expm1_above).
constexpr double most_of_series = 0x1p-6;
/// What factors that are made of several lose.
constexpr double slack = 1 + 0x1p-48;

/// P e^x and P (e^x - 1), as one exponent where e^x is not near 1: P may be 0 in a double and P e^x not.
struct Lifted {
  double whole, grown;
};
Lifted lifted(double weight, double la, double x) {
  if (x < 0.5) {
    const double grown = expm1_above(x);
    return {weight * (1 + grown), weight * grown};
  }
  const double whole = std::exp(la + x);
  return {whole, whole};
}

/// A row on its way through section 3: each step leaves here what the next ones need.
struct Pass {
  const BackwardProfile& p;
  const RowSizes& row;
  double n, dv;
  double gd;      ///< of a sum over columns
  double u_here;  ///< of the weights in dS
  double lam_here;
  double scaled;  ///< what counts of an underflow before the scale
  double th;      ///< of what dS is made of, but for its rounding
  double common;  ///< of the row's Ec, e^Ec - 1 where it is below 0.5

  Pass(const BackwardProfile& profile, const RowSizes& of)
      : p(profile), row(of), n(static_cast<double>(of.n)), dv(static_cast<double>(of.dv)) {
    const BackwardArithmetic& a = p.declared;
    gd = pw(p.u_s, dv + (a.delta_in_sum ? 1 : 0));
    const bool rounded = a.rounded_weights_in_scores || a.weights_from == WeightsFrom::stored;
    u_here = rounded ? p.u_p : 0;
    lam_here = p.lam_e + (rounded ? p.lam_p : 0) + 2 * p.lam;
    scaled = p.gain * (a.scale_before_rounding ? std::max(1.0, 1 / p.tau) : 1.0) * p.cap_range;
    th = pw(p.u, 2 + (row.slope ? 3 : 0) + (a.scale_before_rounding ? 1 : 0));
    common = std::expm1(row.common);
  }

  /// No cap, no dropout, and nothing that has to be known of single values: what loops over keys at once have.
  [[nodiscard]] bool is_plain() const { return !row.slope && !row.kept && p.lam_in == 0; }
  [[nodiscard]] GradientRow keys() const { return {row.weight, row.of_weight, row.size, row.apart, row.E, row.n}; }
  /// of_weight(), as what it is of a size, a weight's gradient and neither; D's own error apart.
  [[nodiscard]] GradientFactors factors(double eD) const {
    GradientFactors f{};
    f.of_size = p.gain * gd * (1 + p.u_dp) * (1 + p.th_gain) * slack;
    f.of_weight = (p.u_dp * (1 + p.th_gain) + p.th_gain) * slack;
    f.of_nothing = ((p.gain * 2 * dv * p.lam_s * (1 + gd) * (1 + p.u_dp) + p.gain * p.lam_dp) * (1 + p.th_gain) +
                    (p.th_gain > 0 ? 2 * p.lam * p.gain : 0)) *
                   slack;
    f.in_sum = p.declared.delta_in_sum ? gd * (row.delta + eD) : 0;
    f.common = row.common, f.grown = common, f.delta = eD, f.u_here = u_here, f.lam_here = lam_here;
    f.lost = 5 * p.lam * scaled, f.th = th, f.u_stored = p.u_ds, f.lam_stored = p.lam_ds * scaled;
    f.u_weight = p.u_p, f.lam_weight = p.lam_e + p.lam_p + p.lam;
    return f;
  }

  [[nodiscard]] bool kept(std::int64_t j) const { return !row.kept || row.kept[j] != 0; }
  /// e2 without what D in the sum adds: the error of dP_j.
  [[nodiscard]] double of_weight(std::int64_t j) const {
    if (!kept(j)) return 0;
    const double read = p.lam_in > 0 ? p.lam_in * (row.g1 + row.v1[j]) : 0;
    double raw = p.gain * (gd * row.size[j] + 2 * dv * p.lam_s * (1 + gd) + read * (1 + gd));
    raw += p.u_dp * (row.of_weight[j] + raw) + p.gain * p.lam_dp;
    return raw * (1 + p.th_gain) + p.th_gain * row.of_weight[j] + (p.th_gain > 0 ? 2 * p.lam * p.gain : 0);
  }

  [[nodiscard]] double delta_from_out() const {
    const double of_sum = pw(std::max(p.u_s, p.u_a), dv);
    double e = of_sum * row.g_out + (1 + of_sum) * row.g_error + 2 * dv * p.lam_s * (1 + of_sum) +
               (1 + of_sum) * p.lam_in * (row.g1 + row.out1);
    if (p.th_gain > 0) e = e * (1 + 3 * p.u) + join(p.th_gain, p.u) * (row.delta + row.of_lse) + 2 * p.lam * p.gain;
    return e;
  }
  [[nodiscard]] double delta_from_weights() const {
    double errors = 0, sizes = 0, most = 0;
    if (is_plain()) {
      GradientFactors f = factors(0);
      f.lam_here = lam_here + p.lam_p;
      // |dP - D| is not known yet, and not asked for.
      GradientRow all = keys();
      all.apart = all.size;
      inner_loops().gradient_delta(all, f, &errors, &sizes, &most);
      if (most <= most_of_series) return errors + pw(std::max(p.u_s, p.u_a), n) * sizes + 2 * (n + 1) * p.lam_a;
      errors = sizes = 0;
    }
    for (std::int64_t j = 0; j < row.n; ++j) {
      const double e2 = of_weight(j), reach = row.of_weight[j] + e2;
      const Lifted x = lifted(row.weight[j], row.la[j], row.E[j] + row.common);
      const double weight = x.whole * (1 + p.u_p), grown = x.grown + p.u_p * x.whole;
      errors += grown * row.of_weight[j] + weight * e2 + (lam_here + p.lam_p) * reach;
      sizes += (weight + lam_here + p.lam_p) * reach;
    }
    return errors + pw(std::max(p.u_s, p.u_a), n) * sizes + 2 * (n + 1) * p.lam_a;
  }
  /// eD.
  [[nodiscard]] double of_delta() const {
    const DeltaFrom from = p.declared.delta;
    double e = 0;
    if (from != DeltaFrom::weights) e = delta_from_out();
    if (from != DeltaFrom::out) e = std::max(e, delta_from_weights());
    if (row.of_lse > 0) e += p.u * (row.delta + e) + (p.th_gain > 0 ? p.th_gain * row.of_lse : 0);
    return e;
  }
};

/// How large two numbers of a kernel may be.
struct OnTheWay {
  double apart = 0;     ///< dP_j - D
  double uncapped = 0;  ///< P_j times that
};

/// Of key j (section 3), what dS_j errs by and how large it is.
OnTheWay take_score(const Pass& x, double eD, std::int64_t j, RowErrors& out) {
  const BackwardProfile& p = x.p;
  const RowSizes& row = x.row;
  const BackwardArithmetic& a = p.declared;
  const auto at = static_cast<std::size_t>(j);
  const double e2 = x.of_weight(j) + (a.delta_in_sum ? x.gd * (row.delta + eD) : 0);
  const Lifted both = lifted(row.weight[j], row.la[j], row.E[j] + row.common);
  const double common = row.common < 0.5 ? row.weight[j] * (1 + x.common) : std::exp(row.la[j] + row.common);
  const double exact = std::min(common, both.whole);
  // P e^Ec rho, and P e^Ec (1 + rho).
  const double grown = (row.E[j] < 0.5 ? exact * expm1_above(row.E[j]) : both.whole) + x.u_here * both.whole;
  const double whole = both.whole * (1 + x.u_here);
  const double apart = row.apart[j], reach = apart + e2 + eD;
  const double f = row.slope ? row.slope[j] : 1, of_f = row.slope ? row.of_slope[j] : 0;
  const double most_f = std::min(1.0, f + of_f) + of_f;
  const double th = x.th;
  const double lost = (x.lam_here * reach * most_f + 5 * p.lam * x.scaled) * (1 + th);
  const double size = whole * reach * most_f;
  const double stored = p.u_ds * (size * (1 + th) + lost) + p.lam_ds * x.scaled;
  const double own = grown * (apart + e2) * f + exact * e2 * f + whole * reach * of_f + th * size + lost + stored;
  out.scores[at] = (size * (1 + th) + lost) * (1 + p.u_ds) + p.lam_ds * x.scaled;
  out.of_k[at] = own + eD * grown * f;
  const double moved = row.common < 0.5 ? x.common * row.weight[j] : common;
  out.of_q[at] = own + moved * apart * f + whole * eD * f;
  // dv has no D and no cap.
  const double grown_v = both.grown + p.u_p * both.whole;
  const bool kept = x.kept(j);
  out.of_g[at] = kept ? grown_v + p.lam_e + p.lam_p + p.lam : 0;
  out.weights[at] = kept ? both.whole * (1 + p.u_p) + p.lam_e + p.lam_p + p.lam : 0;
  return {reach, (whole + x.lam_here) * reach};
}

/// The rows of most problems at once; false where they are to be taken key by key.
bool take_all_scores(const Pass& x, double eD, OnTheWay& most, double& most_score, double& most_weight,
                     double& most_size, RowErrors& out) {
  if (!x.is_plain()) return false;
  const GradientRowMost found = inner_loops().gradient_row(
      x.keys(), x.factors(eD),
      {out.of_k.data(), out.of_q.data(), out.scores.data(), out.of_g.data(), out.weights.data()});
  if (!(found.exponent <= most_of_series)) return false;
  most = {found.apart, found.score}, most_score = found.score, most_weight = found.weight, most_size = found.size;
  return true;
}

}  // namespace

double delta_error(const BackwardProfile& p, const RowSizes& row) {
  return Pass(p, row).of_delta();
}

void row_errors(const BackwardProfile& p, const RowSizes& row, RowErrors& out) {
  for (auto* array : {&out.of_k, &out.of_q, &out.scores, &out.of_g, &out.weights}) fit(*array, row.n);
  const Pass x(p, row);
  const double eD = x.of_delta();
  out.common = std::expm1(row.common);
  out.delta = eD;
  out.of_delta = std::exp(row.common) * eD;
  out.constant = 2 * (x.n + 1) * p.lam_a * x.scaled;
  double most_score = 0, most_weight = 0, most_size = 0, scores = 0;
  OnTheWay most;
  const bool taken = take_all_scores(x, eD, most, most_score, most_weight, most_size, out);
  for (std::int64_t j = 0; !taken && j < row.n; ++j) {
    const OnTheWay here = take_score(x, eD, j, out);
    most.apart = std::max(most.apart, here.apart), most.uncapped = std::max(most.uncapped, here.uncapped);
    const auto at = static_cast<std::size_t>(j);
    most_score = std::max(most_score, out.scores[at]);
    most_weight = std::max(most_weight, out.weights[at]);
    most_size = std::max(most_size, row.size[j]);
    scores += out.scores[at];
  }
  out.of_inputs = p.lam_in * scores;
  const double before = (1 + x.gd) * p.gain * most_size + (p.declared.delta_in_sum ? row.delta + eD : 0);
  const double scaled = most_score * std::max(1.0, p.declared.scale_before_rounding ? p.tau : 1.0);
  // Comparisons that NaN fails.
  out.in_domain = before <= p.H_dot && (1 + x.gd) * (row.g_out + row.g_error) + row.delta + eD <= p.H_dot &&
                  scaled <= p.H_ds && most.apart * (1 + p.u) <= p.H_dot && most.uncapped * p.cap_range <= p.H_ds &&
                  most_weight <= p.H_p && p.gain * most_weight <= p.H_p && out.of_delta < 1e300;
}

double gradient_bound(const BackwardProfile& p, const ElementSums& sums, double scale, double phi, bool grouped) {
  double B = scale * ((1 + phi) * sums.error + phi * (grouped ? sums.parts : sums.exact));
  const double u_scale = std::max(p.u, p.u_a);
  if (grouped) {
    const double heads = static_cast<double>(sums.heads), parts = scale * sums.parts * (1 + phi);
    B += (p.u_group * parts + heads * (p.lam_group + 2 * p.lam)) * (1 + pw(p.u_a, heads)) +
         pw(p.u_a, heads) * parts * (1 + p.u_group);
  }
  B = B * (1 + u_scale) + 2 * p.lam;
  return (1 + 0x1p-20) * (B * (1 + p.u_o) + p.u_o * scale * sums.exact + p.lam_o);
}

}  // namespace attest::detail
