// Arithmetic to profile: which roundings, how many, how large.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/bound/error_bound.h"
#include "core/bound/underflow.h"

namespace attest {
namespace {

using detail::underflow_of;

/// What the parts of a profile are derived from.
struct Declared {
  const Arithmetic& a;
  const ProfileInputs& inputs;
  const Format& score;
  const Format& sums;
  double u;  ///< unit roundoff of the score format
  bool flushes, truncates, pre_scale;
  bool power_of_two;  ///< the scale is one
};

/// q.k. A truncating sum errs by up to 2u, and by a whole subnormal (C22).
void set_products(const Declared& d, Profile& p) {
  p.u_s = d.truncates ? 2 * d.u : d.u;
  p.lam_s = underflow_of(d.score, d.flushes, d.truncates);
  p.bias_in_sum = d.inputs.bias && d.a.bias_in_sum && d.inputs.softcap == 0;
  p.n_s = d.inputs.dk + (p.bias_in_sum ? 1 : 0);
  p.score_precision = d.score.precision;
  p.score_least_bit = d.flushes || d.a.flushes_inputs ? d.score.min_normal : d.score.min_subnormal;
  if (d.a.prescaled_q) {
    const Format& kept = format_of(*d.a.prescaled_q);
    p.prescaled = true;
    p.prescaled_format = *d.a.prescaled_q;
    p.u_qpre = std::max(kept.unit, d.u);
    p.lam_q = std::max(underflow_of(kept, d.flushes, false), underflow_of(d.score, d.flushes, false));
    p.H_q = std::min(kept.largest, d.score.largest);
  }
}

/// What is written to memory in a format on the way to a score: only a coarser or narrower one loses anything.
void store(const Declared& d, const std::optional<DType>& stored, Profile& p, double& unit, double& lam) {
  unit = lam = 0;
  if (!stored) return;
  const Format& format = format_of(*stored);
  p.stored = true;
  p.stored_formats.push_back(*stored);
  p.H_s = std::min(p.H_s, format.largest);
  if (format.unit > d.u) unit = format.unit;
  if (format.min_subnormal > d.score.min_subnormal || format.unit > d.u) lam = underflow_of(format, d.flushes, false);
  p.u_range = std::max(p.u_range, unit);
}

/// The scaled product and the bias after it.
void set_scores(const Declared& d, Profile& p) {
  p.H_s = d.score.largest;
  p.u_range = p.u_s;
  double u_scaled = 0, u_biased = 0;
  store(d, d.a.stored_raw, p, p.u_raw, p.lam_raw);
  store(d, d.a.stored_scaled, p, u_scaled, p.lam_scale);
  store(d, d.a.stored_biased, p, u_biased, p.lam_bias);
  p.lam_scale += 2 * underflow_of(d.score, d.flushes, false);
  // Where there is a cap log2(e) comes after it.
  p.th_scale = join(pw(d.u, d.a.base2 && d.inputs.softcap == 0 ? 2 : 1), u_scaled);
  const bool adds = d.inputs.bias || d.inputs.slope != 0;
  p.th_bias = join(join(adds ? d.u : 0.0, u_biased), d.a.base2 ? d.u : 0.0);
}

/// Roundings of the bias by itself: conversion, multiplication by log2(e), and by tau where q carries the scale (C5).
void set_bias(const Declared& d, Profile& p) {
  if (!d.inputs.bias) return;
  const Arithmetic& a = d.a;
  if (a.mask_format) {
    const Format& kept = format_of(*a.mask_format);
    p.any_mask_format = true;
    p.mask_format = *a.mask_format;
    const Format& own = format_of(d.inputs.mask == DType::boolean ? DType::f32 : d.inputs.mask);
    if (kept.unit > own.unit) p.u_bc = kept.unit;
    if (kept.min_subnormal > own.min_subnormal) p.lam_bc = underflow_of(kept, d.flushes, false);
  }
  // A mask wider than the score format is rounded on its way in.
  if (d.inputs.mask != DType::boolean && format_of(d.inputs.mask).unit < d.u) p.u_bc = join(p.u_bc, d.u);
  if (a.base2) p.u_bc = join(p.u_bc, d.u);
  if (d.pre_scale && (p.prescaled || a.stored_scaled)) p.u_bc = join(p.u_bc, d.u);
  p.lam_bc += underflow_of(d.score, d.flushes, a.flushes_inputs) * (a.flushes_inputs ? 2 : 1);
}

/// The score of a sink (1.9): conversion, multiplication by log2(e), and what is written to memory beside the others'
/// scores. It is one more term of the sums over keys, and one more maximum that what is summed is rescaled to.
void set_sink(const Declared& d, Profile& p) {
  if (!d.inputs.sink) return;
  if (format_of(*d.inputs.sink).unit < d.u) p.u_sink = d.u;
  // By itself; or, where the exponents have a factor folded in, divided by the scale first.
  if (d.a.base2) p.u_sink = join(p.u_sink, pw(d.u, d.a.folded_exp2 ? 4 : 2));
  if (d.a.stored_biased) p.u_sink = join(p.u_sink, std::max(format_of(*d.a.stored_biased).unit, d.u));
  p.extra += 1;
  if (d.a.block > 0) p.rescalings += 1;
}

/// Constants: tau converted or computed as 1/sqrt(dk), then multiplied by log2(e); a scale that is itself the rounded
/// 1/sqrt(dk) differs from the kernel's own by 2^-52. A power of two is exact wherever it is not folded.
void set_constants(const Declared& d, Profile& p) {
  if (d.a.base2) {
    p.th_tau = join(pw(d.u, 4), 0x1p-52);
    p.th_l2e = pw(d.u, 2);
  } else if (!d.power_of_two) {
    p.th_tau = join(pw(d.u, 2), 0x1p-52);
  }
  // What scales q in a narrow format has the scale in that format too, or may. It is then the constant of q.k alone:
  // one for all keys, but for a bias that is scaled beside it by another.
  p.least_scale = d.score.min_normal;
  if (d.a.prescaled_q && (d.a.base2 || !d.power_of_two) && format_of(*d.a.prescaled_q).unit > d.u) {
    const Format& kept = format_of(*d.a.prescaled_q);
    double& error = d.inputs.bias && d.pre_scale ? p.u_qpre : p.th_tau;
    error = join(error, kept.unit);
    p.least_scale = std::max(p.least_scale, kept.min_normal);
  }
  p.th_of_scale = p.th_tau;
}

/// The cap (1.10): z = t/C by a division or a product with 1/C, or with scale/C in the place of the scale, its tanh,
/// and C times that. The scale's error is then that of an argument of tanh, not common to all keys; C's is.
void set_cap(const Declared& d, Profile& p) {
  const double cap = d.inputs.softcap;
  if (cap == 0) return;
  const double of_cap = round_to(d.a.score_sums, cap) == cap ? 0.0 : d.u;
  double u_stored = 0, lam_stored = 0;
  store(d, d.a.stored_capped, p, u_stored, lam_stored);
  p.th_argument = join(join(join(pw(d.u, 2), of_cap), p.th_of_scale), u_stored);
  const TanhError& stated = d.a.tanh;
  const bool unstated = stated.measure == TanhMeasure::unstated;
  const double relative = unstated                                  ? 4 * d.u
                          : stated.measure == TanhMeasure::ulp      ? 2 * stated.value * d.u
                          : stated.measure == TanhMeasure::relative ? stated.value
                                                                    : 0.0;
  p.lam_cap = underflow_of(d.score, d.flushes, false) * 2 + lam_stored;
  p.eps_tanh = join(relative, u_stored);
  p.abs_tanh = (unstated ? 4 * d.u : stated.measure == TanhMeasure::absolute ? stated.value : 0.0) + p.lam_cap;
  p.th_cap = join(pw(d.u, d.a.base2 ? 2 : 1), u_stored);
  p.th_tau = d.a.base2 ? pw(d.u, 3) : of_cap;
}

/// A slope (1.12): times a distance or an index, and times log2(e) or over what the sum is multiplied by; what is not
/// held by the score's format is rounded on its way in.
void set_slope(const Declared& d, Profile& p) {
  const double slope = d.inputs.slope, most = d.inputs.most_distance;
  if (slope == 0) return;
  p.slope_form = d.inputs.causal ? d.a.slopes : SlopeForm::distance;
  const bool divided = p.slope_form == SlopeForm::column_divided;
  const double conversions =
      (round_to(d.a.score_sums, slope) == slope ? 0 : 1) + (most <= std::ldexp(1.0, d.score.precision) ? 0 : 1);
  p.u_slope = pw(d.u, conversions + (divided ? 4 : 1) + (d.a.base2 ? (divided ? 1 : 2) : 0));
  const double tau = std::fabs(d.inputs.scale);
  const double lost = underflow_of(d.score, d.flushes, false) + (d.a.flushes_inputs ? d.score.min_normal : 0.0);
  p.lam_slope = 2 * lost * (1 + most) * (divided ? std::max({1.0, tau, d.inputs.softcap}) : 1.0);
  // Of two sums one is of the other's result: of any two of the product, the mask's entry and this.
  if (d.inputs.bias) p.u_both = d.u;
  if (divided) p.th_divided = d.inputs.softcap > 0 ? p.th_cap : p.th_scale;
  if (p.slope_form != SlopeForm::distance) p.u_shift = pw(d.u, conversions + (d.a.base2 ? 4 : 2));
}

/// `ulps` times the least number of a format: of f64, of which no double is a part, of so many ulps as are whole.
double least_numbers(double ulps, const Format& format) {
  return (format.min_subnormal * 0.5 > 0 ? ulps : std::ceil(ulps)) * format.min_subnormal;
}

/// The exponent, its reference point, exp, and the factors by which partial results are rescaled and merged.
void set_exponentials(const Declared& d, Profile& p) {
  const Arithmetic& a = d.a;
  p.u_e = d.u;
  p.c_e = a.base2 ? 3 : 1;
  p.lam_exponent = p.c_e * (a.flushes_inputs ? 3 : 1) * underflow_of(d.score, d.flushes, false);
  p.c_m = a.folded_exp2 ? (a.split_merge ? 2 : 1) : 0;  // C7
  p.lazy = a.max == MaxPolicy::lazy ? a.lazy_nats : 0;
  p.fixed_shift = a.max == MaxPolicy::none || a.max == MaxPolicy::unstated;
  p.takes_no_maximum = a.max == MaxPolicy::none;
  p.eps_exp = a.exp_ulp > 0 ? 2 * a.exp_ulp * d.u : 4 * d.u;
  p.exp_vanishes = a.exp_ulp > 0;
  p.lam_e = d.flushes || a.exp_ulp <= 0 ? d.score.min_normal : least_numbers(std::max(0.5, a.exp_ulp), d.score);  // C47
  p.rescalings = (a.block > 0 ? std::ceil(static_cast<double>(d.inputs.keys) / static_cast<double>(a.block)) : 0.0) +
                 (a.split_merge ? 2 : 0);
  p.lse_merge = a.split_merge;
  p.u_lse = d.u;
  p.eps_log = std::max(4 * d.u, p.eps_exp);
}

/// The weights' own rounding, and the sums over keys. A weight enters a coarser accumulator through one more rounding,
/// absolute below its least number.
void set_sums(const Declared& d, Profile& p) {
  const Arithmetic& a = d.a;
  const Format& weights = format_of(a.weights);
  if (weights.unit > d.u) p.u_p = weights.unit;
  if (weights.unit > d.u || weights.min_subnormal > d.score.min_subnormal)
    p.lam_p = underflow_of(weights, d.flushes, false);
  p.p_in_denom = a.weights_in_denominator && (p.u_p > 0 || p.lam_p > 0);

  p.u_a = d.truncates ? 2 * d.sums.unit : d.sums.unit;
  p.lam_a = underflow_of(d.sums, d.flushes, d.truncates);
  p.nearest = !d.truncates;
  if (d.sums.unit > d.u) p.extra = 1;
  if (d.sums.min_subnormal > d.score.min_subnormal) p.lam_e += underflow_of(d.sums, d.flushes, false);
  p.depth_declared = a.summation_depth || a.blocked_sums;
  p.c_div = static_cast<double>(a.division_roundings);
  p.norm_first = a.normalise_first;
  if (p.norm_first) p.lam_p += (1 + p.u_p) * p.lam_a;  // C46
  p.H_a = d.sums.largest;
  p.H_p = std::min(weights.largest, d.score.largest);
}

/// Dropout (1.11). 1/(1 - p) of a p that is rounded where its format does not hold it: what that makes of 1 - p grows
/// with p/(1 - p); then the difference, the quotient, and the product with whatever is multiplied.
void set_dropout(const Declared& d, Profile& p) {
  const double dropped = d.inputs.dropout_p;
  if (dropped == 0) return;
  p.gain = (1 + 0x1p-50) / (1 - dropped);
  const Arithmetic& a = d.a;
  const bool coarser = d.sums.unit > d.u;
  const double u = std::max(d.u, d.sums.unit);
  const DType format = coarser ? a.accumulate : a.score_sums;
  const double of_p = round_to(format, dropped) == dropped ? 0.0 : u * dropped * p.gain;
  // Beyond every domain: the kernel may divide by 0.
  if (!(of_p <= 0.5)) {
    p.H_drop = -1;
    return;
  }
  const double of_gain = join(pw(u, 2), of_p / (1 - of_p));
  const double of_product = join(of_gain, u);
  if (a.dropout == DropoutPlace::values) {
    const DType own = d.inputs.v.value_or(a.input);
    const Format& values = format_of(own);
    p.u_drop = join(of_gain, std::max(values.unit, u));
    p.lam_drop = underflow_of(values, d.flushes, d.truncates) + underflow_of(d.score, d.flushes, d.truncates);
    p.H_drop = values.largest;
    return;
  }
  if (a.dropout != DropoutPlace::output) {
    p.u_drop = of_product;
    p.lam_p += underflow_of(d.score, d.flushes, d.truncates);
  }
  if (a.dropout != DropoutPlace::weights) p.u_gained = of_product;
}

/// By which of its factors' parts an intermediate result may be larger than the product with all of them, or a constant
/// smaller than that with none: in any order they are at most this.
double shrinking(const DescaleInputs::Of& of) {
  return std::max(1.0, 1 / of.least);
}
double growing(const DescaleInputs::Of& of) {
  return std::max(1.0, of.most);
}

/// Factors of q, k and v where they multiply results (1.13): a rounding each, one more where the format does not hold
/// them. What underflows before is multiplied by them, and what is large before they make it small must be a number.
void multiply_results(const Declared& d, Profile& p) {
  const DescaleInputs& f = d.inputs.descale;
  const double own = d.score.precision >= format_of(DType::f32).precision ? 1 : 2;
  const double grown = growing(f.q) * growing(f.k), shrunk = shrinking(f.q) * shrinking(f.k);
  const double lam = underflow_of(d.score, d.flushes, d.truncates) + underflow_of(d.score, d.flushes, false);
  const double tau = std::fabs(d.inputs.scale), wide = std::max({1.0, tau, d.inputs.softcap});
  const double count = (f.q.there ? 1 : 0) + (f.k.there ? 1 : 0);
  if (count > 0) {
    p.u_factors = pw(d.u, own * count);
    p.lam_scale += (count + 2) * lam * wide * grown;
    p.lam_s *= grown, p.lam_raw *= grown, p.lam_q *= grown;
    p.H_s /= shrunk, p.H_q /= shrunk;
    p.least_scale *= shrunk;
    if (!(wide * grown <= d.score.largest / 4)) p.H_s = -1;
    if (p.slope_form == SlopeForm::column_divided && d.inputs.slope != 0) {
      p.u_slope = join(p.u_slope, p.u_factors), p.th_divided = join(p.th_divided, p.u_factors);
      p.lam_slope *= grown * shrunk;
    }
  }
  if (f.v.there) {
    const double u = std::max(d.u, d.sums.unit);
    p.u_drop = join(p.u_drop, pw(u, 2)), p.u_gained = join(p.u_gained, pw(u, 2));
    // Weights that a small factor has multiplied are stored as they are then, and lose as much more of themselves.
    p.lam_p = (p.lam_p + lam) * shrinking(f.v);
    p.lam_a *= growing(f.v);
    p.lam_o += 2 * underflow_of(d.sums, d.flushes, d.truncates);
    p.H_a /= shrinking(f.v), p.H_p /= growing(f.v);
  }
  // Those that a format does not hold as normal numbers.
  for (const DescaleInputs::Of& of : {f.q, f.k, f.v})
    for (const Format* const format : {&d.score, &d.sums})
      if (of.least < format->min_normal || of.most > format->largest) p.H_s = -1;
}

/// Factors where each multiplies its own tensor, which is rounded once more, to another format than that of the sums
/// or not.
void multiply_inputs(const Declared& d, Profile& p) {
  const DescaleInputs& f = d.inputs.descale;
  double u = d.u, lam = 0, most = std::min(d.score.largest, d.sums.largest) / 2;
  if (d.a.descale != DescalePlace::sums) {
    // Nobody multiplies numbers of 8 bits into others: into those of 16.
    const bool narrow = size_of(d.a.input) == 1;
    for (const DType dtype : {narrow ? DType::bf16 : d.a.input, narrow ? DType::f16 : d.a.input}) {
      const Format& kept = format_of(dtype);
      u = std::max(u, kept.unit), lam = std::max(lam, underflow_of(kept, d.flushes, false));
      most = std::min(most, kept.largest / 2);
    }
    u = join(u, d.u);
  }
  // The factor itself, where the score's format does not hold it.
  if (d.score.precision < format_of(DType::f32).precision) u = join(u, d.u);
  lam += underflow_of(d.score, d.flushes, false);
  const double count = (f.q.there ? 1 : 0) + (f.k.there ? 1 : 0);
  if (count > 0) {
    p.u_qpre = join(p.u_qpre, pw(u, count));
    p.lam_in += lam;
  }
  if (f.v.there) {
    p.u_drop = join(p.u_drop, join(u, std::max(d.u, d.sums.unit)));
    p.lam_drop += lam + underflow_of(d.sums, d.flushes, false);
    p.H_drop = std::min(p.H_drop, most);
  }
  if ((f.q.there && !(f.largest_q <= most)) || (f.k.there && !(f.largest_k <= most))) p.H_s = -1;
  for (const DescaleInputs::Of& of : {f.q, f.k, f.v})
    if (of.least < d.score.min_normal || of.most > d.score.largest) p.H_s = -1;
}

void set_descale(const Declared& d, Profile& p) {
  const DescaleInputs& f = d.inputs.descale;
  if (!f.any()) return;
  // A subnormal number that is read as 0 is one of the tensor, before its factor.
  p.lam_in *= std::max({growing(f.q), growing(f.k), growing(f.v)});
  if (d.a.descale == DescalePlace::products || d.a.descale == DescalePlace::unstated) multiply_results(d, p);
  if (d.a.descale != DescalePlace::products) multiply_inputs(d, p);
}

/// What is read and what is returned.
void set_ends(const Declared& d, Profile& p) {
  const Format& out = format_of(d.a.output);
  if (out.unit > d.sums.unit) p.u_o = out.unit;
  if (out.unit > d.sums.unit || out.min_subnormal > d.sums.min_subnormal) p.lam_o = underflow_of(out, d.flushes, false);
  if (d.a.flushes_inputs) {
    for (const DType input : {d.a.input, d.inputs.k.value_or(d.a.input), d.inputs.v.value_or(d.a.input)})
      p.lam_in = std::max(p.lam_in, format_of(input).min_normal);
  }
  p.H_o = out.largest;
}

}  // namespace

// Rows ask for the same few powers again and again.
double pw(double u, double count) {
  struct Known {
    double u = std::numeric_limits<double>::quiet_NaN(), count = 0, power = 0;
  };
  thread_local std::array<Known, 512> known;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u) ^ (std::bit_cast<std::uint64_t>(count) >> 3U);
  Known& one = known[(bits * 0x9e3779b97f4a7c15U) >> 55U];
  if (one.u != u || one.count != count) one = {u, count, std::expm1(count * std::log1p(u)) * (1.0 + 0x1p-50)};
  return one.power;
}

