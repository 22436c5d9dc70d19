// The corrections of error-bounds.md 1.7 that close gaps in the proof (P). Where a correct kernel comes upon the gap,
// its input; else the term, at constants large enough to show it.
#include <fmt/format.h>

#include "core/test/bound/correction_tests.h"

namespace attest::fleet {
namespace {

const Soft f32(DType::f32, false, false);

Case two_keys() {
  return row_of(DType::f32, {1.5}, {{-1.5}, {0.7}}, {1, -1});
}

TEST(BoundProofGaps, P15_TermErrorsOfTheConstantsGrowByOneAnother) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.u_s = 1e-3, p.th_tau = 1e-2, p.th_l2e = 1e-2;
  expect_term(two_keys(), p, Without::growing_constants);
}

TEST(BoundProofGaps, P16_TermBothExponentialsOfAMergeErr) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.lse_merge = true;
  p.u_lse = p.eps_log = 0;
  p.eps_exp = 1e-3;
  expect_term(two_keys(), p, Without::second_merge_error);
}

TEST(BoundProofGaps, P17_TermNormalisingFirstRoundsBesideADeclaredDepth) {
  Arithmetic a = plain(DType::f32);
  a.normalise_first = true;
  a.division_roundings = 3;
  a.summation_depth = 1;
  a.rounding = Rounding::toward_zero;  // no refined sums
  Profile p = profile_for(two_keys(), a);
  p.u_a = 1e-3;
  expect_term(two_keys(), p, Without::normalised_depth);
}

TEST(BoundProofGaps, P18_TermALaggingMaximumIsFarther) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.c_m = 1;
  p.lazy = 20;
  p.u_e = 1e-3;
  expect_term(two_keys(), p, Without::lazy_residual);
}

TEST(BoundProofGaps, P19_TheFirstMaximumMayBeTooFarFromAStoredScore) {
  // Both scores are nearly 2^33, and bf16 keeps them to within 2^24: against the maximum of the scores as they were the
  // largest weight may be Inf, or 0, and the answer Inf / Inf or 0 / 0.
  Arithmetic a = plain(DType::f32);
  a.stored_biased = DType::bf16;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case huge = row_of(DType::f32, {0x1.fffep32}, {{1}, {1}}, {1, 2}),
             small = row_of(DType::f32, {8}, {{1}, {1}}, {1, 2});
  EXPECT_EQ(judged(huge, nan, a).outcome, Outcome::excused);
  EXPECT_EQ(judged(small, nan, a).outcome, Outcome::violated);
  a.stored_biased.reset();
  EXPECT_EQ(judged(huge, nan, a).outcome, Outcome::violated) << "of a kernel that stores no score";
}

TEST(BoundProofGaps, P19_AMaximumFromBeforeTheScoresWereStored) {
  // 8223 is the maximum, 8192 the score that bf16 keeps: the largest weight is e^-31, 0 in f16. Whatever comes back is
  // beyond judgement, but no mistake.
  Arithmetic a = plain(DType::f32);
  a.stored_biased = DType::bf16;
  a.weights = DType::f16;
  const Case c = row_of(DType::f32, {1}, {{8223}}, {1});
  const double score = round_to(DType::bf16, 8223), weight = f32.round(std::exp(score - 8223));
  const double found = f32.div(round_to(DType::f16, weight), weight);
  EXPECT_EQ(found, 0);
  const std::vector<bool> product_exact{false};
  EXPECT_GT(error_of(c, found, a), written_bound(c, profile_for(c, a), Without::stored_maximum, product_exact));
  const double written = written_bound(c, profile_for(c, a), Without::nothing, product_exact);
  EXPECT_NEAR(attention_bounds(c, a).elements.at(0).allowed, written, 0.01 * written);
  const Verdict verdict = judged(c, found, a);
  EXPECT_EQ(verdict.outcome, Outcome::excused);
  EXPECT_EQ(verdict.reason, "vacuous bound");
  // Stored as it is, the score leaves nothing to excuse.
  const Case kept = row_of(DType::f32, {1}, {{8192}}, {1});
  EXPECT_EQ(judged(kept, 0, a).outcome, Outcome::violated);
}

