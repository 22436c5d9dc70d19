// The corrections of error-bounds.md 1.7 that a correct kernel confirms (C): for each an input on which a kernel of the
// declared arithmetic is held, and would be called wrong without the correction.
#include "core/test/bound/correction_tests.h"

namespace attest::fleet {
namespace {

const double nan_value = std::numeric_limits<double>::quiet_NaN();

Arithmetic all_in(DType dtype) {
  Arithmetic a = plain(dtype);
  a.score_sums = a.accumulate = a.weights = dtype;
  return a;
}

TEST(BoundCorrections, C1_DistancesFromTheAnswerSurviveItsRounding) {
  // A score of 4143.875 stored as 4128 in bf16: the other weight grows from e^-47.9 to e^-32. The leading value is
  // as near to the answer as e^-47.9, 0 in double, and this alone knows of the uncertainty of 16.
  Arithmetic a = plain(DType::f64);
  a.stored_biased = DType::bf16;
  const Case c = row_of(DType::f64, {1}, {{4143.875}, {4096}}, {1, 0});
  const std::vector<bool> exact{false, true};
  expect_as_written(c, a, exact);
  expect_needed(c, output_of(c, a), a, written_bound(c, profile_for(c, a), Without::separate_radius, exact));
}

TEST(BoundCorrections, C2_TheBoundIsANumberWhereNormalisersUnderflow) {
  const auto check = [](const Case& c, const Arithmetic& a) {
    EXPECT_FALSE(std::isfinite(written_bound(c, profile_for(c, a), Without::logarithms)));
    EXPECT_LT(attention_bounds(c, a).elements.at(0).allowed, 1e-3);
    expect_as_written(c, a);
    EXPECT_EQ(judged(c, output_of(c, a), a).outcome, Outcome::held);
    EXPECT_EQ(judged(c, 4.01, a).outcome, Outcome::violated);
  };
  // Every key masked by a huge float; and scores of which cancelling products leave nothing known.
  check(row_of(DType::f32, {1}, {{0}, {0.5}}, {4, 4}, {-1e38, -1e38}), plain(DType::f32));
  check(row_of(DType::f32, {1e10, 1e10}, {{1, -1}, {-1, 1}}, {4, 4}), plain(DType::f32));
}

TEST(BoundCorrections, C3_AWeightOfALaggingMaximumLosesMoreWhenItsRescalingUnderflows) {
  // Weight e^7.875 against the first maximum; the next one rescales it by e^-17.5, which is 0 in f16.
  Arithmetic a = all_in(DType::f16);
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 8;
  a.block = 1;
  const Case c = row_of(DType::f16, {1}, {{0}, {7.875}, {17.5}}, {0, 1, 0});
  EXPECT_EQ(output_of(c, a), 0);
  expect_needed(c, output_of(c, a), a, written_bound(c, profile_for(c, a), Without::lazy_underflow));
}

TEST(BoundCorrections, C4_AScaledQueryUnderflowsInItsOwnFormat) {
  Arithmetic a = plain(DType::f16);
  a.prescaled_q = DType::f16;
  Case c = row_of(DType::f16, Numbers(64, 0x1p-20), {Numbers(64, 60000), Numbers(64, -60000)}, {1, -1});
  c.scale = 0x1p-5;  // q*scale = 2^-25 is 0 in f16
  expect_as_written(c, a);
  expect_needed(c, output_of(c, a), a, written_bound(c, profile_for(c, a), Without::prescaled_underflow));
}

TEST(BoundCorrections, C4_AProductWithAScaledQueryIsNotMultipliedByTheScale) {
  Arithmetic a = all_in(DType::f16);
  a.prescaled_q = DType::f16;
  a.flushes_subnormals = true;
  // Each product is 1.99 * 2^-15 and flushed; had the scale come later, it would have been 1/16 of the loss.
  const double key = 1.99 * 0x1p-8;
  Case c = row_of(DType::f16, Numbers(256, 0.125), {Numbers(256, key), Numbers(256, -key)}, {1, -1});
  c.scale = 0x1p-4;
  EXPECT_EQ(output_of(c, a), 0);
  expect_as_written(c, a);
  Profile flushed = profile_for(c, a);
  flushed.lam_q = 0;
  expect_needed(c, output_of(c, a), a, written_bound(c, flushed, Without::prescaled_underflow));
}

TEST(BoundCorrections, C5_AConvertedMaskErrsRelativeToItself) {
  // 32.125 is 32 in bf16; the scores are 0.
  Arithmetic a = plain(DType::f32);
  a.mask_format = DType::bf16;
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    Case c = row_of(DType::f32, {1}, {{-32.125}, {0}}, {1, -1}, {32.125, 0});
    c.mask_convention = convention;
    Profile p = profile_for(c, a);
    p.u_bc = 0;
    expect_needed(c, output_of(c, a), a, written_bound(c, p));
  }
}

/// Scores in base 2, scale, score and bias each multiplied by log2(e) on their own.
double base_2(const Case& c) {
  const Soft f32(DType::f32, false, false);
  const double scale = f32.round(c.scale), log2_e = f32.round(0x1.71547652b82fep0);
  Numbers s;
  for (std::int64_t j = 0; j < c.k().shape()[2]; ++j)
    s.push_back(f32.add(f32.mul(f32.mul(f32.mul(c.q()[0], c.k()[j]), scale), log2_e), f32.mul(c.mask()[j], log2_e)));
  const double m = *std::max_element(s.begin(), s.end());
  double sum = 0, out = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    const double w = f32.round(std::exp2(f32.sub(s[j], m)));
    sum = f32.add(sum, w), out = f32.add(out, f32.mul(w, c.v()[static_cast<std::int64_t>(j)]));
  }
  return f32.div(out, sum);
}

