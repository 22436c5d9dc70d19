// The judge at its edges: what is violated whatever the bound, what is excused and never held, and what a sharp bound
// must still judge. Rows of two or three keys, so that each answer is plain.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/test/cases.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double float_max = 3.4028234663852886e38;
const double nan_value = std::numeric_limits<double>::quiet_NaN();

/// One query; keys of one number each; scale 1.
Case row_of(DType dtype, double q, const std::vector<double>& k, const std::vector<double>& v,
            const std::vector<double>& mask = {}) {
  return test::one_query(dtype, {q}, k, v, mask);
}

Arithmetic tight(DType dtype) {
  Arithmetic a = universal_arithmetic(dtype, dtype);
  a.base2 = a.folded_exp2 = a.split_merge = a.normalise_first = a.bias_in_sum = false;
  a.prescaled_q = std::nullopt;
  a.max = MaxPolicy::running;
  a.block = 0;
  a.exp_ulp = 1;
  a.division_roundings = 1;
  return a;
}

Verdict judge(const Case& c, double found, const Arithmetic& a, const OracleOptions& options = {}) {
  Tensor out(c.dtype(), c.out_shape());
  for (std::int64_t e = 0; e < out.elements(); ++e) out.set(e, found);
  return judge_attention(c, out, {}, a, options);
}
Verdict judge(const Case& c, double found) {
  return judge(c, found, universal_arithmetic(c.dtype(), c.dtype()));
}

TEST(Judge, RefusesWhatIsNotFiniteAtEveryLevel) {
  const Case c = row_of(DType::f32, 1, {0, 0}, {1, 3});
  for (const int level : {1, 2, 3})
    for (const double found : {nan_value, -nan_value, infinity, -infinity}) {
      const Verdict v = judge(c, found, tight(DType::f32), {.first_level = level});
      EXPECT_EQ(v.outcome, Outcome::violated);
      EXPECT_EQ(v.violation, Violation::not_finite);
      EXPECT_EQ(v.utilisation, infinity);
      EXPECT_EQ(v.element, 0);
      EXPECT_FALSE(v.reason.empty());
    }
  EXPECT_EQ(judge(c, 2).outcome, Outcome::held);
  EXPECT_EQ(judge(c, 2).violation, Violation::none);
  EXPECT_EQ(judge(c, -2).outcome, Outcome::violated);
  EXPECT_EQ(judge(c, -2).violation, Violation::bound);
  EXPECT_EQ(judge(c, 2.00001).outcome, Outcome::violated);
}

TEST(Judge, SaysOfWhatExtentsACaseWasThatItJudged) {
  const Reach reach{.queries = 1, .keys = 3, .dk = 1, .dv = 1, .heads = 1, .kv_heads = 1, .batch = 1};
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, 0, 0}, {1, 3, 5}), 3).reach, reach);
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, 0, 0}, {1, 3, 5}), 4).reach, reach);
  // Nothing of it was: a row that sees no key.
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, 0}, {1, 3}, {-infinity, -infinity}), 3).reach, std::nullopt);
}

TEST(Judge, HoldsARowThatSeesNoKeyToWhatIsDeclared) {
  const Case c = row_of(DType::f32, 1, {0, 0}, {1, 3}, {-infinity, -infinity});
  const auto outcome = [&](double out, double lse, FullyMaskedRow declared) {
    const Tensor answer(DType::f32, c.out_shape(), std::vector<double>{out});
    const Tensor sum(DType::f64, {1, 1, 1}, std::vector<double>{lse});
    return judge_attention(c, answer, sum, tight(DType::f32), {.fully_masked = declared}).outcome;
  };
  const Outcome right = Outcome::excused, wrong = Outcome::violated;
  EXPECT_EQ(outcome(nan_value, nan_value, FullyMaskedRow::nan), right);
  EXPECT_EQ(outcome(nan_value, -infinity, FullyMaskedRow::nan), right) << "what no key adds up to";
  EXPECT_EQ(outcome(nan_value, infinity, FullyMaskedRow::nan), wrong);
  EXPECT_EQ(outcome(nan_value, 0, FullyMaskedRow::nan), wrong);
  EXPECT_EQ(outcome(0, nan_value, FullyMaskedRow::nan), wrong);
  EXPECT_EQ(outcome(-infinity, -infinity, FullyMaskedRow::nan), wrong);
  EXPECT_EQ(outcome(0, -infinity, FullyMaskedRow::zero), right);
  EXPECT_EQ(outcome(0, nan_value, FullyMaskedRow::zero), wrong);
  EXPECT_EQ(outcome(nan_value, -infinity, FullyMaskedRow::zero), wrong);
  EXPECT_EQ(outcome(7, 7, FullyMaskedRow::undeclared), right) << "anything";
}

