// The oracle at a scalar's own precision: the core's wide scalars are held at it, and a mistake in one of the last
// digits that they promise is violated.
#include "core/oracle/wide_oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/kernel/kernel_under_test.h"
#include "core/scalars/wide.h"
#include "core/support/infinity.h"
#include "core/test/cases.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> opened(const std::string& id) {
  return std::move(open_kernels(id, {}).front());
}

/// Numbers of many sizes; some masked, with biases or booleans, in both conventions.
Case random_case(std::mt19937_64& random) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  std::normal_distribution<double> normal;
  const int spread = between(0, 3) == 0 ? 40 : 2;
  const auto number = [&] { return std::ldexp(normal(random), between(-spread, spread) / 2); };
  const test::CaseSizes sizes{.batch = between(1, 2),
                              .heads = 2,
                              .queries = between(1, 3),
                              .keys = between(1, 9),
                              .dk = between(1, 5),
                              .dv = between(1, 3),
                              .kv_heads = between(1, 2)};
  Case c = test::attention_of(sizes, [&](Slot, const Shape& shape) { return test::filled(DType::f64, shape, number); });
  c.scale = between(0, 1) == 0 ? 1 / std::sqrt(static_cast<double>(sizes.dk)) : 0.3;
  const int mask = between(0, 3);
  const Shape shape{1, sizes.heads, sizes.queries, sizes.keys};
  if (mask == 1) c[Slot::mask] = test::filled(DType::boolean, shape, [&] { return between(0, 3) > 0 ? 1.0 : 0.0; });
  if (mask == 2)
    c[Slot::mask] = test::filled(DType::f64, shape, [&] {
      const int kind = between(0, 5);
      return kind == 0 ? -infinity : kind == 1 ? -1e9 : kind == 2 ? -std::numeric_limits<double>::max() : number();
    });
  if (between(0, 1) == 1) c.mask_convention = MaskConvention::pre_scale;
  if (between(0, 3) == 0) c.causal = Causal::top_left;
  return c;
}

Case random_multihead(std::mt19937_64& random, bool appended) {
  std::normal_distribution<double> normal;
  std::vector<Slot> slots{Slot::q, Slot::k, Slot::v, Slot::w_q, Slot::w_k, Slot::w_v, Slot::b_q, Slot::w_o, Slot::b_o};
  if (appended) slots.insert(slots.end(), {Slot::bias_k, Slot::bias_v});
  const test::CaseSizes sizes{
      .batch = 2, .heads = 2, .queries = 2, .keys = 4, .dk = 2, .dv = 3, .c_q = 3, .c_k = 2, .c_v = 4, .d_o = 3};
  Case c = test::case_of(Operation::multihead, sizes, slots, [&](Slot, const Shape& shape) {
    return test::filled(DType::f64, shape, [&] { return normal(random); });
  });
  c.scale = 0.7;
  return c;
}

/// The answer with 10^-digit times its size added to every element.
Enclosures off_in_digit(const Enclosures& right, int digit) {
  std::vector<WideInterval> wrong;
  Wide off = 1;
  for (int d = 0; d < digit; ++d) off = off * Wide(0.1);  // 0.1 of a double is near enough
  for (std::int64_t e = 0; e < right.elements(); ++e) {
    const Wide moved = right[e].lower + right[e].lower * off;
    wrong.push_back({moved, moved});
  }
  return {right.shape(), std::move(wrong), right.rounding()};
}

constexpr const char* cores[] = {"core:cpp_bin_float_50", "core:cpp_dec_float_100", "core:mpfr",   "core:mpfr@300",
                                 "core:mpfr@2000",        "core:mpfi@300",          "core:arb@100"};

TEST(WideOracle, HoldsTheCoreOnEveryWideScalar) {
  for (const char* const id : cores) {
    const auto kernel = opened(id);
    const AskedPrecision asked(kernel->digits());
    std::mt19937_64 random(5);
    int held = 0;
    double worst = 0;
    for (int n = 0; n < 60; ++n) {
      const Case c = n % 6 == 5 ? random_multihead(random, n % 4 == 1) : random_case(random);
      const Reply reply = kernel->run(c, std::nullopt, false);
      ASSERT_EQ(reply.status, CallStatus::ok) << id << ' ' << reply.message;
      const Verdict verdict = judge_wide(c, *reply.out.as<Enclosures>());
      EXPECT_TRUE(verdict.outcome == Outcome::held || verdict.outcome == Outcome::excused)
          << id << " case " << n << ": " << verdict.reason;
      held += verdict.outcome == Outcome::held;
      worst = std::max(worst, verdict.utilisation);
    }
    EXPECT_GE(held, 50) << id;
    const bool encloses = std::string_view(id).starts_with("core:mpfi") || std::string_view(id).starts_with("core:arb");
    EXPECT_TRUE(!encloses || worst == 0) << id << ' ' << worst;
    EXPECT_TRUE(!std::string_view(id).starts_with("core:mpfr") || worst > 0.02)
        << id << ": loose enough to hide things";
  }
}