TEST(BoundProofGaps, P20_EveryBlockRescalesUnlessExpOfZeroIsOne) {
  // exp errs by 15 ulp, also at 0: each of 64 blocks of one key multiplies the earlier ones by 1 + 30u.
  Arithmetic a = plain(DType::f32);
  a.block = 1;
  a.exp_ulp = 16;
  Numbers v(64, -1);
  std::fill_n(v.begin(), 32, 1.0);
  const Case c = row_of(DType::f32, {0}, std::vector<Numbers>(64, Numbers{0}), v);
  const double one = 1 + 15 * 0x1p-23;
  double sum = 0, out = 0;
  for (const double value : v) {
    sum = f32.add(f32.mul(sum, one), one);
    out = f32.add(f32.mul(out, one), f32.mul(one, value));
  }
  Profile p = profile_for(c, a);
  EXPECT_EQ(p.rescalings, 64);
  p.rescalings = 0;  // the maximum never rises
  expect_needed(c, f32.div(out, sum), a, written_bound(c, p));
}

TEST(BoundProofGaps, P21_AnExpThatIsClampedDoesNotVanish) {
  // exp(max(x, -87.33)), of which nothing is declared: a key of weight e^-1000 still enters with 1.2e-38.
  Arithmetic a = plain(DType::f32);
  a.exp_ulp = 0;
  const Case c = row_of(DType::f32, {1}, {{0}, {-1000}}, {0, 1e38});
  const double least = f32.round(std::exp(-87.33));
  const double found = f32.div(f32.mul(least, 1e38), f32.add(1, least));
  EXPECT_GT(found, 1);
  EXPECT_GT(error_of(c, found, a), written_bound(c, profile_for(c, a), Without::clamped_exp));
  EXPECT_NE(judged(c, found, a).outcome, Outcome::violated);
  // Where exp is declared to vanish, this is a leak.
  a.exp_ulp = 1;
  EXPECT_EQ(judged(c, found, a).outcome, Outcome::violated);
}

TEST(BoundProofGaps, P22_TermTruncationLosesAWholeSubnormal) {
  Arithmetic a = plain(DType::f16);
  for (const DType sums : {DType::f32, DType::f16}) {
    a.score_sums = a.accumulate = sums;
    const Format& format = format_of(sums);
    a.rounding = Rounding::nearest;
    const Profile nearest = profile_for(two_keys(), a);
    EXPECT_EQ(nearest.lam_s, format.min_subnormal / 2);
    EXPECT_EQ(nearest.lam_a, format.min_subnormal / 2);
    EXPECT_EQ(nearest.u_s, format.unit);
    EXPECT_EQ(nearest.u_a, format.unit);
    a.rounding = Rounding::toward_zero;
    const Profile truncating = profile_for(two_keys(), a);
    EXPECT_EQ(truncating.lam_s, format.min_subnormal);
    EXPECT_EQ(truncating.lam_a, format.min_subnormal);
    EXPECT_EQ(truncating.u_s, 2 * format.unit);
    EXPECT_EQ(truncating.u_a, 2 * format.unit);
    EXPECT_EQ(truncating.n_s, 1) << "no more roundings than terms";
    EXPECT_FALSE(truncating.nearest);
  }
}

