// The levels of the oracle against each other: what double and double-double enclose, balls must confirm, for every
// kind of row that error-bounds.md section 3 lists; and the loops for this machine against those for any.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <string>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/support/infinity.h"
#include "core/test/names.h"

namespace attest::detail {
namespace {

struct Regime {
  const char* name;
  double spread = 1, offset = 0, value_offset = 0, value_size = 1;
  bool ties = false, one_hot = false, heavy = false, masked = false, dominant = false;
  friend void PrintTo(const Regime& regime, std::ostream* out) { *out << regime.name; }
};

constexpr Regime regimes[] = {{.name = "gauss 0.1", .spread = 0.1},
                              {.name = "gauss 1"},
                              {.name = "gauss 10", .spread = 10},
                              {.name = "heavy", .heavy = true},
                              {.name = "ties", .ties = true},
                              {.name = "dominant", .dominant = true},
                              {.name = "offset", .offset = 1000},
                              {.name = "subnormal weights, huge values", .spread = 40, .value_size = 1e30},
                              {.name = "masked", .masked = true},
                              {.name = "offset values", .value_offset = 2980},
                              {.name = "one-hot values", .one_hot = true}};

Head random_head(std::mt19937_64& random, const Regime& r, Tensor& mask, bool singles = false) {
  std::normal_distribution<double> normal;
  const auto integer = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const auto draw = [&](double size) {
    const double x = r.heavy ? normal(random) / std::max(1e-3, std::fabs(normal(random))) : normal(random);
    return static_cast<double>(static_cast<float>(x * size));
  };
  Head head;
  head.queries = 2, head.keys = integer(1, 40), head.dk = integer(1, 20), head.dv = integer(1, 9);
  if (singles) head.queries = integer(1, 6), head.keys = integer(32, 300), head.dk = integer(1, 70);
  head.singles = singles;
  head.stride = singles ? (head.dv + 7) / 8 * 8 : (head.dv + 3) / 4 * 4;
  head.scale = 1 / std::sqrt(static_cast<double>(head.dk));
  for (std::int64_t e = 0; e < head.queries * head.dk; ++e) head.q.push_back(draw(r.spread));
  for (std::int64_t e = 0; e < head.keys * head.dk; ++e) head.k.push_back(draw(1));
  if (r.offset > 0)
    for (std::int64_t j = 0; j < head.keys; ++j) {
      head.k[static_cast<std::size_t>(j * head.dk)] = 1;
      for (std::int64_t i = 0; i < head.queries; ++i) head.q[static_cast<std::size_t>(i * head.dk)] = r.offset;
    }
  if (r.ties)
    for (std::size_t e = static_cast<std::size_t>(head.dk); e < head.k.size(); ++e)
      head.k[e] = head.k[e - static_cast<std::size_t>(head.dk)];
  if (r.dominant)
    for (std::int64_t c = 0; c < head.dk; ++c)
      head.k[static_cast<std::size_t>(c)] = 4 * head.q[static_cast<std::size_t>(c)];
  head.v.assign(static_cast<std::size_t>(head.keys * head.stride), 0.0);
  const std::int64_t hot = integer(0, head.keys - 1);
  for (std::int64_t j = 0; j < head.keys; ++j)
    for (std::int64_t k = 0; k < head.dv; ++k)
      head.v[static_cast<std::size_t>(j * head.stride + k)] =
          r.one_hot ? (j == hot ? 1.0 : 0.0) : draw(r.value_size) + r.value_offset;
  for (double& value : head.v) value = static_cast<double>(static_cast<float>(value));
  if (r.masked) {
    mask = Tensor(DType::f32, {1, 1, head.queries, head.keys});
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const std::int64_t kind = integer(0, 5);
      const double values[] = {0, draw(1), -infinity, -1e4, -1e9, -3.4028234663852886e38};
      mask.set(e, values[kind]);
    }
    for (std::int64_t i = 0; i < head.queries; ++i) mask.set(i * head.keys, draw(1));
    head.mask = &mask;
    head.bias = true;
  }
  head.prepare();
  return head;
}

Profile profile_for(const Head& head, DType dtype) {
  return profile_of(universal_arithmetic(dtype, dtype),
                    {.keys = head.keys, .dk = head.dk, .scale = head.scale, .bias = head.bias});
}

class Levels : public ::testing::TestWithParam<Regime> {};

TEST_P(Levels, EncloseTheExactValue) {
  const Regime& regime = GetParam();
  std::mt19937_64 random(11);
  double tightest_double = 0, tightest_pair = 0;
  int rows = 0, by_pair = 0;
  for (int round = 0; round < 300; ++round) {
    Tensor mask;
    const Head head = random_head(random, regime, mask);
    const Profile profile = profile_for(head, DType::f32);
    RowOracle oracle;
    for (std::int64_t i = 0; i < head.queries; ++i) {
      if (oracle.start(head, i, profile, false, true, 4096) != Excuse::none || oracle.level() != 1) continue;
      ++rows;
      BallRow balls;
      balls.evaluate(head, oracle.row(), 256);
      ASSERT_TRUE(balls.settled);
      double lower = 0, upper = 0;
      for (std::int64_t k = 0; k < head.dv; ++k) {
        balls.distance(k, oracle.value(k), lower, upper);
        const double certificate = oracle.element(k).certificate;
        EXPECT_LE(upper, certificate) << regime.name << " round " << round;
        tightest_double = std::max(tightest_double, upper / certificate);
        EXPECT_LE(certificate, 0x1p-20 * oracle.element(k).allowed) << "a certificate that decides nothing";
      }
      balls.lse_distance(oracle.lse(), lower, upper);
      EXPECT_LE(upper, oracle.lse_certificate()) << regime.name;
      if (!oracle.evaluate_double_double()) continue;
      ++by_pair;
      for (std::int64_t k = 0; k < head.dv; ++k) {
        double least = 0, most = 0;
        // The distance between a number near the answer, by double-double, and the same by balls.
        const double found = oracle.value(k) * (1 + 0x1p-45);
        oracle.distance(k, found, least, most);
        balls.distance(k, found, lower, upper);
        EXPECT_LE(lower, most) << regime.name;
        EXPECT_GE(upper, least) << regime.name;
        EXPECT_LE(most - least, 0x1p-47 * oracle.element(k).allowed) << "no sharper than double";
        oracle.distance(k, oracle.value(k), least, most);
        balls.distance(k, oracle.value(k), lower, upper);
        EXPECT_LE(lower, most);
        EXPECT_GE(upper, least);
        if (most > least)
          tightest_pair = std::max(tightest_pair, std::fabs(upper - (most + least) / 2) / (most - least));
      }
    }
  }
  EXPECT_GT(rows, 100);
  EXPECT_EQ(by_pair, rows);
  RecordProperty("tightest_double", std::to_string(tightest_double));
  RecordProperty("tightest_double_double", std::to_string(tightest_pair));
}

INSTANTIATE_TEST_SUITE_P(AllRegimes, Levels, ::testing::ValuesIn(regimes),
                         [](const auto& spec) { return test::name_of_test(spec.param.name); });

/// As Head::load multiplies q, keys and values by factors, some of which are powers of two.
void multiply(std::mt19937_64& random, Head& head) {
  const auto factor = [&] {
    const double power = std::exp2(static_cast<double>(random() % 9) - 4);
    return random() % 3 == 0 ? power : static_cast<double>(static_cast<float>(power / 0.7));
  };
  const auto range = [](const std::vector<double>& of) {
    return DescaleInputs::Of{true, std::ranges::min(of), std::ranges::max(of)};
  };
  const auto times = [](std::vector<double>& rows, const std::vector<double>& factors, std::int64_t width) {
    for (std::size_t e = 0; e < rows.size(); ++e) rows[e] *= factors[e / static_cast<std::size_t>(width)];
  };
  const auto drawn = [&](std::int64_t rows, std::int64_t block) {
    std::vector<double> factors;
    factors.reserve(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) factors.push_back(i % block == 0 ? factor() : factors.back());
    return factors;
  };
  const std::vector<double> of_q = drawn(head.queries, 2);
  head.v_factors = drawn(head.keys, 16);
  head.k_factors = drawn(head.keys, 1 + static_cast<std::int64_t>(random() % 40));
  times(head.q, of_q, head.dk), times(head.k, head.k_factors, head.dk), times(head.v, head.v_factors, head.stride);
  head.descale = {.q = range(of_q), .k = range(head.k_factors), .v = range(head.v_factors)};
  head.k_factors.resize(head.k_factors.size() + 64, 1), head.v_factors.resize(head.v_factors.size() + 64, 1);
  head.prepare();
}

TEST_P(Levels, SumsInSinglesOnlyRaiseTheBound) {
  const Regime& regime = GetParam();
  std::mt19937_64 random(12);
  // One for all heads, as in use: nothing of the last head may be taken for the present one.
  RowOracle fast, slow;
  double raised = 1, raised_by_factors = 1;
  int rows = 0;
  for (int round = 0; round < 60; ++round) {
    Tensor mask;
    Head head = random_head(random, regime, mask, /*singles=*/true);
    const bool has_factors = round % 2 == 1;
    if (has_factors) multiply(random, head);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Profile profile = profile_for(head, dtype);
      Head doubles = head;
      doubles.singles = false;
      doubles.prepare();
      for (std::int64_t i = 0; i < head.queries; ++i) {
        ASSERT_EQ(fast.start(head, i, profile, false, true, 4096), slow.start(doubles, i, profile, false, true, 4096));
        if (slow.level() != 1 || fast.level() != 1) continue;
        ++rows;
        for (std::int64_t k = 0; k < head.dv; ++k) {
          const double ratio = fast.element(k).allowed / slow.element(k).allowed;
          EXPECT_GE(ratio, 1 - 0x1p-40) << regime.name << " round " << round;
          EXPECT_EQ(fast.element(k).excuse, slow.element(k).excuse);
          EXPECT_NEAR(fast.value(k), slow.value(k), fast.certificate(k) + slow.certificate(k));
          double& most = has_factors ? raised_by_factors : raised;
          most = std::max(most, ratio);
        }
        EXPECT_GE(fast.terms().lse_allowed, slow.terms().lse_allowed * (1 - 0x1p-40));
      }
    }
  }
  EXPECT_GT(rows, 100);
  EXPECT_LE(raised, 1 + 0x1p-17) << regime.name;
  // A product that is rounded to a float costs what a centre does.
  EXPECT_LE(raised_by_factors, 1 + 0x1p-9) << regime.name;
  RecordProperty("raised", std::to_string(raised - 1));
}

