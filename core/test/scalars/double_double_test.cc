// The loops of the oracle's double-double level, against MPFR and exact arithmetic.
#include <gtest/gtest.h>
#include <mpfr.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/rows/double_double_row.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

/// A number of MPFR of 2300 bits: sums of a few products are exact between 2^-1100 and 2^1100.
class Real {
 public:
  Real() { mpfr_init2(x_, 2300); }
  explicit Real(double value) : Real() { mpfr_set_d(x_, value, MPFR_RNDN); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  ~Real() { mpfr_clear(x_); }
  void add(double value) { mpfr_add_d(x_, x_, value, MPFR_RNDN); }
  void add_product(double a, double b) {
    Real product(a);
    mpfr_mul_d(product.x_, product.x_, b, MPFR_RNDN);
    mpfr_add(x_, x_, product.x_, MPFR_RNDN);
  }
  [[nodiscard]] double value() const { return mpfr_get_d(x_, MPFR_RNDN); }

 private:
  mpfr_t x_;
};

std::vector<const InnerLoops*> all_loops() {
  std::vector<const InnerLoops*> found;
  for (const char* name : {"baseline", "avx2"})
    if (const InnerLoops* loops = inner_loops_named(name)) found.push_back(loops);
  return found;
}

/// sign * 1.random * 2^e, e in [low, high].
double random_double(std::mt19937_64& random, int low, int high) {
  const double fraction = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
  const int e = std::uniform_int_distribution<int>(low, high)(random);
  return std::ldexp(random() & 1 ? fraction : -fraction, e);
}

/// Greatest |exp_dd(y) - exp(y)| / exp(y), after 2^-1074 is forgiven, for y = high + low with high drawn by `draw`.
template <class Draw>
double worst_exp_error(const InnerLoops& loops, int count, Draw&& draw) {
  constexpr int batch = 1024;
  std::vector<double> high(batch), low(batch), w(batch), w_low(batch);
  mpfr_t y, exact, found;
  mpfr_inits2(160, y, exact, found, nullptr);
  double worst = 0;
  for (int done = 0; done < count; done += batch) {
    for (int i = 0; i < batch; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const DoubleDouble drawn = draw();
      w[at] = high[at] = drawn.high;
      w_low[at] = low[at] = drawn.low;
    }
    loops.exp_dd(w.data(), w_low.data(), batch);
    for (std::size_t i = 0; i < batch; ++i) {
      mpfr_set_d(y, high[i], MPFR_RNDN);
      mpfr_add_d(y, y, low[i], MPFR_RNDN);
      mpfr_exp(exact, y, MPFR_RNDN);
      mpfr_set_d(found, w[i], MPFR_RNDN);
      mpfr_add_d(found, found, w_low[i], MPFR_RNDN);
      mpfr_sub(found, found, exact, MPFR_RNDN);
      const double error = std::max(0.0, std::fabs(mpfr_get_d(found, MPFR_RNDN)) - 0x1p-1074);
      const double relative = error / mpfr_get_d(exact, MPFR_RNDN);
      worst = relative <= worst ? worst : relative;  // NaN stays
    }
  }
  mpfr_clears(y, exact, found, nullptr);
  return worst;
}

TEST(DoubleDouble, ExpIsWithinItsDeclaredErrorEverywhere) {
  for (const InnerLoops* loops : all_loops()) {
    std::mt19937_64 random(7);
    const auto uniform = [&](double from, double to) {
      return std::uniform_real_distribution<double>(from, to)(random);
    };
    const auto with_low = [&](double high) { return two_sum(high, uniform(-1, 1) * 0x1p-53 * std::fabs(high)); };
    EXPECT_LE(worst_exp_error(*loops, 60000, [&] { return with_low(uniform(-40, 1)); }), 0x1p-86);
    EXPECT_LE(worst_exp_error(*loops, 60000, [&] { return with_low(uniform(-707.99, 1)); }), 0x1p-86);
    // Multiples of half of ln 2, where the reduction is at its worst, and results whose low part is subnormal.
    EXPECT_LE(worst_exp_error(
                  *loops, 60000,
                  [&] { return with_low(-0.34657359027997264 * std::floor(uniform(0, 2042)) + uniform(-1e-9, 1e-9)); }),
              0x1p-86);
    EXPECT_LE(worst_exp_error(*loops, 40000, [&] { return with_low(uniform(-707.99, -660)); }), 0x1p-86);
    EXPECT_LE(worst_exp_error(*loops, 60000, [&] { return with_low(-std::fabs(random_double(random, -1074, -3))); }),
              0x1p-86);
    const auto at_once = [&](DoubleDouble y) {
      std::array<double, padding> high{}, low{};
      high[0] = y.high, low[0] = y.low;
      loops->exp_dd(high.data(), low.data(), 1);
      return DoubleDouble{high[0], low[0]};
    };
    for (const double zero : {0.0, -0.0}) {
      EXPECT_EQ(at_once({zero, 0}).high, 1.0);
      EXPECT_EQ(at_once({zero, 0}).low, 0.0);
    }
    for (const double gone : {-708.0, -745.2, -1e5, -1e9, -3.4028234663852886e38, -1.7976931348623157e308, -infinity}) {
      EXPECT_EQ(at_once({gone, 0}).high, 0.0) << gone;
      EXPECT_EQ(at_once({gone, 0}).low, 0.0) << gone;
    }
    EXPECT_GT(at_once({-707.9999, 0}).high, 0.0);
  }
}

TEST(DoubleDouble, ProductsAndSumsLoseNothing) {
  std::mt19937_64 random(8);
  std::array<double, panel_width> high{}, low{};
  for (const InnerLoops* loops : all_loops()) {
    for (int round = 0; round < 20000; ++round) {
      const double a = random_double(random, -480, 490), b = random_double(random, -480, 490);
      // One product; then a sum, as a product by one each.
      std::array<double, 2 * panel_width> panel{};
      panel[3] = b;
      loops->dots_dd(&a, 1, panel.data(), 1, high.data(), low.data());
      Real left(high[3]);
      left.add(low[3]);
      left.add_product(-a, b);
      EXPECT_EQ(left.value(), 0.0);

      const DoubleDouble product = two_product(a, b);
      EXPECT_EQ(product.high, a * b);
      EXPECT_EQ(product.low, std::fma(a, b, -product.high));

      const std::array<double, 2> terms{a, std::ldexp(b, round % 120 - 60)};
      panel[3] = panel[panel_width + 3] = 1;
      loops->dots_dd(terms.data(), 2, panel.data(), 1, high.data(), low.data());
      Real sum(high[3]);
      sum.add(low[3]);
      sum.add(-terms[0]);
      sum.add(-terms[1]);
      EXPECT_EQ(sum.value(), 0.0);
    }
  }
}

TEST(DoubleDouble, WhatOverflowsIsNotFinite) {
  std::array<double, panel_width> high{}, low{};
  std::array<double, panel_width> panel{};
  for (const InnerLoops* loops : all_loops()) {
    for (const auto& [a, b] : {std::pair{0x1p600, 0x1p600}, {0x1.8p1023, 0x1p-10}, {0x1p-10, 0x1.fffffffffffffp1023}}) {
      panel[0] = b;
      loops->dots_dd(&a, 1, panel.data(), 1, high.data(), low.data());
      const bool finite = std::isfinite(high[0]) && std::isfinite(low[0]);
      EXPECT_TRUE(!finite || high[0] + low[0] == a * b) << a << " " << b;
    }
  }
}

TEST(DoubleDouble, SumsOfProductsAreWithinTheirBound) {
  std::mt19937_64 random(9);
  for (const InnerLoops* loops : all_loops()) {
    for (int round = 0; round < 150; ++round) {
      const int n = 1 + static_cast<int>(random() % 300), spread = 1 << (round % 9);
      std::vector<double> q(static_cast<std::size_t>(n)), panel(static_cast<std::size_t>(n * panel_width));
      std::vector<double> weight_low(q.size());
      for (double& x : q) x = random_double(random, -spread / 2, spread / 2);
      for (double& x : panel) x = random_double(random, -spread / 2, spread / 2);
      // Near cancellation in a third of the rows: the second half is the first with the sign turned.
      if (round % 3 == 0)
        for (int c = n / 2; c < 2 * (n / 2); ++c) {
          q[static_cast<std::size_t>(c)] = -q[static_cast<std::size_t>(c - n / 2)];
          for (int j = 0; j < panel_width; ++j)
            panel[static_cast<std::size_t>(c * panel_width + j)] =
                panel[static_cast<std::size_t>((c - n / 2) * panel_width + j)] * (1 + (c % 2 ? 0x1p-50 : 0));
        }
      for (std::size_t c = 0; c < q.size(); ++c) weight_low[c] = q[c] * 0x1p-54 * (random() & 1 ? 1 : -0.7);
      std::array<double, panel_width> high{}, low{}, o{}, o_low{};
      loops->dots_dd(q.data(), n, panel.data(), 1, high.data(), low.data());
      // The panel of one block of keys is as well the values of n keys with 16 columns.
      loops->combine_dd(q.data(), weight_low.data(), nullptr, n, panel.data(), panel_width, o.data(), o_low.data());
      for (std::size_t j = 0; j < panel_width; ++j) {
        Real dot(high[j]), combined(o[j]);
        dot.add(low[j]);
        combined.add(o_low[j]);
        double size = 0;
        for (std::size_t c = 0; c < q.size(); ++c) {
          const double value = panel[c * panel_width + j];
          dot.add_product(-q[c], value);
          combined.add_product(-q[c], value);
          combined.add_product(-weight_low[c], value);
          size += std::fabs(q[c] * value);
        }
        const double allowed = (n + 4.0) * (n + 4.0) / 2 * 0x1p-106 * size;
        EXPECT_LE(std::fabs(dot.value()), allowed);
        EXPECT_LE(std::fabs(combined.value()), allowed);
      }
    }
  }
}

}  // namespace
}  // namespace attest::detail