TEST(BoundProofGaps, P23_AnOutputProjectionUnderflowsInEveryProduct) {
  // 64 values of 2^-12 times 0.98 * 2^-13 are each 0 in f16; their sum is not.
  Arithmetic a = plain(DType::f16);
  a.score_sums = a.accumulate = a.weights = DType::f16;
  Case c;
  c.operation = Operation::multihead;
  c.heads = 1;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::f16, {1, 1, 1}, Numbers{1});
  for (const Slot slot : {Slot::w_q, Slot::w_k}) c[slot] = Tensor(DType::f16, {1, 1}, Numbers{1});
  c[Slot::w_v] = Tensor(DType::f16, {1, 64}, Numbers(64, 0x1p-12));
  c[Slot::w_o] = Tensor(DType::f16, {64, 1}, Numbers(64, round_to(DType::f16, 0.98 * 0x1p-13)));
  c[Slot::b_o] = Tensor(DType::f16, {1}, Numbers{0x1p-17});
  validate(c);
  EXPECT_EQ(round_to(DType::f16, 0x1p-12 * c[Slot::w_o][0]), 0);
  const double lost = 64 * 0x1p-12 * c[Slot::w_o][0];
  const Verdict verdict = judge_multihead(c, Tensor(DType::f16, {1, 1, 1}, Numbers{0x1p-17}), a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
  // Carried: each value's own bound, a few units and subnormals. Then the sum's roundings, without its underflow.
  const double each = 16 * 0x1p-11 * 0x1p-12 + 16 * 0x1p-24;
  const double carried = 64 * c[Slot::w_o][0] * each;
  const double without = carried + pw(0x1p-11, 65) * (lost + carried + 0x1p-17) + 0x1p-24;
  EXPECT_GT(lost, without);
  EXPECT_LE(lost, verdict.allowed);
  EXPECT_LE(verdict.allowed, without + 2 * 65 * 0x1p-24);
  EXPECT_EQ(judge_multihead(c, Tensor(DType::f16, {1, 1, 1}, Numbers{-8 * lost}), a).outcome, Outcome::violated);
}

TEST(BoundProofGaps, P23_TermScoresAreRoundedWithTheErrorsOfTheirInputs) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.th_scale = 0.125;
  p.th_tau = 0.25;
  p.u_e = 0;
  const Numbers none = evaluated(two_keys(), p).E, shared = evaluated(two_keys(), p, 0.5).E,
                each = evaluated(two_keys(), p, 0, 0.5).E;
  for (std::size_t j = 0; j < 2; ++j) {
    // A shift of all scores is no error, what is rounded off it is; an error of one score acts on its constants too.
    const double rounded = (1 + p.th_tau) * p.th_scale * 0.5;
    EXPECT_NEAR(shared[j] - none[j], rounded, 1e-9);
    EXPECT_NEAR(each[j] - none[j], rounded + 0.5 + p.th_tau * 0.5, 1e-9);
  }
}

TEST(BoundProofGaps, P23_TermAMergeForgetsNoErrorOfTheInputs) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.th_tau = 0.25;
  p.th_l2e = 0.125;
  const auto added = [&](bool merge) {
    p.lse_merge = merge;
    const Numbers without = evaluated(two_keys(), p).E, with = evaluated(two_keys(), p, 0, 0.5).E;
    return Numbers{with[0] - without[0], with[1] - without[1]};
  };
  const Numbers alone = added(false), merged = added(true);
  for (std::size_t j = 0; j < 2; ++j) EXPECT_GE(merged[j], alone[j] * (1 - 1e-9));
}

