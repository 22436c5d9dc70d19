// Numbers and their agreement: what is allowed covers the rounding of the expression itself, and NaN never passes.
#include "properties/language/numbers.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "core/scalars/mpfi.h"
#include "core/support/infinity.h"
#include "core/test/cases.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/test/inspect.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

Numbers given(std::initializer_list<double> values, double allowed = 0) {
  const std::vector<double> list(values);
  return Numbers({static_cast<std::int64_t>(list.size())}, list).loosened(allowed);
}

TEST(Numbers, ExpressionsAllowForTheirOwnRounding) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 500; ++round) {
    std::vector<double> a(6), b(6), m(6);
    for (auto* list : {&a, &b, &m})
      for (double& x : *list) x = std::ldexp(normal(random), static_cast<int>(random() % 80) - 40);
    const Numbers x({2, 3}, a), y({2, 3}, b);
    const Numbers sum = x.plus(y), product = x.times(m, 3, 2), scaled = x.scaled(1.1);
    EXPECT_EQ(product.shape(), (Shape{2, 2}));
    for (std::int64_t e = 0; e < 6; ++e) {
      const auto at = static_cast<std::size_t>(e);
      const Wide exact_sum = Wide(a[at]) + b[at], exact_scaled = Wide(a[at]) * 1.1;
      EXPECT_LE(abs(exact_sum - sum.value(e)), sum.allowed(e));
      EXPECT_LE(abs(exact_scaled - scaled.value(e)), scaled.allowed(e));
      EXPECT_LE(scaled.allowed(e), 0x1p-52 * std::fabs(scaled.value(e)) + 1e-300);
    }
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t c = 0; c < 2; ++c) {
        Wide exact = 0;
        double size = 0;
        for (std::int64_t j = 0; j < 3; ++j) {
          const double u = a[static_cast<std::size_t>(i * 3 + j)], v = m[static_cast<std::size_t>(j * 2 + c)];
          exact += Wide(u) * v;
          size += std::fabs(u * v);
        }
        const std::int64_t e = i * 2 + c;
        EXPECT_LE(abs(exact - product.value(e)), product.allowed(e));
        EXPECT_LE(product.allowed(e), 8 * 0x1p-53 * size + 1e-300);
      }
    }
  }
}

TEST(Agree, AcceptsUpToTheSumOfBothBounds) {
  EXPECT_EQ(agree({given({1.0}, 0.25), given({1.5}, 0.25)}).outcome, Outcome::held);
  const Verdict beyond = agree({given({1.0, 3.0}, 0.25), given({1.6, 3.0}, 0.25)});
  EXPECT_EQ(beyond.outcome, Outcome::violated);
  EXPECT_EQ(beyond.element, 0);
  EXPECT_NEAR(beyond.utilisation, 1.2, 1e-9);
  EXPECT_NE(beyond.reason.find("differ by 0.6; 0.5 is allowed"), std::string::npos) << beyond.reason;
  EXPECT_EQ(agree({given({1.0}), given({1.0})}).utilisation, 0);
  EXPECT_EQ(agree({given({1.0}), given({std::nextafter(1.0, 2.0)})}).outcome, Outcome::violated);
}

TEST(Agree, NeverAcceptsNaNOrInfinity) {
  for (const double bad : {nan_value, infinity, -infinity}) {
    EXPECT_EQ(agree({given({bad}, 1e300), given({1.0}, 1e300)}).outcome, Outcome::violated) << bad;
    EXPECT_EQ(agree({given({1.0}, 1e300), given({bad}, 1e300)}).outcome, Outcome::violated) << bad;
    EXPECT_EQ(agree({given({bad}, 1e300), given({bad}, 1e300)}).outcome, Outcome::violated) << bad;
    EXPECT_EQ(within(given({bad}, 1), given({0}), given({1})).outcome, Outcome::violated) << bad;
  }
  EXPECT_EQ(agree({given({infinity}), given({-infinity})}).outcome, Outcome::violated);
  EXPECT_EQ(agree({given({1.0}, nan_value), given({2.0})}).outcome, Outcome::violated)
      << "a bound that is not a number";
}

TEST(Agree, AnInfiniteToleranceSaysNothing) {
  EXPECT_EQ(agree({given({1.0}, infinity), given({2.0})}).outcome, Outcome::excused);
  EXPECT_EQ(agree({given({1.0}), given({1.0}, infinity)}).outcome, Outcome::excused);
  EXPECT_EQ(within(given({0.5}, infinity), given({0}), given({1})).outcome, Outcome::excused);
  EXPECT_EQ(agree({given({nan_value}, infinity), given({2.0})}).outcome, Outcome::violated);
  const long double apart[] = {infinity};
  EXPECT_EQ(agree_to_within({given({1.0}), given({2.0})}, apart).outcome, Outcome::excused);
}