/// Values one unit in the last place of a float apart, so that the answer lies between two floats, and their products
/// with factors do as well; scores so large that S is a visible part of the bound.
void expect_rounding_paid_for(bool factors) {
  std::mt19937_64 random(13);
  Tensor mask;
  const Regime regime{.name = "large scores", .spread = 4e5};
  for (int round = 0; round < 20; ++round) {
    Head head = random_head(random, regime, mask, /*singles=*/true);
    for (std::size_t e = 0; e < head.k.size(); ++e)
      head.k[e] = static_cast<double>(static_cast<float>(1e-5 * head.k[e]));
    for (std::size_t e = 0; e < head.v.size(); ++e) head.v[e] = random() % 10 < 3 ? 2980 + 0x1p-12 : 2980;
    if (factors) {
      head.v_factors.assign(static_cast<std::size_t>(head.keys) + 64, 1);
      for (std::int64_t j = 0; j < head.keys; ++j) {
        head.v_factors[static_cast<std::size_t>(j)] = 1 + static_cast<double>(random() % 4) * 0x1p-23;
        for (std::int64_t k = 0; k < head.stride; ++k)
          head.v[static_cast<std::size_t>(j * head.stride + k)] *= head.v_factors[static_cast<std::size_t>(j)];
      }
      head.descale.v = {true, 1, 1 + 0x1p-21};
    }
    for (std::int64_t i = 0; i < head.queries; ++i)  // an offset common to all keys
      for (std::int64_t j = 0; j < head.keys; ++j) head.k[static_cast<std::size_t>(j * head.dk)] = 1;
    head.prepare();
    Head doubles = head;
    doubles.singles = false;
    doubles.prepare();
    const Profile profile = profile_for(head, DType::f32);
    RowOracle fast, slow;
    for (std::int64_t i = 0; i < head.queries; ++i) {
      ASSERT_EQ(fast.start(head, i, profile, false, false, 4096), slow.start(doubles, i, profile, false, false, 4096));
      if (slow.level() != 1 || fast.level() != 1) continue;
      for (std::int64_t k = 0; k < head.dv; ++k)
        EXPECT_GE(fast.element(k).allowed / slow.element(k).allowed, 1 - 0x1p-40) << round;
    }
  }
}