TEST(BoundProofGaps, P25_WhatUnderflowsIsMissingFromTheLogSumExp) {
  // 1500 weights just below the least normal f16 are flushed: 9 % of the sum, more than its roundings may cost.
  Arithmetic a = plain(DType::f16);
  a.score_sums = a.accumulate = a.weights = DType::f16;
  a.flushes_subnormals = true;
  a.blocked_sums = BlockedSums{.block = 1, .depth = 1, .pairwise = true};
  Structure structure;
  structure.permuted_pairwise = true;
  std::vector<Numbers> keys(1500, Numbers{-9.75});
  keys[0] = {0};
  const Case c = row_of(DType::f16, {1}, keys, Numbers(1500, 0));
  const Answer answer = emulate({"flushing", a, structure, {}}, c);
  EXPECT_EQ(answer.lse[0], 0);
  const Verdict verdict = judge_attention(c, answer.out, answer.lse, a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
  const RowBound row = attention_bounds(c, a).rows.at(0);
  Profile p = profile_for(c, a);
  p.lam_e = p.lam_a = 0;
  EXPECT_GT(row.lse - row.lse_certificate, evaluated(c, p).terms.lse_allowed) << "the rest of the bound suffices";
}

TEST(BoundProofGaps, P25_TermTheLogSumExpIsRoundedAtItsSize) {
  const Case c = row_of(DType::f32, {3}, {{100}}, {1});
  Profile p = profile_for(c, plain(DType::f32));
  const auto allowed = [&] { return evaluated(c, p).terms.lse_allowed; };
  // A residual of the maximum comes with the exponent and again with the reference itself.
  p.c_m = 1, p.u_e = 1e-6;
  const double once = allowed();
  p.c_m = 3;
  EXPECT_NEAR(allowed() - once, 2 * 2 * 1e-6 * 300, 2e-5);
  // The sum of reference and logarithm is rounded at the size of either.
  p.u_lse = 1e-4;
  EXPECT_GE(allowed() - once, 1e-4 * 300);
  // The logarithm of the sum errs relative to at most ln n + 1.
  p = profile_for(c, plain(DType::f32));
  p.eps_log = 0;
  const double exact = allowed();
  p.eps_log = 1e-2;
  EXPECT_NEAR(allowed() - exact, 1e-2, 1e-4);
}

TEST(BoundProofGaps, P25_TermConstantsShiftTheLogSumExp) {
  const Case c = row_of(DType::f32, {3}, {{100}}, {1});
  Profile p = profile_for(c, plain(DType::f32));
  p.u_e = 0;
  const double exact = evaluated(c, p).terms.lse_allowed;
  p.th_tau = 1e-3;
  EXPECT_NEAR(evaluated(c, p).terms.lse_allowed - exact, 1e-3 * 300, 1e-3);
  p.th_tau = 0, p.th_l2e = 1e-3;
  EXPECT_GE(evaluated(c, p).terms.lse_allowed - exact, 1e-3 * 300);
}

TEST(BoundProofGaps, P25_AVanishingKeyDoesNotHideTheLogSumExpOfTheOthers) {
  const Case c = row_of(DType::f32, {1}, {{0}, {1}, {3}}, {1, 1, 1}, {0, 0, -1e30});
  EXPECT_LT(attention_bounds(c, plain(DType::f32)).rows.at(0).lse_allowed, 1e-5);
}

TEST(BoundProofGaps, P26_UnderflowIsLargerBesideSmallWeightsOnlyWithoutAMaximum) {
  // e^-80 for the largest weight: of what is e^-24 of it, nothing is left.
  Arithmetic a = plain(DType::f32);
  const Case c = row_of(DType::f32, {1}, {{-80}, {-104}}, {0, 1e6});
  const double with_maximum = attention_bounds(c, a).elements.at(0).allowed;
  a.max = MaxPolicy::none;
  EXPECT_EQ(output_of(c, a), 0);
  expect_needed(c, 0, a, with_maximum);
  const Case high = row_of(DType::f32, {1}, {{24}, {0}}, {0, 1e6});
  EXPECT_NEAR(attention_bounds(high, plain(DType::f32)).elements.at(0).allowed, with_maximum, 0.2 * with_maximum);
  EXPECT_LT(attention_bounds(high, a).elements.at(0).allowed, 3 * with_maximum);
}

TEST(BoundProofGaps, P26_ValuesReadAsZeroAreLost) {
  Arithmetic a = plain(DType::f32);
  a.flushes_inputs = true;
  const double subnormal = 0x1.fffffcp-127;
  const Case c = row_of(DType::f32, {1}, {{0}}, {subnormal});
  EXPECT_EQ(output_of(c, a), 0);
  EXPECT_GT(error_of(c, 0, a), written_bound(c, profile_for(c, a), Without::flushed_inputs));
  EXPECT_EQ(judged(c, 0, a).outcome, Outcome::excused) << "a value may be lost whole: nothing is left to judge";
  EXPECT_EQ(judged(c, 4 * subnormal, a).outcome, Outcome::violated);
  a.flushes_inputs = false;
  EXPECT_EQ(judged(c, 0, a).outcome, Outcome::violated);
}

TEST(BoundProofGaps, P26_TermWithoutAMaximumTheLargestWeightIsAsUncertainAsItsScore) {
  Case c = row_of(DType::f32, {1}, {{-10}, {-11}}, {1, 1});
  Profile p = profile_for(c, plain(DType::f32));
  p.fixed_shift = p.takes_no_maximum = true;
  p.u_s = 0.1;
  p.lam_e = 1e-9;
  p.lam_a = 1e-9;
  const double allowed = evaluated(c, p).element.allowed, written = written_bound(c, p);
  EXPECT_NEAR(allowed, written, 1e-6 * written);
  p.lam_a = p.lam_e = 0;
  EXPECT_LT(evaluated(c, p).element.allowed, 0.5 * allowed);
}

TEST(BoundProofGaps, P27_TheScaleIsConvertedToTheScoreFormat) {
  // Scale, score and exponent each err by nearly u (found by a search), which a weight of e^-66 shows.
  const Arithmetic a = plain(DType::f32);
  Case c = row_of(DType::f32, {1}, {{-0x1.e44f8p+1}, {0x1.001caep+6}}, {1, 0});
  c.scale = 0x1.0008ecf851eb8p+0;
  const std::vector<bool> product_exact{false, false};
  expect_as_written(c, a, product_exact);
  Profile p = profile_for(c, a);
  p.th_tau = 0;
  expect_needed(c, output_of(c, a), a, written_bound(c, p, Without::nothing, product_exact));
}

TEST(BoundProofGaps, P27_ADeclaredDepthCountsTheMergesOfBlocks) {
  // bf16 sums of 41 blocks of one key: 1/256 of the first value is lost from it forty times.
  Arithmetic a = plain(DType::f32);
  a.accumulate = DType::bf16;
  a.output = DType::f32;
  a.blocked_sums = BlockedSums{.block = 1, .depth = 1};
  Numbers v(41, round_to(DType::bf16, 0.9 / 256));
  v[0] = 1;
  const Case c = row_of(DType::f32, {0}, std::vector<Numbers>(41, Numbers{0}), v);
  expect_as_written(c, a);
  Arithmetic one_block = a;
  one_block.blocked_sums = std::nullopt;
  one_block.summation_depth = 1;
  expect_needed(c, output_of(c, a), a, written_bound(c, profile_for(c, one_block)));
}

TEST(BoundProofGaps, WeightsThatAreRoundedInBothSumsMayVanishFromTheLower) {
  // P5, p_in_denom: 210 weights of e^-7.3 are 0 in e4m3, together a seventh of the first.
  Arithmetic a = plain(DType::f32);
  a.weights = DType::f8_e4m3;
  a.weights_in_denominator = true;
  std::vector<Numbers> keys(211, Numbers{-7.3125});
  keys[0] = {0};
  Numbers v(211, 0);
  v[0] = 1;
  const Case c = row_of(DType::f32, {1}, keys, v);
  EXPECT_EQ(output_of(c, a), 1);
  Profile p = profile_for(c, a);
  p.lam_p = 0;
  expect_needed(c, 1, a, written_bound(c, p));
}

TEST(BoundProofGaps, P28_AWeightBelowTheDoublesMeetsTheLargestValues) {
  // e^-745.25 is 0 in double; times 1e308 it is not.
  const Arithmetic a = plain(DType::f64);
  const Case c = row_of(DType::f64, {1}, {{0}, {-745.25}}, {0, 1e308});
  const double found = output_of(c, a);
  EXPECT_EQ(found, 0);
  expect_needed(c, found, a, written_bound(c, profile_for(c, a), Without::far_exponents));
}

TEST(BoundProofGaps, P34_TermExponentsLoseWhatUnderflows) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.rescalings = 3;
  p.lam_exponent = 1e-3;
  expect_term(two_keys(), p, Without::exponent_underflow);
}