TEST(Judge, TakesBothZerosForZero) {
  const Case c = row_of(DType::f32, 1, {0, 1}, {0, 0});
  EXPECT_EQ(judge(c, 0.0).outcome, Outcome::held);
  EXPECT_EQ(judge(c, -0.0).outcome, Outcome::held);
  EXPECT_EQ(judge(c, 1e-30).outcome, Outcome::violated) << "a leak into zero values shows whatever its size";
}

TEST(Judge, JudgesConstantValuesAndASingleKeySharply) {
  // Both leave nothing to the weights: what remains is the error of normalisation, whatever the scores are.
  for (const double q : {0.0, 1.0, 1e4, 1e6}) {
    const Case constant = row_of(DType::f32, q, {1, -1, 0.5}, {3, 3, 3});
    EXPECT_EQ(judge(constant, 3, tight(DType::f32)).outcome, Outcome::held) << q;
    EXPECT_EQ(judge(constant, 3.00001, tight(DType::f32)).outcome, Outcome::violated) << q;
    const Case one = row_of(DType::f32, q, {1}, {-7});
    EXPECT_EQ(judge(one, -7, tight(DType::f32)).outcome, Outcome::held) << q;
    EXPECT_EQ(judge(one, -7.00001, tight(DType::f32)).outcome, Outcome::violated) << q;
  }
}

TEST(Judge, NeverCountsAVacuousBoundAsHeld) {
  // Products of 1e9 that cancel to nothing, too long for the exactness rule: in f32 the difference of the scores is
  // unknown by hundreds, so any mean would pass.
  Case c = row_of(DType::f32, 1, {1, 1}, {0, 1}, {0.0, 0.0});
  c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 2}, std::vector<double>{16777215 * 64.0, 16777215 * 64.0});
  c[Slot::k] = Tensor(DType::f32, {1, 1, 2, 2}, std::vector<double>{1, -1, -1, 1});
  EXPECT_EQ(judge(c, 0.5, tight(DType::f32)).outcome, Outcome::excused);
  EXPECT_EQ(judge(c, 0.5, tight(DType::f32)).reason, "vacuous bound");
  EXPECT_EQ(judge(c, 1.5, tight(DType::f32)).outcome, Outcome::violated) << "farther than any mean of the values";
  EXPECT_EQ(judge(c, nan_value, tight(DType::f32)).outcome, Outcome::violated);
}

TEST(Judge, ExcusesWhatLiesWithinRoundingOfAVacuousBound) {
  // The answer is one value, the kernel returns the other, and the bound is the distance between the two.
  Case c = row_of(DType::f64, 1, {1, 1}, {0, 1}, {0.0, 0.0});
  c[Slot::q] = Tensor(DType::f64, {1, 1, 1, 2}, std::vector<double>{0x1.fffffffffffffp+60, 0x1.fffffffffffffp+60});
  c[Slot::k] = Tensor(DType::f64, {1, 1, 2, 2}, std::vector<double>{1, -1, -1, 1});
  const ElementBound bound = attention_bounds(c, tight(DType::f64)).elements.at(0);
  ASSERT_EQ(bound.excuse, Excuse::vacuous);
  int excused = 0, violated = 0;
  for (int step = -96; step <= 96; ++step) {
    const Outcome outcome = judge(c, bound.value + bound.allowed * (1 + step * 0x1p-25), tight(DType::f64)).outcome;
    EXPECT_TRUE(outcome == Outcome::excused || outcome == Outcome::violated) << step << ": " << name_of(outcome);
    excused += outcome == Outcome::excused;
    violated += outcome == Outcome::violated;
  }
  EXPECT_GT(excused, 0);
  EXPECT_GT(violated, 0);
}