TEST(BoundCorrections, C5_ABiasTimesLog2eErrsRelativeToItself) {
  // The products are exact, and cancel the bias (found by a search).
  Arithmetic a = plain(DType::f32);
  a.base2 = true;
  Case c = row_of(DType::f32, {1}, {{-0x1.6e6a3ep+13}, {-0x1.6e6844p+13}}, {1, -1}, {0x1.647cb2p+14, 0x1.647e2ep+14});
  c.scale = 0x1.f227fe0dcc2cp+0;
  const std::vector<bool> no_score_exact{false, false};
  expect_as_written(c, a, no_score_exact);
  Profile p = profile_for(c, a);
  p.u_bc = 0;
  expect_needed(c, base_2(c), a, written_bound(c, p, Without::nothing, no_score_exact));
}

TEST(BoundCorrections, C5_AMaskWiderThanTheScoresIsRoundedOnItsWayIn) {
  Arithmetic a = plain(DType::f32);
  const double mask = 8192 + 0x1p-11;  // half a last place of f32 beyond one of its numbers
  const Case c = row_of(DType::f32, {1}, {{-8192}, {0}}, {1, -1}, {mask, 0}, DType::f64);
  const Soft f32(DType::f32, false, false);
  const double weight = f32.round(std::exp(f32.sub(f32.add(-8192, f32.round(mask)), 0)));
  const double found = f32.div(f32.sub(weight, 1), f32.add(weight, 1));
  Profile p = profile_for(c, a);
  p.u_bc = 0;
  p.th_scale = 0;  // the scale is 1, and products by it exact
  expect_needed(c, found, a, written_bound(c, p, Without::nothing, {false, true}));
}

TEST(BoundCorrections, C5_AConvertedMaskUnderflows) {
  // 2^-26 is 0 in f16; sums in f64 show it.
  Arithmetic a = plain(DType::f64);
  a.mask_format = DType::f16;
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    Case c = row_of(DType::f64, {1}, {{0}, {0}}, {1, -1}, {0x1p-26, -0x1p-26}, DType::f64);
    c.mask_convention = convention;
    EXPECT_EQ(output_of(c, a), 0);
    Profile p = profile_for(c, a);
    p.u_bc = p.lam_bc = 0;
    expect_needed(c, 0, a, written_bound(c, p));
  }
}

TEST(BoundCorrections, C5_TermsOfABiasThatIsRoundedByItself) {
  // Times the scale where the query carries it, and below the least normal number: both too small beside the roundings
  // of the other terms for a kernel to show them.
  Arithmetic a = plain(DType::f16);
  a.score_sums = DType::f16;
  Case c = row_of(DType::f16, {1}, {{1}}, {1}, {1}, DType::f16);
  EXPECT_EQ(profile_for(c, a).lam_bc, 0x1p-25);
  EXPECT_EQ(profile_for(c, a).u_bc, 0);
  c.mask_convention = MaskConvention::pre_scale;
  EXPECT_EQ(profile_for(c, a).u_bc, 0);
  a.prescaled_q = DType::f16;
  EXPECT_EQ(profile_for(c, a).u_bc, 0x1p-11);
}

TEST(BoundCorrections, C5_AMaskThatOverflowsItsFormatHidesTheKey) {
  Arithmetic a = plain(DType::f32);
  a.mask_format = DType::f16;
  const Case c = row_of(DType::f32, {1}, {{70000}, {0}}, {1, -1}, {-70000, 0});
  EXPECT_EQ(output_of(c, a), -1) << "the mask is -inf to this kernel";
  EXPECT_EQ(judged(c, -1, a).outcome, Outcome::held);
  // As a finite bias it would leave both scores at 0, and the answer there too.
  EXPECT_EQ(judged(c, 0, a).outcome, Outcome::violated);
  a.mask_format = std::nullopt;
  EXPECT_GT(error_of(c, -1, a), 0.99);
  EXPECT_LT(attention_bounds(c, a).elements.at(0).allowed, 0.99);
}

TEST(BoundCorrections, C6_AStoredProductErrsRelativeToItself) {
  // The product is stored before a bias cancels it.
  Arithmetic a = plain(DType::f32);
  a.stored_raw = DType::bf16;
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    Case c = row_of(DType::f32, {1}, {{32.125}, {0}}, {1, -1}, {-32.125, 0});
    c.mask_convention = convention;
    Profile p = profile_for(c, a);
    p.u_raw = 0;
    expect_needed(c, output_of(c, a), a, written_bound(c, p));
  }
}

TEST(BoundCorrections, C6_AStoredProductUnderflowsBeforeTheScale) {
  Arithmetic a = plain(DType::f32);
  a.stored_raw = DType::f16;
  Case c = row_of(DType::f32, {0x1p-12}, {{0x1p-13}, {-0x1p-13}}, {1, -1});
  c.scale = 0x1p20;
  EXPECT_EQ(output_of(c, a), 0);
  Profile p = profile_for(c, a);
  p.lam_raw = 0;
  expect_needed(c, output_of(c, a), a, written_bound(c, p));
}