TEST(Singles, CentreAtARoundedValueIsPaidFor) {
  expect_rounding_paid_for(/*factors=*/false);
}
TEST(Singles, ProductsThatAreRoundedArePaidFor) {
  expect_rounding_paid_for(/*factors=*/true);
}

TEST(Exponentials, ErrLessThanDeclared) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> wide(-707.9, 0), narrow(-1, 0);
  std::vector<double> s, w;
  for (int i = 0; i < 20000; ++i) s.push_back(i % 2 ? wide(random) : narrow(random));
  s[0] = 0, s[1] = -0.0, s[2] = -1e300, s[3] = -708.0000001, s[4] = -707.9999999;
  s.resize(s.size() + 3, -3.5);  // a length that is no multiple of the lanes
  for (const char* name : {"baseline", "avx2"}) {
    const InnerLoops* loops = inner_loops_named(name);
    if (!loops) continue;
    w.assign(s.size() + padding, -1.0);
    const double sum = loops->weights(s.data(), static_cast<std::int64_t>(s.size()), 0, w.data());
    EXPECT_EQ(w[s.size()], -1.0) << "wrote beyond the end";
    std::vector<double> hi = s, lo(static_cast<std::size_t>(padded(static_cast<std::int64_t>(s.size()))));
    hi.resize(lo.size());
    for (std::size_t j = 0; j < s.size(); ++j) lo[j] = s[j] * 0x1p-55;
    loops->exp_dd(hi.data(), lo.data(), static_cast<std::int64_t>(s.size()));
    double total = 0;
    for (std::size_t j = 0; j < s.size(); ++j) {
      total += w[j];
      if (s[j] <= -708) {
        EXPECT_EQ(w[j], 0) << name;
        EXPECT_EQ(hi[j], 0) << name;
        continue;
      }
      Ball x, d, rest;
      arb_set_d(x, s[j]);
      arb_exp(d, x, 200);
      arb_set_d(rest, w[j]);
      arb_div(d, rest, d, 200);
      arb_sub_ui(d, d, 1, 200);
      EXPECT_LE(upper_size(d), 0x1p-50) << name << " " << s[j];
      arb_set_d(rest, s[j] * 0x1p-55);
      arb_add(x, x, rest, 300);
      arb_exp(d, x, 300);
      arb_set_d(x, hi[j]);
      arb_set_d(rest, lo[j]);
      arb_add(x, x, rest, 300);
      arb_div(d, x, d, 300);
      arb_sub_ui(d, d, 1, 300);
      EXPECT_LE(upper_size(d), std::max(0x1p-86, 0x1p-1070 / w[j])) << name << " " << s[j];
    }
    EXPECT_NEAR(sum, total, 1e-10 * total);
  }
}