TEST(Judge, ExcusesWhatHasNoAnswer) {
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, 1}, {1, 2}, {-infinity, -infinity}), nan_value).reason, "fully masked");
  EXPECT_EQ(judge(row_of(DType::f32, nan_value, {0, 1}, {1, 2}), 1).reason, "not finite");
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, nan_value}, {1, 2}), 1).reason, "not finite");
  EXPECT_EQ(judge(row_of(DType::f32, 1, {0, 1}, {1, infinity}), 1).reason, "not finite");
  EXPECT_EQ(judge(row_of(DType::f32, 1e30, {0, 1e30}, {1, 2}), nan_value).reason, "outside the domain");
  EXPECT_EQ(judge(row_of(DType::f64, 1e200, {1e-200, 1e200}, {1, 2}), nan_value).reason, "outside the domain");
  EXPECT_EQ(judge(row_of(DType::f64, 1, {0, 1}, {1e308, 1.5e308}), infinity).reason, "outside the domain");
  EXPECT_EQ(judge(row_of(DType::f16, 0, {0, 0}, {65504, 65504}), infinity).reason, "outside the domain") << "D4";
}

TEST(Judge, RequiresAnAnswerBesideHiddenPoisonOnlyWhereItIsClaimed) {
  const Case c = row_of(DType::f32, 1, {0, nan_value}, {1, infinity}, {0, -infinity});
  const Arithmetic a = universal_arithmetic(DType::f32, DType::f32);
  EXPECT_EQ(judge(c, nan_value, a).outcome, Outcome::excused);
  EXPECT_EQ(judge(c, nan_value, a, {.ignores_dead_values = true}).outcome, Outcome::violated);
  EXPECT_EQ(judge(c, 1, a, {.ignores_dead_values = true}).outcome, Outcome::held);
}

TEST(Judge, RequiresAnAnswerBesideTheCommonestFiniteMask) {
  // C11: log2(e) times the largest float overflows to -inf, which is its right answer.
  for (const double mask : {-1e4, -1e9, -1e30, -float_max}) {
    const Case c = row_of(DType::f32, 1, {0, 0, 3}, {1, 3, 1e6}, {0, 0, mask});
    EXPECT_EQ(judge(c, 2).outcome, Outcome::held) << mask << ": " << judge(c, 2).reason;
    EXPECT_EQ(judge(c, nan_value, tight(DType::f32)).outcome, Outcome::violated) << mask;
    // A kernel that may fold the maximum into exp2 can meet a block of such masks alone, whose largest weight is then
    // e^(u|m c|): beyond the range for the hugest masks, and NaN is what a correct kernel of that make returns.
    EXPECT_EQ(judge(c, nan_value).outcome, mask >= -1e9 ? Outcome::violated : Outcome::excused) << mask;
    EXPECT_EQ(judge(c, 2.001).outcome, Outcome::violated) << mask;
  }
  const Case f64 = row_of(DType::f64, 1, {0, 0, 3}, {1, 3, 1e6}, {0, 0, -std::numeric_limits<double>::max()});
  EXPECT_EQ(judge(f64, 2).outcome, Outcome::held) << judge(f64, 2).reason;
  EXPECT_EQ(judge(f64, 2 + 1e-9).outcome, Outcome::violated);
}

TEST(Judge, SettlesRowsThatAreFinitelyMaskedThroughout) {
  // C29: the exact answer needs the bits that the mask hides; the bound knows that the kernel cannot have them.
  const Case c = row_of(DType::f32, 1, {0, 5}, {1, 3}, {-1e30, -1e30});
  const Verdict v = judge(c, 2, tight(DType::f32));
  EXPECT_EQ(v.outcome, Outcome::excused) << v.reason;
  const auto facts = exact_elements(c, tight(DType::f32));
  const double exact = 3 - 2 / (1 + std::exp(5.0));
  EXPECT_LE(facts[0].exact.lower, exact + 1e-15);
  EXPECT_GE(facts[0].exact.upper, exact - 1e-15);
  EXPECT_LE(facts[0].exact.upper - facts[0].exact.lower, 1e-15);
  EXPECT_EQ(judge(c, 6, tight(DType::f32)).outcome, Outcome::violated) << "farther than any mean of the values";
  const Case equal = row_of(DType::f32, 1, {0, 5}, {4, 4}, {-1e30, -1e30});
  EXPECT_EQ(judge(equal, 4, tight(DType::f32)).outcome, Outcome::held) << "constant values are judged all the same";
  EXPECT_EQ(judge(equal, 4.0001, tight(DType::f32)).outcome, Outcome::violated);
}