TEST(BoundCorrections, C6_AStoredScoreUnderflows) {
  // Scaled scores of 2^-26 are 0 in f16, and so are biased ones; the sums are fine enough to show it.
  const Case c = row_of(DType::f64, {0x1p-13}, {{0x1p-13}, {-0x1p-13}}, {1, -1});
  Arithmetic scaled = plain(DType::f64), biased = scaled;
  scaled.stored_scaled = DType::f16;
  biased.stored_biased = DType::f16;
  Profile p = profile_for(c, scaled);
  p.lam_scale = 2 * p.lam_s;
  EXPECT_EQ(output_of(c, scaled), 0);
  expect_needed(c, 0, scaled, written_bound(c, p));
  p = profile_for(c, biased);
  p.lam_bias = 0;
  EXPECT_EQ(output_of(c, biased), 0);
  expect_needed(c, 0, biased, written_bound(c, p));
}

TEST(BoundCorrections, C6_AScoreStoredBeforeAPreScaleBiasErrsRelativeToItself) {
  // scale*q.k is stored, then scale*b added. A kernel that adds the bias first owes nothing of the kind.
  Arithmetic a = plain(DType::f32);
  a.stored_scaled = DType::bf16;
  Case c = row_of(DType::f32, {1}, {{32.125}, {0}}, {1, -1}, {-32.125, 0});
  c.mask_convention = MaskConvention::pre_scale;
  const double weight = std::exp(round_to(DType::bf16, 32.125) - 32.125);
  const double found = (weight - 1) / (weight + 1);
  expect_needed(c, round_to(DType::f32, found), a, written_bound(c, profile_for(c, a)));
  expect_as_written(c, plain(DType::f32), {false, false});
}

/// The mean of the values that two passes in f32 make of a row's scores.
double weighed(const Case& c, const Numbers& s) {
  const Soft f32(DType::f32, false, false);
  const double m = *std::max_element(s.begin(), s.end());
  double sum = 0, out = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    const double w = f32.round(std::exp(f32.sub(s[j], m)));
    sum = f32.add(sum, w), out = f32.fma(w, c.v()[static_cast<std::int64_t>(j)], out);
  }
  return f32.div(out, sum);
}

/// Scores are summed up from the bias on, f32 throughout; the weights are those of a plain kernel.
double bias_first(const Case& c) {
  const Soft f32(DType::f32, false, false);
  const std::int64_t n = c.k().shape()[2], dk = c.k().shape()[3];
  Numbers s;
  for (std::int64_t j = 0; j < n; ++j) {
    double x = c.mask()[j];
    for (std::int64_t e = 0; e < dk; ++e) x = f32.fma(c.q()[e], c.k()[j * dk + e], x);
    s.push_back(x);
  }
  return weighed(c, s);
}

TEST(BoundCorrections, C6_ABiasInTheSumSwallowsProducts) {
  // 256 products of 0.99 * 2^-10 are each lost beside 2^14.
  Arithmetic a = plain(DType::f32);
  a.bias_in_sum = true;
  const Case c = row_of(DType::f32, Numbers(256, 0x1p-5), {Numbers(256, 0.99 * 0x1p-5), Numbers(256, 0)}, {1, -1},
                        {0x1p14, 0x1p14});
  EXPECT_EQ(bias_first(c), 0);
  EXPECT_EQ(profile_for(c, a).n_s, 257) << "the bias is one more term";
  expect_as_written(c, a);
  Profile p = profile_for(c, a);
  p.bias_in_sum = false;
  p.n_s = 256;
  expect_needed(c, bias_first(c), a, written_bound(c, p));
}

/// Sums that begin at b times the reciprocal of the scale, all of it times the scale after that; f32 throughout.
double bias_over_scale_first(const Case& c) {
  const Soft f32(DType::f32, false, false);
  const std::int64_t n = c.k().shape()[2], dk = c.k().shape()[3];
  const double scale = f32.round(c.scale), inverse = f32.div(1, scale);
  Numbers s;
  for (std::int64_t j = 0; j < n; ++j) {
    double x = f32.mul(c.mask()[j], inverse);
    for (std::int64_t e = 0; e < dk; ++e) x = f32.fma(c.q()[e], c.k()[j * dk + e], x);
    s.push_back(f32.mul(scale, x));
  }
  return weighed(c, s);
}

TEST(BoundCorrections, C30_ABiasOverTheScaleIsNotExactInTheSum) {
  // Whole products and a bias of 1: exact in any order where the sum begins at 1, and it begins at 1/1.4001555.
  Arithmetic a = plain(DType::f32);
  a.bias_in_sum = true;
  Case c = row_of(DType::f32, {32, -32}, {{44, 44}, {44, 44.015625}}, {1, -1}, {0, 1});
  c.scale = 0x1.6670980000000p+0;  // 1.4001555 in f32
  const double found = bias_over_scale_first(c);
  expect_as_written(c, a);
  Arithmetic behind = a;
  behind.bias_in_sum = false;
  EXPECT_GT(error_of(c, found, a), 20 * attention_bounds(c, behind).elements.at(0).allowed) << "the rule that took b";
  EXPECT_EQ(judged(c, found, a).outcome, Outcome::held) << judged(c, found, a).reason;
  // Exact still: a scale of 2, which 1/2 undoes, and q that carries the scale.
  c.scale = 2;
  EXPECT_LT(attention_bounds(c, a).elements.at(0).allowed, 1e-6);
  c.scale = 0x1p-20;  // the sum would begin at 2^20, beside products that are multiples of 1/2 up to 2^12
  EXPECT_LT(attention_bounds(c, a).elements.at(0).allowed, 1e-6);
  c.scale = 0x1p-24;  // and at 2^24 beside 1/2: 25 bits
  EXPECT_GT(attention_bounds(c, a).elements.at(0).allowed, 0x1p-26);
}