TEST(Exponentials, AreMissedByALoosePolynomial) {
  // What the check above must see: an exp that is wrong by 2^-49.
  Ball x, d, rest;
  arb_set_d(x, -0.5);
  arb_exp(d, x, 200);
  arb_set_d(rest, std::exp(-0.5) * (1 + 0x1p-48));
  arb_div(d, rest, d, 200);
  arb_sub_ui(d, d, 1, 200);
  EXPECT_GT(lower_size(d), 0x1p-50);
}

TEST(InnerLoops, AgreeOnEveryMachine) {
  const InnerLoops* fast = inner_loops_named("avx2");
  const InnerLoops* plain = inner_loops_named("baseline");
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(inner_loops_named("sparc"), nullptr);
  if (!fast) GTEST_SKIP() << "no AVX2 here";
  std::mt19937_64 random(6);
  std::normal_distribution<double> normal;
  for (const std::int64_t stride : {4, 8, 12, 36, 64}) {
    const std::int64_t n = 37;
    std::vector<double> w(64), v(static_cast<std::size_t>(n * stride)), o(static_cast<std::size_t>(stride), 0.25);
    std::vector<std::int64_t> index;
    for (double& x : w) x = std::fabs(normal(random));
    for (double& x : v) x = normal(random);
    for (std::int64_t j = n - 1; j >= 0; j -= 2) index.push_back(j);
    for (const bool some : {false, true}) {
      const std::int64_t* at = some ? index.data() : nullptr;
      const std::int64_t count = some ? static_cast<std::int64_t>(index.size()) : n;
      std::vector<double> a(o.size()), b(o.size()), sa(o.size()), sb(o.size()), ta(o.size()), tb(o.size());
      fast->combine(w.data(), at, count, v.data(), stride, a.data());
      plain->combine(w.data(), at, count, v.data(), stride, b.data());
      fast->spread(w.data(), w.data(), at, count, v.data(), stride, o.data(), sa.data(), ta.data());
      plain->spread(w.data(), w.data(), at, count, v.data(), stride, o.data(), sb.data(), tb.data());
      for (std::size_t k = 0; k < o.size(); ++k) {
        double exact = 0, apart = 0, size = 0;
        for (std::int64_t j = 0; j < count; ++j) {
          const double value = v[static_cast<std::size_t>((at ? at[j] : j) * stride) + k];
          exact += w[static_cast<std::size_t>(j)] * value;
          apart += w[static_cast<std::size_t>(j)] * std::fabs(value - 0.25);
          size += w[static_cast<std::size_t>(j)] * std::fabs(value);
        }
        EXPECT_NEAR(a[k], exact, 1e-13 * size);
        EXPECT_NEAR(b[k], exact, 1e-13 * size);
        EXPECT_NEAR(sa[k], apart, 1e-13 * apart);
        EXPECT_NEAR(sb[k], apart, 1e-13 * apart);
        EXPECT_NEAR(ta[k], size, 1e-13 * size);
        EXPECT_NEAR(tb[k], size, 1e-13 * size);
      }
    }
  }
}