TEST(Judge, KeepsIntegerScoresSharpAtAnyOffset) {
  // Exactness rule: whole numbers within 24 bits and a scale of 1 leave the score no error at all.
  const Case whole = row_of(DType::f32, 1024, {1024, 1024}, {0, 1});
  const Case fractional = row_of(DType::f32, 1024.0001220703125, {1024.0001220703125, 1024.0001220703125}, {0, 1});
  const auto sharp = attention_bounds(whole, tight(DType::f32)).elements[0].allowed;
  const auto loose = attention_bounds(fractional, tight(DType::f32)).elements[0].allowed;
  EXPECT_LT(sharp, 1e-6);
  EXPECT_GT(loose, 1e-2);
  EXPECT_EQ(judge(whole, 0.5, tight(DType::f32)).outcome, Outcome::held);
  EXPECT_EQ(judge(whole, 0.50001, tight(DType::f32)).outcome, Outcome::violated);
}

TEST(Judge, HasNothingToSayOfNothing) {
  Case c = row_of(DType::f32, 1, {0}, {1});
  c[Slot::q] = Tensor(DType::f32, {1, 1, 0, 1});
  EXPECT_EQ(judge(c, 0).outcome, Outcome::held) << "M = 0";
  Case none = row_of(DType::f32, 1, {}, {});
  EXPECT_EQ(judge(none, 0).outcome, Outcome::excused) << "N = 0";
  // Of more columns than a vector has, in a thread that has no memory of other rows: the sanitizers see an offset to
  // what is not there.
  none[Slot::v] = Tensor(DType::f32, {1, 1, 0, 9});
  std::thread([&] {
    for (const ElementBound& element : attention_bounds(none, tight(DType::f32)).elements)
      EXPECT_FALSE(std::isfinite(element.allowed));
  }).join();
}

TEST(Judge, HoldsTheLogSumExpToItsOwnBound) {
  const Case c = row_of(DType::f32, 1, {0, 1}, {1, 1});
  const double lse = std::log1p(std::exp(1.0));
  const Tensor out(DType::f32, c.out_shape(), std::vector<double>{1});
  const auto with = [&](double found) {
    return judge_attention(c, out, Tensor(DType::f64, {1, 1, 1}, std::vector<double>{found}), tight(DType::f32));
  };
  EXPECT_EQ(with(lse).outcome, Outcome::held);
  EXPECT_EQ(with(static_cast<double>(static_cast<float>(lse))).outcome, Outcome::held);
  for (const double wrong : {lse + 1e-4, lse / std::log(2.0), nan_value, infinity, -infinity}) {
    EXPECT_EQ(with(wrong).violation, Violation::lse) << wrong;
    EXPECT_EQ(with(wrong).element, -1);
  }
}

TEST(Judge, HoldsAndViolatesByAHair) {
  const Case c = row_of(DType::f32, 1, {0, 1}, {1, 3});
  Arithmetic a = tight(DType::f32);
  a.output = DType::f64;  // fine enough to come as near as one likes
  const ElementBound e = attention_bounds(c, a).elements[0];
  const auto with = [&](double share) {
    return judge_attention(c, Tensor(DType::f64, c.out_shape(), std::vector<double>{e.value + share * e.allowed}), {},
                           a);
  };
  for (const double sign : {1.0, -1.0}) {
    EXPECT_EQ(with(sign * 0.9999).outcome, Outcome::held);
    EXPECT_EQ(with(sign * 1.0001).outcome, Outcome::violated);
    EXPECT_NEAR(with(sign * 0.9999).utilisation, 0.9999, 1e-5);
    EXPECT_NEAR(with(sign * 1.0001).utilisation, 1.0001, 1e-5);
  }
  const Verdict edge = with(1 - 0x1p-20);  // within the doubt of double and double-double
  EXPECT_NE(edge.outcome, Outcome::excused);
  EXPECT_EQ(edge.level, 3);
}