TEST(BoundCorrections, C30_ABiasOverTheScaleErrsAsTheScaleDoes) {
  Arithmetic a = plain(DType::f32);
  a.bias_in_sum = true;
  Case c = row_of(DType::f32, {0.3F}, {{0.7F}, {-0.2F}}, {1, -1}, {1000.7F, 1001.3F});
  c.scale = 0x1.6670980000000p-2;
  expect_as_written(c, a);
  EXPECT_EQ(judged(c, bias_over_scale_first(c), a).outcome, Outcome::held);
  a.base2 = true;
  expect_as_written(c, a);
  c.mask_convention = MaskConvention::pre_scale;
  expect_as_written(c, a);
}

TEST(BoundCorrections, C32_AWeightBelowEveryDoubleThatIsNormalIsLostAsAWhole) {
  // e^-708 and e^-744: numbers of f64, and 0 in bf16. What is computed in double of such a weight is 0 itself.
  for (const double score : {-699.0, -701.0, -708.0, -730.0, -744.0}) {
    Arithmetic a = plain(DType::f64);
    a.weights = DType::bf16;
    for (const bool in_denominator : {false, true}) {
      a.weights_in_denominator = in_denominator;
      const Case c = row_of(DType::f64, {1}, {{score}, {0}}, {1, 0});
      EXPECT_EQ(judged(c, 0.0, a).outcome, Outcome::held) << score << ": " << judged(c, 0.0, a).reason;
      const double allowed = attention_bounds(c, a).elements.at(0).allowed;
      EXPECT_GE(allowed, std::exp(score)) << score;
      EXPECT_LE(allowed, std::max(0x1p-1007, 4 * std::exp(score))) << score;
    }
    // A weight that is stored as it is has no such excuse.
    EXPECT_EQ(judged(row_of(DType::f64, {1}, {{-600.0}, {0}}, {1, 0}), 0.0, plain(DType::f64)).outcome,
              Outcome::violated);
  }
}

TEST(BoundCorrections, C33_AKeyVanishesBesideTheLeastThatTheSumMayBe) {
  // Neighbours in bf16, which the scale makes equal, though their scores are 2896 apart: either of them may be off by
  // 2059. Beside a sum of e^-2059 a weight of e^(-2896 + 2059) is all there is.
  const Arithmetic narrow = all_in(DType::bf16);
  Case c = row_of(DType::bf16, {182 * 0x1p12, 183 * 0x1p12}, {{1, 0}, {0, 1}}, {1, 0});
  c.scale = std::sqrt(0.5);
  EXPECT_EQ(output_of(c, narrow), 0.5);
  expect_as_written(c, narrow);
  EXPECT_EQ(judged(c, 0.5, narrow).outcome, Outcome::excused);

  // Of f32 it takes scores beyond 10^10.
  const Arithmetic single = plain(DType::f32);
  for (const double last : {12000001.0, 12000005.0, 12000009.0}) {
    Case wide = row_of(DType::f32, {last * 0x1p12, (last + 1) * 0x1p12}, {{1, 0}, {0, 1}}, {1, 0});
    wide.scale = std::sqrt(0.5);
    EXPECT_NE(judged(wide, output_of(wide, single), single).outcome, Outcome::violated) << last;
  }
}

TEST(BoundCorrections, C7_AMergeRoundsTheFoldedMaximumOnceMore) {
  // That rounding hides behind the one of the scaled product, which a folding kernel is allowed and does not make: what
  // is shown are the terms.
  Arithmetic a = plain(DType::f32);
  a.block = 16;
  a.base2 = a.folded_exp2 = true;
  Case c = row_of(DType::f32, {1.5}, {{-1.5}, {0.7}}, {1, -1});
  EXPECT_EQ(profile_for(c, a).c_m, 1);
  EXPECT_EQ(profile_for(c, a).rescalings, 1);
  a.split_merge = true;
  EXPECT_EQ(profile_for(c, a).c_m, 2);
  EXPECT_EQ(profile_for(c, a).rescalings, 3);
  // Errors of log2(e) count over the whole exponent, which a part's own maximum no longer shortens.
  Profile p = profile_for(c, a);
  p.th_l2e = 1e-2;
  expect_term(c, p, Without::centred_merge);
}

/// Kernels in f16 that fold the maximum into exp2. Of its multiples by log2(e) only a quarter at most is rounded off.
Arithmetic folded_f16() {
  Arithmetic a = all_in(DType::f16);
  a.base2 = a.folded_exp2 = true;
  a.output = DType::f32;
  return a;
}

TEST(BoundCorrections, C8_AFoldedMaximumMayPushValuesOverTheRange) {
  // D3 as first written: (1 + gamma) sum |v| <= H_a, without the largest weight's residual.
  EXPECT_LE((1 + pw(0x1p-11, 6)) * 60000, 65504);
  int overflowed = 0;
  for (double score = 600; score < 700; score += 0.5) {
    const Case c = row_of(DType::f16, {1}, {{score}}, {60000});
    const double found = output_of(c, folded_f16());
    overflowed += !std::isfinite(found);
    EXPECT_EQ(judged(c, found, folded_f16()).outcome, Outcome::excused) << score;
  }
  EXPECT_GT(overflowed, 0) << "no kernel needs the residual";
  const Case low = row_of(DType::f16, {1}, {{0.5}}, {60000});
  EXPECT_EQ(judged(low, output_of(low, folded_f16()), folded_f16()).outcome, Outcome::held);
}