TEST(BoundProofGaps, P34_OfEveryKindOfExponent) {
  Arithmetic a = plain(DType::f16);
  a.score_sums = DType::f16;
  const Format& format = format_of(DType::f16);
  const auto lost = [&] { return profile_for(two_keys(), a).lam_exponent; };
  EXPECT_EQ(lost(), format.min_subnormal / 2);
  a.flushes_subnormals = true;
  EXPECT_EQ(lost(), format.min_normal);
  a.base2 = true;
  EXPECT_EQ(lost(), 3 * format.min_normal) << "a difference, a product, and log2(e)";
  a.flushes_inputs = true;
  EXPECT_EQ(lost(), 9 * format.min_normal) << "two numbers that are read as 0 beside each";
}

TEST(BoundProofGaps, P35_TermSharesOfRoundedWeightsAreLarger) {
  // One key of any weight beside many, so that it is the refined sum that counts.
  std::vector<Numbers> keys(200, Numbers{-30});
  keys[0] = {0};
  Numbers v(200, 0);
  v[0] = 1;
  const Case c = row_of(DType::f32, {1}, keys, v);
  Profile p = profile_for(c, plain(DType::f32));
  p.p_in_denom = true;
  p.u_p = 0.125, p.u_a = 1e-3, p.rescalings = 20;
  expect_term(c, p, Without::rounded_shares);
}