/// Softmax over two keys with every intermediate tensor in bf16, the scale among them; exponentials and sums in float.
double all_in_bf16(const Case& c, double scale) {
  const auto bf16 = [](double x) { return round_to(DType::bf16, x); };
  double s[2] = {};
  for (std::int64_t j = 0; j < 2; ++j)
    s[j] = bf16(bf16(bf16(c.q()[0] * bf16(scale)) * c.k()[j]) + (c.mask().present() ? c.mask()[j] : 0));
  const float m = static_cast<float>(std::max(s[0], s[1]));
  const float e[2] = {std::exp(static_cast<float>(s[0]) - m), std::exp(static_cast<float>(s[1]) - m)};
  double o = 0;
  for (std::int64_t j = 0; j < 2; ++j) o += bf16(static_cast<double>(e[j] / (e[0] + e[1]))) * c.v()[j];
  return bf16(o);
}

TEST(Judge, AllowsAScaleKeptInTheNarrowFormatOfAScaledQuery) {
  // Of 1/sqrt(58) bf16 keeps 0.87 of the most it can lose, and every rounding after it goes the same way.
  Arithmetic a = tight(DType::bf16);
  a.weights = DType::bf16;
  a.prescaled_q = a.stored_scaled = a.stored_biased = DType::bf16;
  const double scale = inverse_root(58);
  Case c = row_of(DType::bf16, 1.9921875, {31.875, 0}, {0, 1.03125}, {-0.031494140625, 0});
  c.scale = scale;
  const double found = all_in_bf16(c, scale);
  const Verdict verdict = judge(c, found, a);
  EXPECT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
  EXPECT_GT(verdict.utilisation, 0.5);
  EXPECT_EQ(judge(c, all_in_bf16(c, 0.97 * scale), a).outcome, Outcome::violated);
  // A power of two loses nothing, unless log2(e) is folded in; before the scale a bias has a constant of its own.
  const auto profile = [&](double by, bool base2 = false, MaskConvention convention = MaskConvention::post_scale) {
    Arithmetic other = a;
    other.base2 = base2;
    return profile_of(other, {.keys = 2, .dk = 58, .scale = by, .bias = true, .convention = convention});
  };
  EXPECT_EQ(profile(0.125).th_tau, 0);
  EXPECT_GE(profile(0.3).th_tau, 0x1p-8);
  EXPECT_GE(profile(0.125, /*base2=*/true).th_tau, 0x1p-8);
  EXPECT_LT(profile(0.3).u_qpre, 0x1.1p-8);
  EXPECT_GE(profile(0.3, false, MaskConvention::pre_scale).u_qpre, 0x1p-7);
  // In f16 a scale below the normal numbers may be anything.
  a = tight(DType::f16);
  a.prescaled_q = DType::f16;
  Case tiny = row_of(DType::f16, 1000, {2, 1}, {0, 1});
  tiny.scale = 0x1.5p-16;
  EXPECT_EQ(judge(tiny, 0.5, a).reason, "outside the domain");
  a.prescaled_q = std::nullopt;
  EXPECT_EQ(judge(tiny, 0.1, a).outcome, Outcome::violated);
}

// What FLINT caches for a thread goes with the thread, so that the sanitized build sees every number that is lost.
TEST(Judge, LeavesNothingBehindInAThreadThatEnds) {
  for (int threads = 0; threads < 3; ++threads) {
    std::thread([] {
      const Case c = row_of(DType::f64, 1e3, {0.5, 0.25, -1}, {1, 3, 1e6}, {-1e300, -1e300, -1e300});
      for (const int level : {1, 2, 3})
        EXPECT_EQ(judge(c, 7e6, tight(DType::f64), {.first_level = level}).outcome, Outcome::violated);
      (void)exact_elements(c, tight(DType::f64));
    }).join();
  }
}

}  // namespace
}  // namespace attest