TEST(BoundCorrections, C8_AFoldedLaggingMaximumMayPushTheSumOverTheRange) {
  Arithmetic a = folded_f16();
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 8.51;
  a.block = 1;
  EXPECT_LE(13 * std::exp(8.51), 65504) << "D5 as first written";
  int overflowed = 0;
  for (double score = 600; score < 700; score += 0.5) {
    std::vector<Numbers> keys(13, Numbers{score + 8.5});
    keys[0] = {score};
    const Case c = row_of(DType::f16, {1}, keys, Numbers(13, 0.001));
    const double found = output_of(c, a);
    // An infinite sum makes every mean 0.
    overflowed += !std::isfinite(found) || found == 0;
    EXPECT_EQ(judged(c, found, a).outcome, Outcome::excused) << score;
  }
  EXPECT_GT(overflowed, 0) << "no kernel needs the residual";
}

TEST(BoundCorrections, C9_AKernelWithoutAMaximumIsBoundByItsValuesToo) {
  Arithmetic a = plain(DType::f32);
  a.max = MaxPolicy::none;
  // e^80 * 1e5 overflows, e^80 does not: D6 as first written asks for max s + ln n <= ln H_a only.
  const Case values = row_of(DType::f32, {1}, {{80}}, {1e5});
  EXPECT_FALSE(std::isfinite(output_of(values, a)));
  EXPECT_EQ(judged(values, output_of(values, a), a).outcome, Outcome::excused);
  EXPECT_EQ(judged(values, nan_value, plain(DType::f32)).outcome, Outcome::violated) << "who takes it has no excuse";
  // With a reciprocal the sum must not exceed 1 / the least normal: its inverse is flushed.
  Structure reciprocal;
  reciprocal.reciprocal = true;
  Arithmetic flushing = a;
  flushing.flushes_subnormals = true;
  const Case inverse = row_of(DType::f32, {1}, {{88}}, {1});
  EXPECT_EQ(judged(inverse, output_of(inverse, flushing), flushing).outcome, Outcome::held);
  flushing.division_roundings = 2;
  EXPECT_EQ(output_of(inverse, flushing, reciprocal), 0);
  EXPECT_EQ(judged(inverse, 0, flushing).outcome, Outcome::excused);
  // Too low is out of its reach as well; in between a finite answer is required.
  const Case low = row_of(DType::f32, {1}, {{-100}}, {1});
  EXPECT_EQ(judged(low, output_of(low, a), a).outcome, Outcome::excused);
  const Case middle = row_of(DType::f32, {1}, {{60}}, {1e5});
  EXPECT_EQ(judged(middle, output_of(middle, a), a).outcome, Outcome::held);
  EXPECT_EQ(judged(middle, nan_value, a).outcome, Outcome::violated);
  // One that does not say what it does must give an answer, as one that takes the maximum.
  a.max = MaxPolicy::unstated;
  EXPECT_EQ(judged(values, nan_value, a).outcome, Outcome::violated);
}

TEST(BoundCorrections, C10_AScaledQueryMayOverflowWhereNoScoreDoes) {
  Arithmetic a = plain(DType::f16);
  a.prescaled_q = DType::f16;
  Case c = row_of(DType::f16, {60000}, {{0x1p-14}, {0}}, {1, -1});
  c.scale = 2;
  EXPECT_FALSE(std::isfinite(output_of(c, a)));
  EXPECT_EQ(judged(c, nan_value, a).outcome, Outcome::excused);
  a.prescaled_q = std::nullopt;
  EXPECT_EQ(judged(c, output_of(c, a), a).outcome, Outcome::held);
  EXPECT_EQ(judged(c, nan_value, a).outcome, Outcome::violated);
}

TEST(BoundCorrections, C10_AScaleBelowTheNormalNumbersIsOutsideTheDomain) {
  Arithmetic a = all_in(DType::f16);
  a.flushes_subnormals = true;
  Case c = row_of(DType::f16, {60000}, {{1}, {-1}}, {1, -1});
  c.scale = 1.9 * 0x1p-15;
  const double found = output_of(c, a);
  EXPECT_EQ(found, 0) << "the scale is 0 to this kernel";
  EXPECT_GT(error_of(c, found, a), written_bound(c, profile_for(c, a)));
  EXPECT_EQ(judged(c, found, a).outcome, Outcome::excused);
  c.scale = 0x1p-14;
  EXPECT_EQ(judged(c, output_of(c, a), a).outcome, Outcome::held);
}

constexpr double lowest = -0x1.fffffep127;  // of f32