TEST(WideOracle, ViolatesAMistakeInOneOfTheLastDigits) {
  struct Promise {
    const char* id;
    int wrong, right;  ///< digits: a mistake in the first is violated, one in the second is a rounding
  };
  for (const auto& [id, wrong, right] :
       {Promise{"core:mpfr", 58, 64}, Promise{"core:mpfr@300", 290, 303}, Promise{"core:mpfr@300", 297, 303},
        Promise{"core:mpfr@2000", 1990, 2003}, Promise{"core:cpp_bin_float_50", 46, 53},
        Promise{"core:cpp_dec_float_100", 97, 104}}) {
    const auto kernel = opened(id);
    const AskedPrecision asked(kernel->digits());
    std::mt19937_64 random(7);
    for (int n = 0; n < 8; ++n) {
      Case c = random_multihead(random, false);
      if (n % 2 == 0) {
        c = test::attention_of({.queries = 2, .keys = 5, .dk = 3, .dv = 2}, [&](Slot, const Shape& shape) {
          return test::filled(DType::f64, shape, [&] { return std::normal_distribution<double>()(random); });
        });
      }
      const Values out = kernel->run(c, std::nullopt, false).out;
      const auto* const own = out.as<Enclosures>();
      const Verdict caught = judge_wide(c, off_in_digit(*own, wrong));
      EXPECT_EQ(caught.outcome, Outcome::violated) << id << " digit " << wrong << " utilisation " << caught.utilisation;
      EXPECT_EQ(caught.violation, Violation::bound);
      EXPECT_GT(caught.utilisation, 1);
      EXPECT_NE(caught.reason.find("in balls of"), std::string::npos) << caught.reason;
      EXPECT_EQ(judge_wide(c, off_in_digit(*own, right)).outcome, Outcome::held) << id << " digit " << right;
    }
  }
}

TEST(WideOracle, ViolatesIntervalsThatDoNotEncloseTheAnswer) {
  const auto kernel = opened("core:mpfi@100");
  const AskedPrecision asked(kernel->digits());
  const Case c = test::one_query(DType::f64, {1}, {0.5, -0.25}, {1, 3});
  const Values out = kernel->run(c, std::nullopt, false).out;
  EXPECT_EQ(judge_wide(c, *out.as<Enclosures>()).outcome, Outcome::held);
  const Verdict caught = judge_wide(c, off_in_digit(*out.as<Enclosures>(), 95));
  EXPECT_EQ(caught.outcome, Outcome::violated);
  const Enclosures all({1, 1, 1, 1}, {{-infinity, infinity}}, WideRounding{});
  EXPECT_EQ(judge_wide(c, all).outcome, Outcome::excused) << "it says nothing";
}

TEST(WideOracle, RequiresANumberAndExcusesWhatHasNoAnswer) {
  Case c = test::one_query(DType::f64, {1}, {0.5, -0.25}, {1, 3});
  const WideRounding rounding{.unit = 0x1p-200L};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto judged = [&](double found) {
    return judge_wide(c, Enclosures({1, 1, 1, 1}, {{Wide(found), Wide(found)}}, rounding));
  };
  EXPECT_EQ(judged(nan).violation, Violation::not_finite);
  EXPECT_EQ(judged(-infinity).violation, Violation::not_finite);
  EXPECT_EQ(judged(0).violation, Violation::bound);
  c[Slot::mask] = test::filled(DType::boolean, {1, 1, 1, 2}, [] { return 0.0; });
  EXPECT_EQ(judged(nan).outcome, Outcome::excused);
  c[Slot::mask] = {};
  c[Slot::v].set(0, nan);
  EXPECT_EQ(judged(1).outcome, Outcome::excused);
}

// Of rows of which nothing is said nobody has looked at any number, from the first on.
TEST(WideOracle, SaysNothingOfPaddingAndOfMasksThatKernelsDraw) {
  Case c = test::attention_of({.batch = 2, .queries = 2, .keys = 2}, [&](Slot, const Shape& shape) {
    return test::filled(DType::f64, shape, [] { return 0.5; });
  });
  c.scale = 1;
  c[Slot::q_lengths] = Tensor(DType::i32, {2}, std::vector<double>{0, 2});
  const std::vector<WideBound> padded = wide_bounds(c, {.unit = 0x1p-200L});
  ASSERT_EQ(padded.size(), 4 * static_cast<std::size_t>(c.v().shape()[3]));
  for (std::size_t e = 0; e < padded.size(); ++e) {
    const bool first = e < padded.size() / 2;
    EXPECT_EQ(padded[e].excuse, first ? Excuse::padding : Excuse::none) << e;
    EXPECT_EQ(std::isinf(padded[e].allowed), first) << e;
  }
  c[Slot::q_lengths] = {};
  c.dropout_p = 0.5;
  for (const WideBound& element : wide_bounds(c, {.unit = 0x1p-200L})) {
    EXPECT_EQ(element.excuse, Excuse::own_dropout);
    EXPECT_EQ(element.allowed, infinity);
  }
}

// What scores of 10^90 in 61 digits leave unknown is all of the weights.
TEST(WideOracle, ExcusesScoresBeyondThePrecision) {
  const auto kernel = opened("core:mpfr");
  const Case c = test::one_query(DType::f64, {1e30, 1}, {1e60, 3e59, 1e60, 1e59}, {1, 3});
  const Values out = kernel->run(c, std::nullopt, false).out;
  EXPECT_EQ(judge_wide(c, *out.as<Enclosures>()).outcome, Outcome::excused);
  const auto more = opened("core:mpfr@200");
  const AskedPrecision asked(200);
  const Values known = more->run(c, std::nullopt, false).out;
  EXPECT_EQ(judge_wide(c, *known.as<Enclosures>()).outcome, Outcome::held);
}

}  // namespace
}  // namespace attest
