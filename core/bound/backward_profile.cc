#include "core/bound/backward_profile.h"

#include <algorithm>
#include <cmath>

#include "core/bound/underflow.h"

namespace attest {
namespace {

using detail::underflow_of;

/// What storing in a format costs beside operations of unit u in another: nothing, unless it is coarser or narrower.
void store(DType stored, const Format& own, double u, bool flushes, double& unit, double& lam) {
  const Format& format = format_of(stored);
  unit = format.unit > u ? format.unit : 0;
  lam = format.unit > u || format.min_subnormal > own.min_subnormal ? underflow_of(format, flushes, false) : 0;
}

}  // namespace

BackwardProfile backward_profile(const Profile& scores, const BackwardArithmetic& a) {
  const Arithmetic& forward = scores.declared;
  const Format &dot = format_of(a.dot), &sums = format_of(a.accumulate), &out = format_of(a.output);
  const bool flushes = forward.flushes_subnormals, truncates = forward.rounding == Rounding::toward_zero;
  BackwardProfile p;
  p.scores = scores;
  p.declared = a;
  p.tau = std::fabs(scores.of.scale);
  p.u = std::max(dot.unit, scores.u_score);
  p.lam = std::max(underflow_of(dot, flushes, false), underflow_of(format_of(scores.score_format), flushes, false));
  p.u_s = truncates ? 2 * dot.unit : dot.unit;
  p.lam_s = underflow_of(dot, flushes, truncates);
  p.u_a = truncates ? 2 * sums.unit : sums.unit;
  p.lam_a = underflow_of(sums, flushes, truncates);
  p.lam_in = scores.lam_in;
  store(a.weights, dot, p.u, flushes, p.u_p, p.lam_p);
  store(a.of_weights, dot, p.u, flushes, p.u_dp, p.lam_dp);
  store(a.of_scores, dot, p.u, flushes, p.u_ds, p.lam_ds);
  if (const double cap = scores.of.softcap; cap > 0) {
    p.cap_range = std::max(cap, 1 / cap);
    // Where each step of the cap is stored, so are the products by its derivatives.
    if (forward.stored_capped) p.u_ds = pw(p.u_ds, 4), p.lam_ds *= 4;
  }
  p.exponent = pw(scores.u_e, scores.c_e);
  p.of_exp = scores.eps_exp / (1 - scores.eps_exp) + scores.lam_exponent;
  p.lam_e = scores.lam_e;
  p.th_lse = scores.base2 ? pw(scores.u_e, 2) : 0;
  const double dropped = scores.of.dropout_p;
  p.gain = scores.gain;
  if (dropped > 0) {
    // As in the forward pass (1.11): 1/(1 - p) of a p that is rounded, and the product.
    const double of_p = round_to(a.dot, dropped) == dropped ? 0.0 : p.u * dropped * p.gain;
    p.th_gain = join(pw(p.u, 3), of_p / (1 - std::min(0.5, of_p)));
  }
  // The scale is rounded to the format of the sums, and a scale that is the rounded 1/sqrt(dk) differs from a kernel's
  // own by 2^-52.
  const double u_scale = std::max(p.u, sums.unit);
  int exponent = 0;
  const bool power_of_two = std::frexp(scores.of.scale, &exponent) == 0.5;
  p.phi = join(pw(u_scale, 1), power_of_two ? 0 : join(pw(u_scale, 2), 0x1p-52));
  if (dropped > 0 && a.late_dropout) p.phi = join(p.phi, join(p.th_gain, u_scale));
  p.phi_v = dropped > 0 ? join(p.th_gain, u_scale) : 0;
  if (out.unit > sums.unit) p.u_o = out.unit;
  if (out.unit > sums.unit || out.min_subnormal > sums.min_subnormal) p.lam_o = underflow_of(out, flushes, false);
  if (a.group_partials) {
    p.grouped = true;
    store(*a.group_partials, sums, sums.unit, flushes, p.u_group, p.lam_group);
  }
  p.H_dot = std::min({dot.largest, format_of(scores.score_format).largest, format_of(a.of_weights).largest});
  p.H_p = std::min(format_of(a.weights).largest, dot.largest);
  p.H_ds = std::min(format_of(a.of_scores).largest, dot.largest);
  p.H_a = sums.largest;
  p.H_o = std::min(out.largest, a.group_partials ? format_of(*a.group_partials).largest : out.largest);
  return p;
}

BackwardProfile profile_of_evaluation(const Profile& scores) {
  BackwardProfile p;
  p.scores = scores;
  p.declared.weights_from = WeightsFrom::stored;
  p.declared.delta = DeltaFrom::weights;
  p.tau = std::fabs(scores.of.scale);
  // Every operation of it is one of doubles, and none of them flushes but the exponentials.
  p.u = p.u_s = p.u_a = 0x1p-53;
  p.lam = p.lam_s = p.lam_a = 0x1p-1074;
  p.lam_e = lost_weight;
  p.gain = scores.gain;
  p.cap_range = scores.of.softcap > 0 ? std::max(scores.of.softcap, 1 / scores.of.softcap) : 1;
  p.th_gain = scores.of.dropout_p > 0 ? 0x1p-51 : 0;
  p.phi = p.phi_v = 0x1p-52;
  p.H_dot = p.H_p = p.H_ds = p.H_a = p.H_o = 0x1p1020;
  return p;
}

}  // namespace attest