TEST(BoundCorrections, D1a_ProductsBelowTheLastPlaceOfAMaskDoNotMoveIt) {
  const auto whole = [&](double key, double mask = lowest, double scale = 0.5) {
    Case c = row_of(DType::f32, {1}, {{key}, {key}}, {4, 8}, {mask, mask});
    c.scale = scale;
    return c;
  };
  const Arithmetic a = plain(DType::f32);
  const auto outcome = [&](const Case& c, const Arithmetic& of) { return judged(c, nan_value, of).outcome; };
  // No product, and one below a quarter of the mask's last place, which is 2^104, in either direction.
  for (const double key : {0.0, 1.0, -4e30, 4e30}) {
    EXPECT_EQ(outcome(whole(key), a), Outcome::violated) << key;
    EXPECT_EQ(output_of(whole(key), a), 6) << key;
  }
  EXPECT_EQ(outcome(whole(-0x1p105), a), Outcome::excused) << "half of it: -inf for both, and NaN";
  EXPECT_TRUE(std::isnan(output_of(whole(-0x1p105), a)));
  EXPECT_EQ(outcome(whole(1, -2e38), a), Outcome::violated) << "far from the end of the range";
  // The mean of V is required where no product says otherwise, whatever the scale is rounded to.
  for (const double scale : {0.5, 0.35, 1.5}) {
    EXPECT_EQ(judged(whole(0, lowest, scale), 6, a).outcome, Outcome::held) << scale;
    EXPECT_EQ(judged(whole(0, lowest, scale), 5.99, a).outcome, Outcome::violated) << scale;
  }
  // What may multiply the mask may push it over the edge.
  Arithmetic base2 = a, stored = a, in_sum = a, narrow = a;
  base2.base2 = true;
  stored.stored_biased = DType::bf16;
  in_sum.bias_in_sum = true;
  narrow.mask_format = DType::bf16;
  EXPECT_EQ(outcome(whole(0), base2), Outcome::excused);
  EXPECT_EQ(outcome(whole(0, -2e38), base2), Outcome::violated);
  EXPECT_EQ(outcome(whole(0), stored), Outcome::excused) << "-inf in bf16";
  EXPECT_EQ(outcome(whole(0, -0x1.fep127), stored), Outcome::violated) << "a number of bf16";
  EXPECT_EQ(outcome(whole(0), narrow), Outcome::excused) << "-inf in bf16: no key is left";
  EXPECT_EQ(outcome(whole(0), in_sum), Outcome::violated) << "b/tau = 2b, and nothing asks for it";
  EXPECT_EQ(outcome(whole(0, lowest, 1.5), in_sum), Outcome::excused) << "b/tau*tau may be above b";
  Case pre = whole(1);
  pre.mask_convention = MaskConvention::pre_scale;
  EXPECT_EQ(outcome(pre, a), Outcome::violated);
  EXPECT_EQ(outcome(pre, in_sum), Outcome::violated);
  pre.scale = 2;
  EXPECT_EQ(outcome(pre, a), Outcome::excused);
  // The same in f16, whose largest number has a last place of 32.
  const auto half = [&](double key) {
    return row_of(DType::f16, {1}, {{key}, {key}}, {4, 8}, {-65504, -65504}, DType::f16);
  };
  EXPECT_EQ(outcome(half(-7), all_in(DType::f16)), Outcome::violated);
  EXPECT_EQ(output_of(half(-7), all_in(DType::f16)), 6);
  EXPECT_EQ(outcome(half(-16), all_in(DType::f16)), Outcome::excused);
  EXPECT_TRUE(std::isnan(output_of(half(-16), all_in(DType::f16))));
  EXPECT_EQ(outcome(half(-16), plain(DType::f16)), Outcome::violated) << "sums in f32";
}

TEST(BoundCorrections, C12_TheSignOfTheScaleDoesNotMatter) {
  const Arithmetic a = plain(DType::f32);
  const Numbers q{1.1, 2.3, -0.7, 3.3}, negated{-1.1, -2.3, 0.7, -3.3};
  const std::vector<Numbers> k{{30.1, -20.7, 3.9, 5.3}, {-31.7, 11.3, 7.7, 4.1}};
  Case positive = row_of(DType::f32, q, k, {1, -1}), negative = row_of(DType::f32, negated, k, {1, -1});
  positive.scale = 0.3;
  negative.scale = -0.3;
  EXPECT_EQ(attention_bounds(negative, a).elements.at(0).allowed, attention_bounds(positive, a).elements.at(0).allowed);
  expect_as_written(negative, a);
  // So too where underflow and the query's own sums count: in f16.
  Arithmetic flushing = all_in(DType::f16);
  flushing.flushes_subnormals = flushing.flushes_inputs = true;
  Case small = row_of(DType::f16, q, k, {1, -1}), turned = row_of(DType::f16, negated, k, {1, -1});
  small.scale = 0.001;
  turned.scale = -0.001;
  EXPECT_EQ(attention_bounds(turned, flushing).elements.at(0).allowed,
            attention_bounds(small, flushing).elements.at(0).allowed);
  expect_needed(negative, output_of(negative, a), a,
                written_bound(negative, profile_for(negative, a), Without::size_of_scale));
}