TEST(Agree, WithinIsAnIntervalWidenedByWhatIsAllowed) {
  EXPECT_EQ(within(given({1.0, -0.1}, 0.125), given({0, 0}), given({1, 1})).outcome, Outcome::held);
  EXPECT_EQ(within(given({1.2}, 0.125), given({0}), given({1})).outcome, Outcome::violated);
  EXPECT_EQ(within(given({-0.2}, 0.125), given({0}), given({1})).outcome, Outcome::violated);
}

Case small_case(DType dtype) {
  double e = 0;
  Case c =
      test::attention_of({.heads = 2, .queries = 3, .keys = 4, .dk = 2, .dv = 2}, [&](Slot slot, const Shape& shape) {
        return test::filled(dtype, shape, [&] { return slot == Slot::q ? 0.5 : slot == Slot::k ? 0.25 : e++; });
      });
  c.scale = 0.5;
  return c;
}

TEST(Result, RearrangesLikeATensor) {
  const auto kernel = toy_kernel(Bug::none);
  const Result all = run(*kernel, small_case(DType::f64));
  EXPECT_EQ(all.shape(), (Shape{1, 2, 3, 2}));
  const Result part = all.heads({1}).queries({2, 0}).columns({1});
  EXPECT_EQ(part.shape(), (Shape{1, 1, 2, 1}));
  EXPECT_EQ(part.origin(0), (1 * 3 + 2) * 2 + 1);
  EXPECT_EQ(part.origin(1), (1 * 3 + 0) * 2 + 1);
  EXPECT_EQ(all.without_query(1).shape(), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(all.without_query(1).origin(2), 4);
  EXPECT_EQ(agree({all, all.queries({0, 1})}, Match::bound).outcome, Outcome::violated) << "of another shape";
}

TEST(Result, IsSkippedWhereTheManifestRulesTheArrangementOut) {
  Manifest manifest = toy_manifest();
  manifest.max_keys = 3;
  const auto kernel = toy_kernel(Bug::none, manifest);
  try {
    (void)run(*kernel, small_case(DType::f64));
    FAIL();
  } catch (const NoAnswer& none) {
    EXPECT_EQ(none.verdict.outcome, Outcome::skipped);
    EXPECT_NE(none.verdict.reason.find("max_keys"), std::string::npos);
  }
}

TEST(Result, OfWideScalarsKeepsEveryDigit) {
  for (const char* const id : {"core:cpp_bin_float_100", "core:mpfr", "core:mpfi", "core:arb"}) {
    const auto kernel = std::move(open_kernels(id, {}).front());
    ASSERT_TRUE(kernel->is_wide()) << id;
    Case c = small_case(DType::f64);
    c[Slot::q].set(0, 0.1);
    c[Slot::k].set(0, 0.7);
    const Result result = run(*kernel, c);
    const Reply rounded = kernel->run(c);
    const Numbers numbers(result);
    bool beyond_double = false;
    for (std::int64_t e = 0; e < numbers.elements(); ++e) {
      EXPECT_EQ(numbers.value(e), rounded.out[e]) << id;
      const WideInterval x = numbers.enclosure(e);
      EXPECT_LE(x.lower, x.upper);
      beyond_double = beyond_double || x.lower != Wide(numbers.value(e));
      if (std::string_view(id) != "core:mpfi" && std::string_view(id) != "core:arb") {
        EXPECT_EQ(x.lower, x.upper);
        EXPECT_GT(numbers.allowed(e), 0);
        EXPECT_LT(numbers.allowed(e), 1e-45);
      } else {
        EXPECT_EQ(numbers.allowed(e), 0);
      }
    }
    EXPECT_TRUE(beyond_double) << id;
    EXPECT_EQ(agree({result, result}, Match::bits).outcome, Outcome::held);
    EXPECT_EQ(agree({numbers, numbers.scaled(1 + 0x1p-52)}).outcome, Outcome::violated) << id;
  }
}

TEST(Agree, BitsAndValuesDifferOnTheSignOfZero) {
  Manifest manifest = toy_manifest();
  int calls = 0;
  const auto kernel = function_kernel("toy", manifest, [&](const attest_problem&, attest_result& r, std::string&) {
    for (std::int64_t e = 0; e < 12; ++e) store_element(r.out.data, DType::f64, e, calls % 2 == 0 ? 0.0 : -0.0);
    ++calls;
    return ATTEST_OK;
  });
  const Result plus = run(*kernel, small_case(DType::f64));
  calls = 1;
  const Result minus = run(*kernel, small_case(DType::f64));
  EXPECT_EQ(agree({plus, minus}, Match::values).outcome, Outcome::held);
  const Verdict bits = agree({plus, minus}, Match::bits);
  EXPECT_EQ(bits.outcome, Outcome::violated);
  EXPECT_NE(bits.reason.find("11 more elements differ"), std::string::npos) << bits.reason;
  const Verdict reported = agree({plus, minus}, Match::bound, /*about_bits=*/true);
  EXPECT_EQ(reported.bits_agreed, 0);
  EXPECT_EQ(reported.bits_compared, 12);
}

}  // namespace
}  // namespace attest