Profile profile_of(const Arithmetic& a, const ProfileInputs& inputs) {
  const Format& score = format_of(a.score_sums);
  const Format& sums = format_of(a.accumulate);
  int exponent = 0;
  const Declared d{.a = a,
                   .inputs = inputs,
                   .score = score,
                   .sums = sums,
                   .u = score.unit,
                   .flushes = a.flushes_subnormals,
                   .truncates = a.rounding == Rounding::toward_zero,
                   .pre_scale = inputs.convention == MaskConvention::pre_scale,
                   .power_of_two = std::frexp(inputs.scale, &exponent) == 0.5};
  Profile p;
  p.of = inputs;
  p.declared = a;
  p.u_score = score.unit;
  p.score_format = a.score_sums;
  p.base2 = a.base2;
  p.folded = a.folded_exp2;
  p.vanishing_exponent = std::min(score.min_normal, sums.min_normal) < 0x1p-200 ? -1490 : -745;
  p.least_weight = std::max(score.min_normal, sums.min_normal);
  set_products(d, p);
  set_scores(d, p);
  set_bias(d, p);
  set_constants(d, p);  // after the products: it may widen u_qpre
  set_cap(d, p);        // after the constants: it has others
  set_slope(d, p);      // after the cap
  set_exponentials(d, p);
  set_sums(d, p);
  set_dropout(d, p);
  set_ends(d, p);
  set_descale(d, p);  // of what they multiply all else is known
  set_sink(d, p);
  return p;
}

}  // namespace attest