TEST(BoundCorrections, C38_AProductOfWhatIsReadAsZeroIsNotExact) {
  // q is subnormal and a power of two, and so the score 2^-15 is exact by its bits: but it is 0 where q is read as 0.
  Arithmetic a = plain(DType::f32);
  const Case c = row_of(DType::f32, {0x1p-127}, {{0}, {0x1p112}}, {0, 1});
  const double exact = attention_bounds(c, a).elements.at(0).value;
  EXPECT_EQ(judged(c, 0.5, a).outcome, Outcome::violated) << "of a kernel that reads what is there";
  EXPECT_EQ(judged(c, output_of(c, a), a).outcome, Outcome::held);
  a.flushes_inputs = true;
  EXPECT_EQ(output_of(c, a), 0.5);
  EXPECT_EQ(judged(c, 0.5, a).outcome, Outcome::held);
  EXPECT_EQ(judged(c, exact + 16 * (exact - 0.5), a).outcome, Outcome::violated);
  // Of the keys, too, and of a query that carries the scale: 2^-100 times it is 0 then.
  const Case of_key = row_of(DType::f32, {0x1p112}, {{0}, {0x1p-127}}, {0, 1});
  EXPECT_EQ(judged(of_key, output_of(of_key, a), a).outcome, Outcome::held);
  Case scaled = row_of(DType::f32, {0x1p-27}, {{0}, {0x1p112}}, {0, 1});
  scaled.scale = 0x1p-100;
  a.prescaled_q = DType::f32;
  a.flushes_subnormals = true;
  EXPECT_EQ(output_of(scaled, a), 0.5);
  EXPECT_EQ(judged(scaled, 0.5, a).outcome, Outcome::held);
}

TEST(BoundCorrections, C39_AWeightThatUnderflowsTwiceMayBeManyTimesTooLarge) {
  // e^-17.3125 is 1.016 * 2^-25, which f16 rounds to 2^-24. The sums are in f32: the first key's weight is twice too
  // large, and is so again at each of four rescalings by as much.
  Arithmetic a = plain(DType::f16);
  a.score_sums = DType::f16;
  a.output = DType::f32;
  a.block = 2;
  std::vector<Numbers> keys{{-17.3125}, {0}};
  for (int i = 1; i <= 4; ++i) keys.insert(keys.end(), 2, {17.3125 * i});
  Numbers v(keys.size(), 0);
  v[0] = 1;
  const Case c = row_of(DType::f16, {1}, keys, v);
  const std::vector<bool> exact(keys.size(), true);
  expect_as_written(c, a, exact);
  const double without = written_bound(c, profile_for(c, a), Without::two_underflows, exact);
  EXPECT_GT(error_of(c, output_of(c, a), a), 4 * without);
  expect_needed(c, output_of(c, a), a, without);
}

/// A kernel that does what it declares returns no number, which nobody may hold against it.
void expect_excused(const Case& c, const Arithmetic& a, const Structure& structure = {}) {
  const double found = output_of(c, a, structure);
  EXPECT_FALSE(std::isfinite(found)) << found;
  const Verdict verdict = judged(c, found, a);
  EXPECT_EQ(verdict.outcome, Outcome::excused) << verdict.reason;
}

TEST(BoundCorrections, C41_WhatAScoreIsMadeOfMayHaveBeenRoundedUp) {
  Arithmetic a = plain(DType::f32);
  a.prescaled_q = DType::bf16;
  Case c = row_of(DType::f32, {0x1.c4p0}, {{0x1.64d4c2p126}}, {1});
  c.scale = 0x1.ap0;
  expect_excused(c, a);

  a = plain(DType::f32);
  a.mask_format = DType::bf16;
  expect_excused(row_of(DType::f32, {1}, {{-0x1.4faeb8p122}}, {1}, {-0x1.f50b7cp127}), a);

  a = plain(DType::bf16);
  a.descale = DescalePlace::inputs;
  c = row_of(DType::bf16, {0x1.a8p1}, {{0x1.48p125}}, {1});
  c[Slot::q_descale] = Tensor(DType::f32, {1, 1, 1}, Numbers{0x1.e201c2p0});
  expect_excused(c, a);
}

TEST(BoundCorrections, C42_AWeightMayBeLargerThanItsExponential) {
  // Rounded to a narrower format, of a maximum that lags and of a folded one.
  Arithmetic a = plain(DType::f32);
  a.weights = DType::bf16;
  a.block = 1;
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 1;
  expect_excused(row_of(DType::f32, {1}, {{0}, {0x1.fffffep-1}}, {0, 0x1.78b466p126}), a);
  a = plain(DType::f32);
  a.weights = DType::bf16;
  a.base2 = a.folded_exp2 = true;
  expect_excused(row_of(DType::f32, {1}, {{0x1.f8c98cp16}}, {0x1.fc11bep127}), a);
  // The exponent of a narrow format.
  a = plain(DType::f32);
  a.score_sums = DType::bf16;
  a.block = 1;
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 0x1.1f8f9551c8d5dp+3;
  expect_excused(row_of(DType::f32, {1}, {{0x1.e4p+0}, {0x1.5cp+3}}, {0, 0x1.04593cp+115}), a);
  // exp(0) above 1, once for each rescaling.
  a = plain(DType::f32);
  a.exp_ulp = 4;
  a.block = 1;
  Structure errs;
  errs.exp_errs = true;
  Numbers v(8, 0);
  v[0] = 0x1.ffffc2p+127;
  expect_excused(row_of(DType::f32, {1}, std::vector<Numbers>(8, Numbers{0}), v), a, errs);
}

