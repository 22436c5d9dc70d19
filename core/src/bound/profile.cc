// Arithmetic to profile: which roundings, how many, how large.
#include <algorithm>
#include <cmath>

#include "attest/error_bound.h"

namespace attest {
namespace {

/// Absolute error of an operation whose result is below the smallest normal number. Half the smallest subnormal of f64
/// is 0 in a double, and a bound of 0 can neither hold nor fail an answer that lies between two doubles: the whole one.
double underflow_of(const Format& format, bool flushes, bool truncates) {
  if (flushes) return format.min_normal;
  return truncates ? format.min_subnormal : std::max(format.min_subnormal * 0.5, 0x1p-1074);
}

}  // namespace

double pw(double u, double count) {
  return std::expm1(count * std::log1p(u)) * (1.0 + 0x1p-50);
}

std::string_view name_of(Excuse excuse) noexcept {
  switch (excuse) {
    case Excuse::none:
      return "none";
    case Excuse::fully_masked:
      return "fully masked";
    case Excuse::not_finite:
      return "not finite";
    case Excuse::overflow:
      return "outside the domain";
    case Excuse::infinite:
      return "infinite bound";
    case Excuse::vacuous:
      return "vacuous bound";
  }
  return "?";
}

Profile profile_of(const Arithmetic& a, const ProfileInputs& inputs) {
  const Format& score = format_of(a.score_sums);
  const Format& sums = format_of(a.accumulate);
  const Format& out = format_of(a.output);
  const bool flushes = a.flushes_subnormals;
  const bool truncates = a.rounding == Rounding::toward_zero;
  const double u = score.unit;
  Profile p;
  p.of = inputs;
  p.u_score = u;
  p.score_format = a.score_sums;
  p.base2 = a.base2;
  p.folded = a.folded_exp2;

  // q.k. A truncating sum errs by up to 2u, and by a whole subnormal (C22).
  p.u_s = truncates ? 2 * u : u;
  p.lam_s = underflow_of(score, flushes, truncates);
  p.bias_in_sum = inputs.bias && a.bias_in_sum;
  p.n_s = inputs.dk + (p.bias_in_sum ? 1 : 0);
  p.score_precision = score.precision;
  p.score_least_bit = flushes ? score.min_normal : score.min_subnormal;
  if (a.prescaled_q) {
    const Format& kept = format_of(*a.prescaled_q);
    p.prescaled = true;
    p.prescaled_format = *a.prescaled_q;
    p.u_qpre = std::max(kept.unit, u);
    p.lam_q = std::max(underflow_of(kept, flushes, false), underflow_of(score, flushes, false));
    p.H_q = std::min(kept.largest, score.largest);
  }

  // What is written to memory: only a coarser or narrower format loses anything.
  p.H_s = score.largest;
  p.u_range = p.u_s;
  const auto store = [&](const std::optional<DType>& stored, double& unit, double& lam) {
    unit = lam = 0;
    if (!stored) return;
    const Format& format = format_of(*stored);
    p.stored = true;
    p.stored_formats.push_back(*stored);
    p.H_s = std::min(p.H_s, format.largest);
    if (format.unit > u) unit = format.unit;
    if (format.min_subnormal > score.min_subnormal || format.unit > u) lam = underflow_of(format, flushes, false);
    p.u_range = std::max(p.u_range, unit);
  };
  double u_scaled = 0, u_biased = 0;
  store(a.stored_raw, p.u_raw, p.lam_raw);
  store(a.stored_scaled, u_scaled, p.lam_scale);
  store(a.stored_biased, u_biased, p.lam_bias);
  p.lam_scale += 2 * underflow_of(score, flushes, false);
  p.th_scale = join(pw(u, a.base2 ? 2 : 1), u_scaled);
  p.th_bias = join(join(inputs.bias ? u : 0.0, u_biased), a.base2 ? u : 0.0);

  // Roundings of the bias by itself: conversion, multiplication by log2(e), and by tau where q carries the scale (C5).
  const bool pre_scale = inputs.convention == MaskConvention::pre_scale;
  if (inputs.bias) {
    if (a.mask_format) {
      const Format& kept = format_of(*a.mask_format);
      p.any_mask_format = true;
      p.mask_format = *a.mask_format;
      const Format& own = format_of(inputs.mask == DType::boolean ? DType::f32 : inputs.mask);
      if (kept.unit > own.unit) p.u_bc = kept.unit;
      if (kept.min_subnormal > own.min_subnormal) p.lam_bc = underflow_of(kept, flushes, false);
    }
    // A mask wider than the score format is rounded on its way in.
    if (inputs.mask != DType::boolean && format_of(inputs.mask).unit < u) p.u_bc = join(p.u_bc, u);
    if (a.base2) p.u_bc = join(p.u_bc, u);
    if (pre_scale && (p.prescaled || a.stored_scaled)) p.u_bc = join(p.u_bc, u);
    p.lam_bc += underflow_of(score, flushes, a.flushes_inputs) * (a.flushes_inputs ? 2 : 1);
  }

  // Constants: tau converted or computed as 1/sqrt(dk), then multiplied by log2(e); a scale that is itself the rounded
  // 1/sqrt(dk) differs from the kernel's own by 2^-52. A power of two is exact wherever it is not folded.
  int exponent = 0;
  const bool power_of_two = std::frexp(inputs.scale, &exponent) == 0.5;
  if (a.base2) {
    p.th_tau = join(pw(u, 4), 0x1p-52);
    p.th_l2e = pw(u, 2);
  } else if (!power_of_two) {
    p.th_tau = join(pw(u, 2), 0x1p-52);
  }
  // What scales q in a narrow format has the scale in that format too, or may. It is then the constant of q.k alone:
  // one for all keys, but for a bias that is scaled beside it by another.
  p.least_scale = score.min_normal;
  if (a.prescaled_q && (a.base2 || !power_of_two) && format_of(*a.prescaled_q).unit > u) {
    const Format& kept = format_of(*a.prescaled_q);
    double& error = inputs.bias && pre_scale ? p.u_qpre : p.th_tau;
    error = join(error, kept.unit);
    p.least_scale = std::max(p.least_scale, kept.min_normal);
  }

  p.u_e = u;
  p.c_e = a.base2 ? 3 : 1;
  p.c_m = a.folded_exp2 ? (a.split_merge ? 2 : 1) : 0;  // C7
  p.lazy = a.max == MaxPolicy::lazy ? a.lazy_nats : 0;
  p.fixed_shift = a.max == MaxPolicy::none || a.max == MaxPolicy::unstated;
  p.takes_no_maximum = a.max == MaxPolicy::none;
  p.eps_exp = a.exp_ulp > 0 ? 2 * a.exp_ulp * u : 4 * u;
  p.exp_vanishes = a.exp_ulp > 0;
  p.lam_e = flushes || a.exp_ulp <= 0 ? score.min_normal : std::max(0.5, a.exp_ulp) * score.min_subnormal;
  p.rescalings = (a.block > 0 ? std::ceil(static_cast<double>(inputs.keys) / static_cast<double>(a.block)) : 0.0) +
                 (a.split_merge ? 2 : 0);
  p.lse_merge = a.split_merge;
  p.u_lse = u;
  p.eps_log = std::max(4 * u, p.eps_exp);

  const Format& weights = format_of(a.weights);
  if (weights.unit > u) p.u_p = weights.unit;
  if (weights.unit > u || weights.min_subnormal > score.min_subnormal) p.lam_p = underflow_of(weights, flushes, false);
  p.p_in_denom = a.weights_in_denominator && (p.u_p > 0 || p.lam_p > 0);

  // Sums over keys. A weight enters a coarser accumulator through one more rounding, absolute below its least number.
  p.u_a = truncates ? 2 * sums.unit : sums.unit;
  p.lam_a = underflow_of(sums, flushes, truncates);
  p.nearest = !truncates;
  if (sums.unit > u) p.extra = 1;
  if (sums.min_subnormal > score.min_subnormal) p.lam_e += underflow_of(sums, flushes, false);
  p.depth_declared = a.summation_depth || a.blocked_sums;
  p.declared = a;
  p.c_div = static_cast<double>(a.division_roundings);
  p.norm_first = a.normalise_first;

  if (out.unit > sums.unit) p.u_o = out.unit;
  if (out.unit > sums.unit || out.min_subnormal > sums.min_subnormal) p.lam_o = underflow_of(out, flushes, false);
  if (a.flushes_inputs) p.lam_in = format_of(a.input).min_normal;

  p.H_a = sums.largest;
  p.H_p = std::min(weights.largest, score.largest);
  p.H_o = out.largest;
  p.least_score = score.min_normal;
  p.least_weight = std::max(score.min_normal, sums.min_normal);
  return p;
}

}  // namespace attest