TEST(BoundProofGaps, P36_TermEveryPartOfAMergeIsDividedAndRescaled) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.lse_merge = true;
  p.lam_a = 1e-3;
  expect_term(two_keys(), p, Without::merge_operations);
}

TEST(BoundProofGaps, P37_TermALogSumExpIsFartherThanAMaximum) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.lse_merge = true;
  p.u_lse = p.eps_log = 0;
  p.u_e = 1e-3, p.c_e = 3;
  expect_term(two_keys(), p, Without::distant_reference);
  p.u_e = 0.01, p.eps_exp = 0.1;
  expect_term(two_keys(), p, Without::distant_reference);
}

TEST(BoundProofGaps, P40_TermWhatIsLostIsRoundedWithTheRest) {
  // Keys of little weight, and one that has nearly all of it and the value 0.
  std::vector<Numbers> keys(40, Numbers{-80});
  keys[0] = {0};
  Numbers v(40, 1);
  v[0] = 0;
  const Case c = row_of(DType::f32, {1}, keys, v);
  Profile p = profile_for(c, plain(DType::f32));
  p.u_a = 1e-3, p.lam_a = 1e-30;
  expect_term(c, p, Without::grown_losses);
  p = profile_for(c, plain(DType::f32));
  p.lazy = 1, p.u_e = 1e-2, p.lam_a = 1e-30;
  expect_term(c, p, Without::grown_losses);
}

TEST(BoundProofGaps, P48_TermAWeightVanishesWhereTheSumsSaySo) {
  Arithmetic a = plain(DType::f64);
  a.score_sums = DType::f32;
  const Case c = row_of(DType::f64, {1}, {{0}, {-746}}, {0, 1e308});
  expect_term(c, profile_for(c, a), Without::wider_sums);
}

TEST(BoundProofGaps, P49_TermLog2eMultipliesTheDistanceToTheReference) {
  // Products that cancel, so that the scores err by more than they differ.
  const Case c = row_of(DType::f32, {1, 1}, {{8, -8}, {8, -8.125}}, {1, -1});
  Profile p = profile_for(c, plain(DType::f32));
  p.u_s = 1e-3, p.th_l2e = 0.5, p.u_e = 0.25;
  expect_term(c, p, Without::far_scores);
}

TEST(BoundProofGaps, P50_TermTheLastReferenceOfAFoldedScaleIsRounded) {
  Profile p = profile_for(two_keys(), plain(DType::f32));
  p.c_m = 1, p.u_e = 1e-2, p.lam_a = 1e-3;
  expect_term(two_keys(), p, Without::last_reference);
}