TEST(InnerLoops, SumsInSinglesAreUpperBounds) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto single = [&](double x) { return static_cast<double>(static_cast<float>(x)); };
  const auto above = [](double sum, double exact, double terms) {
    EXPECT_GE(sum, exact * (1 - 0x1p-45));
    EXPECT_LE(sum, exact * (1 + 0x1p-18) + terms * 0x1p-148);
  };
  for (const char* name : {"baseline", "avx2"}) {
    const InnerLoops* loops = inner_loops_named(name);
    if (!loops) continue;
    for (const std::int64_t width : {1, 7, 16, 17, 64, 300}) {
      // As columns of v, then as the width of keys.
      const std::int64_t stride = (width + 7) / 8 * 8, n = 77, rows = 6, room = padded(n);
      std::vector<double> v(static_cast<std::size_t>(n * stride)), w(static_cast<std::size_t>(n));
      std::vector<std::int64_t> index;
      // Weights as those of big keys: within 2^-24 of 1. Not rounded to floats beforehand.
      for (double& x : w) x = std::exp(-std::fabs(5 * normal(random)));
      for (double& x : v) x = single(normal(random));
      for (std::int64_t j = n - 1; j >= 0; j -= 3) index.push_back(j);
      const std::vector<float> v1(v.begin(), v.end()), w1(w.begin(), w.end());
      const std::vector<float> centre(static_cast<std::size_t>(stride), 0.25F);
      for (const bool some : {false, true}) {
        const std::int64_t* at = some ? index.data() : nullptr;
        const std::int64_t count = some ? static_cast<std::int64_t>(index.size()) : n;
        std::vector<double> sum(centre.size()), apart(centre.size()), size(centre.size()), plain(centre.size());
        loops->combine_singles(w.data(), at, count, v1.data(), stride, sum.data());
        loops->combine(w.data(), at, count, v.data(), stride, plain.data());
        EXPECT_EQ(sum, plain) << name;
        loops->spread_singles(w1.data(), w1.data(), at, count, v1.data(), stride, centre.data(), apart.data(),
                              size.data());
        for (std::size_t k = 0; k < centre.size(); ++k) {
          double exact_apart = 0, exact_size = 0;
          for (std::int64_t j = 0; j < count; ++j) {
            const double value = v[static_cast<std::size_t>((at ? at[j] : j) * stride) + k];
            exact_apart += w[static_cast<std::size_t>(j)] * std::fabs(value - 0.25);
            exact_size += w[static_cast<std::size_t>(j)] * std::fabs(value);
          }
          above(apart[k], exact_apart, static_cast<double>(count));
          above(size[k], exact_size, static_cast<double>(count));
        }
      }
      std::vector<double> k(static_cast<std::size_t>(n * width)), q(static_cast<std::size_t>(rows * width));
      for (double& x : k) x = single(normal(random));
      for (double& x : q) x = single(normal(random));
      std::vector<double> panels(static_cast<std::size_t>(room * width)), sums(static_cast<std::size_t>(room));
      double most = 0;
      for (std::int64_t first = 0; first < n; first += panel_width)
        loops->pack(k.data() + first * width, std::min(panel_width, n - first), width, panels.data() + first * width,
                    sums.data() + first, &most);
      const std::vector<float> panels1(panels.begin(), panels.end());
      std::vector<float> sizes_of_q;
      sizes_of_q.reserve(q.size());
      for (const double x : q) sizes_of_q.push_back(static_cast<float>(std::fabs(x)));
      std::vector<double> x(static_cast<std::size_t>(rows * room)), size(x.size()), x2(static_cast<std::size_t>(room)),
          size2(x2.size());
      loops->dots_singles(q.data(), sizes_of_q.data(), rows, width, panels1.data(), room / panel_width, room, x.data(),
                          size.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        loops->dots(q.data() + r * width, width, panels.data(), room / panel_width, x2.data(), size2.data());
        for (std::int64_t j = 0; j < n; ++j) {
          EXPECT_EQ(x[static_cast<std::size_t>(r * room + j)], x2[static_cast<std::size_t>(j)]) << name;
          above(size[static_cast<std::size_t>(r * room + j)], size2[static_cast<std::size_t>(j)],
                static_cast<double>(width));
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest::detail