TEST(BoundCorrections, C43_TheSumOfWeightsIsRounded) {
  // 1153 weights of 56.78 are 65,469, below the largest f16, and above it as they are rounded one after another: then
  // the quotient is 0.
  Arithmetic a = plain(DType::f16);
  a.accumulate = DType::f16;
  a.output = DType::f32;
  a.max = MaxPolicy::lazy;
  a.block = 64;
  a.blocked_sums = BlockedSums{.block = 64, .depth = 7, .pairwise = false};  // or the bound would tell nothing
  const double score = std::log(3634 / 64.0), high = round_to(DType::f16, score);
  const double low = round_to(DType::f16, (score - high) * 2048);
  a.lazy_nats = (high + low / 2048) * (1 + 1e-7);
  std::vector<Numbers> keys(1216, Numbers{high, low});
  keys[63] = {0, 0};
  Numbers mask(1216, 0);
  std::fill_n(mask.begin(), 63, -HUGE_VAL);
  const Case c = row_of(DType::f16, {1, 1.0 / 2048}, keys, Numbers(1216, 0.25), mask);
  EXPECT_LE(1153 * std::exp(a.lazy_nats), format_of(DType::f16).largest);
  EXPECT_EQ(judged(c, 0, a).outcome, Outcome::excused);
}

TEST(BoundCorrections, C44_TheLogarithmOfASumBelowALaggingMaximum) {
  // The sum is 1 + e^33, whose logarithm may err by 4u of 33; beside ln 2, and beside a log-sum-exp that is near 0.
  Arithmetic a = plain(DType::f32);
  a.block = 1;
  a.max = MaxPolicy::lazy;
  a.lazy_nats = 33.5;
  const Case c = row_of(DType::f32, {1}, {{-33}, {0}}, {1, 1});
  const Soft f32(DType::f32, false, false);
  const double sum = f32.add(1, f32.round(std::exp(33.0)));
  const double lse = f32.add(-33, f32.round(std::log(sum) * (1 + 0x1p-22)));
  EXPECT_GT(lse, 7e-6);
  const Verdict verdict =
      judge_attention(c, Tensor(DType::f32, c.out_shape(), Numbers{1}), Tensor(DType::f64, {1, 1, 1}, Numbers{lse}), a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
}

TEST(BoundCorrections, C46_AWeightThatIsLostByItsDivision) {
  // The exponential of the third key is 2^-150 and rounded up, and so is its quotient by 2, to 2^-149 again: four times
  // what it is.
  Arithmetic a = plain(DType::f32);
  a.normalise_first = true;
  const Numbers scores{0, -0x1p-22, -13627828 * 0x1p-17};
  const Case c = row_of(DType::f32, {1}, {{scores[0]}, {scores[1]}, {scores[2]}}, {0, 0, 0x1p127});
  const Soft f32(DType::f32, false, false);
  double sum = 0;
  Numbers weights;
  for (const double score : scores) {
    weights.push_back(f32.round(std::exp(score)));
    sum = f32.add(sum, weights.back());
  }
  const double out = f32.mul(f32.div(weights[2], sum), 0x1p127);
  EXPECT_EQ(out, 0x1p-22);
  const Verdict verdict = judge_attention(c, Tensor(DType::f32, c.out_shape(), Numbers{out}), Tensor(), a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
}

TEST(BoundCorrections, C47_AnExponentialOfHalfAnUlpBelowTheDoubles) {
  // e^-744.8 is 0.77 of the least double, which a correctly rounded exp returns: times 1e308 that is 1.5e-16 too much.
  for (const double ulp : {0.5, 1.25}) {
    Arithmetic a = plain(DType::f64);
    a.exp_ulp = ulp;
    const Case c = row_of(DType::f64, {1}, {{0}, {-744.8}}, {0, 1e308});
    const double weight = std::exp(-744.8) + (ulp > 1 ? 0x1p-1074 : 0), found = weight * 1e308 / (1 + weight);
    const Verdict verdict = judge_attention(c, Tensor(DType::f64, c.out_shape(), Numbers{found}), Tensor(), a);
    EXPECT_EQ(verdict.outcome, Outcome::held) << ulp << ": " << verdict.reason;
  }
}

TEST(BoundCorrections, C48_AWeightThatScoresHaveLostAndTheSumsHaveNot) {
  // e^-746 is 0 in f32, where the exponential is taken, and 1e-324 in f64, where it meets 1e308.
  Arithmetic a = plain(DType::f64);
  a.score_sums = DType::f32;
  const Case c = row_of(DType::f64, {1}, {{0}, {-746}}, {0, 1e308});
  const Verdict verdict = judge_attention(c, Tensor(DType::f64, c.out_shape(), Numbers{0}), Tensor(), a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
}

TEST(BoundCorrections, C13_TheCertificateDoesNotShrinkWithADeclaredDepth) {
  // Equal terms round the same way again and again: a double sum of 4096 of them errs by more than 2^-28 of the bound
  // of a kernel that adds them up in a tree.
  Arithmetic a = plain(DType::f32);
  a.blocked_sums = BlockedSums{.block = 1, .depth = 1, .pairwise = true};
  a.output = DType::f64;
  const std::size_t n = 4096;
  std::vector<Numbers> keys(n, Numbers{-0x1.99999ap-4});
  keys[0] = {0};
  Numbers v(n, 0x1.555556p-2);
  v[0] = 0x1.fffffep-1;
  const Case c = row_of(DType::f32, {1}, keys, v);
  const ElementBound e = attention_bounds(c, a).elements.at(0);
  const Enclosure exact = exact_elements(c, a).at(0).exact;
  const double error = std::max(e.value - exact.upper, exact.lower - e.value);
  EXPECT_GT(error, 0x1p-28 * e.allowed) << "no certificate of 2^-28 of the bound was wrong here";
  EXPECT_LE(std::max(exact.upper - e.value, e.value - exact.lower), e.certificate);
}

}  // namespace
}  // namespace attest::fleet