TEST(BoundProofGaps, P51_TermAProductThatIsLostIsRoundedBesideADeclaredDepth) {
  std::vector<Numbers> keys(40, Numbers{-80});
  keys[0] = {0};
  Numbers v(40, 1);
  v[0] = 0;
  const Case c = row_of(DType::f32, {1}, keys, v);
  Arithmetic a = plain(DType::f32);
  a.summation_depth = 6;
  Profile p = profile_for(c, a);
  p.u_a = 1e-2, p.lam_a = 1e-30;
  expect_term(c, p, Without::lost_products);
}

TEST(BoundProofGaps, P45_TermABiasIsConvertedAndThenRoundedWithTheSum) {
  for (const MaskConvention convention : {MaskConvention::post_scale, MaskConvention::pre_scale}) {
    Case c = row_of(DType::f32, Numbers(64, 0x1p-3), {Numbers(64, -0x1p-6), Numbers(64, 0x1p-6)}, {1, -1}, {0.5, 0});
    c.mask_convention = convention;
    Arithmetic a = plain(DType::f32);
    a.score_sums = a.mask_format.emplace(DType::bf16);
    a.bias_in_sum = true;
    a.prescaled_q = DType::f32;
    const Profile p = profile_for(c, a);
    const std::vector<bool> no_score_exact;
    const double allowed = attention_bounds(c, a).elements.at(0).allowed;
    EXPECT_GE(allowed, written_bound(c, p, Without::nothing, no_score_exact) * (1 - 0x1p-20));
    EXPECT_LT(written_bound(c, p, Without::converted_start, no_score_exact), allowed * 0.999);
  }
}

TEST(BoundProofGaps, WhatDoublesLoseIsBoundedAsWritten) {
  // Below 2^-1022 the terms of underflow are all that a row of such values has, and beside 1e308 they count.
  for (const double score : {-700.0, -744.75, -800.0})
    for (const double value : {1e308, 1.0, 1e-300, 0x1p-1070}) {
      SCOPED_TRACE(fmt::format("score {}, value {}", score, value));
      expect_as_written(row_of(DType::f64, {1}, {{0}, {score}}, {0, value}), plain(DType::f64), {true, true});
      // Beside a key of which nothing is left, which loses nothing, the loss of each key counts.
      const Case c = row_of(DType::f64, {1}, {{0}, {score}, {-900}}, {0, value, 0});
      Arithmetic vanishing = plain(DType::f64);
      vanishing.exp_ulp = 1;
      const Profile p = profile_for(c, vanishing);
      const double allowed = evaluated(c, p).element.allowed, written = written_bound(c, p);
      EXPECT_GE(allowed, written * (1 - 0x1p-30));
      EXPECT_LE(allowed, written * 1.03);
    }
  // Scores that are rounded lose far more than that.
  const Case rounded = row_of(DType::f64, {1 / 3.0}, {{0.1}, {0.7}}, {0, 1});
  const Profile p = profile_for(rounded, plain(DType::f64));
  EXPECT_LE(evaluated(rounded, p).element.allowed, 1.2 * written_bound(rounded, p));
}

TEST(BoundProofGaps, AColumnOfZerosSaysNothingOfAnotherWhoseMeanIsZero) {
  Case c = row_of(DType::f64, {1}, {{0}, {0}}, {1, -1});
  const double alone = attention_bounds(c, plain(DType::f64)).elements.at(0).allowed;
  c[Slot::v] = Tensor(DType::f64, {1, 1, 2, 3}, std::vector<double>{0, 1, 0, 0, -1, 0});
  const AttentionBounds together = attention_bounds(c, plain(DType::f64));
  EXPECT_EQ(together.elements.at(1).allowed, alone);
  EXPECT_LT(together.elements.at(0).allowed, 0x1p-1060);
  EXPECT_EQ(together.elements.at(2).allowed, together.elements.at(0).allowed);
}

}  // namespace
}  // namespace attest::fleet
