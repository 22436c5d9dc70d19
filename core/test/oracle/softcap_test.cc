// Caps: the oracle against the definition on 90 digits, and each term of the bound against a kernel that needs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "core/bound/loops/key_loops.h"
#include "core/kernels/core_problem.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/scalars/mpfr.h"
#include "core/support/infinity.h"
#include "core/test/oracle/variant_bounds.h"

namespace attest {
namespace {

Arithmetic with_tanh(TanhError error) {
  Arithmetic a = plain(DType::f32);
  a.tanh = error;
  return a;
}

/// Grouped heads, a mask or none, a causal form, a sink or none, and caps far above the scores, among them, and far
/// below.
Case random_case(Random& random, DType dtype, std::int64_t most_keys = 9) {
  const std::int64_t group = 1 + random.below(2), kv = 1 + random.below(2), M = 1 + random.below(4),
                     N = 1 + random.below(most_keys), dk = 1 + random.below(5);
  Case c;
  c.scale = inverse_root(dk);
  const double size = random.below(3) == 0 ? 6 : 1;
  c[Slot::q] = random.tensor(dtype, {1, kv * group, M, dk}, size);
  c[Slot::k] = random.tensor(dtype, {1, kv, N, dk}, size);
  c[Slot::v] = random.tensor(dtype, {1, kv, N, 3}, 1);
  if (random.below(2) == 0) {
    c[Slot::mask] = random.tensor(dtype, {1, kv * group, M, N}, 1);
    for (std::int64_t e = 0; e < c.mask().elements(); ++e)
      if (random.below(3) == 0) c[Slot::mask].set(e, -infinity);
  }
  if (random.below(3) == 0) c.causal = random.below(2) == 0 ? Causal::top_left : Causal::bottom_right;
  if (random.below(3) == 0) c[Slot::sink] = random.tensor(DType::f32, {kv * group}, 3);
  constexpr std::array<double, 8> caps{1e-3, 0.05, 0.7, 3, 30, 50, 1e4, 1e12};
  c.softcap = caps[static_cast<std::size_t>(random.below(8))] * (1 + std::fabs(random.normal(0.3)));
  validate(c);
  return c;
}

TEST(SoftcapOracle, EnclosesTheDefinition) {
  Random random(1);
  int rows = 0;
  for (int n = 0; n < 400; ++n) {
    const Case c = random_case(random, n % 2 == 0 ? DType::f32 : DType::f64, n % 20 == 0 ? 90 : 9);
    const AskedPrecision precision(90);
    const CallPrecision<Mpfr> call;
    const std::vector<AttentionResult<Mpfr>> exact = attention_results<Mpfr>(c.problem());
    const AttentionBounds bounds = attention_bounds(c, plain(c.dtype()), /*ignores_dead_values=*/true);
    const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
    for (std::int64_t row = 0; row < std::ssize(bounds.rows); ++row) {
      const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
      const AttentionResult<Mpfr>& page = exact[static_cast<std::size_t>(row / M)];
      if (bound.excuse != Excuse::none) continue;
      ++rows;
      EXPECT_LE(distance(page.lse(row % M), bound.lse), bound.lse_certificate) << c.softcap;
      for (std::int64_t k = 0; k < dv; ++k) {
        const ElementBound& element = bounds.elements[static_cast<std::size_t>(row * dv + k)];
        EXPECT_LE(distance(page.out(row % M, k), element.value), element.certificate) << c.softcap;
      }
    }
  }
  EXPECT_GT(rows, 1000);
}

TEST(SoftcapOracle, AgreesAtEveryLevel) {
  Random random(2);
  for (int n = 0; n < 60; ++n)
    expect_same_at_every_level(random_case(random, DType::f32, n % 10 == 0 ? 90 : 9),
                               with_tanh({TanhMeasure::ulp, 2.5}));
}

// c tanh(t/c) to a relative 2^-50, at 0 and where tanh is 1 too, by every processor's loop.
TEST(SoftcapLoops, CapsToAFewRoundings) {
  Random random(3);
  for (const char* name : {"baseline", "avx2", "avx512"}) {
    const detail::KeyLoops* const loops = detail::key_loops_named(name);
    if (loops == nullptr) continue;
    for (int n = 0; n < 4000; ++n) {
      std::array<double, 16> t{}, c{}, s{};
      const double cap = std::exp2(random.normal(10));
      for (double& x : t) x = random.normal(1) * cap * std::exp2(random.normal(8));
      t[0] = 0, t[1] = 1e300, t[2] = -1e300, t[3] = 5e-324;
      const double most = loops->cap(t.data(), nullptr, cap, 16, c.data(), s.data());
      for (std::size_t j = 0; j < t.size(); ++j) {
        const AskedPrecision precision(60);
        const CallPrecision<Mpfr> call;
        const Mpfr exact = Mpfr(cap) * ScalarTraits<Mpfr>::tanh(Mpfr(t[j]) / Mpfr(cap));
        const double size = std::fabs(ScalarTraits<Mpfr>::to_double(exact));
        EXPECT_LE(distance(exact, c[j]), 0x1p-50 * size + 5e-324) << name << " " << t[j] << " " << cap;
        EXPECT_EQ(s[j], c[j]);
      }
      EXPECT_EQ(most, *std::ranges::max_element(s));
    }
  }
}

/// One query of one head whose products with the keys are their only columns, as q is 1; the values read the first key.
Case products(const std::vector<double>& t, double softcap, double scale = 1) {
  const auto n = static_cast<std::int64_t>(t.size());
  Case c;
  c.scale = scale;
  c.softcap = softcap;
  c[Slot::q] = Tensor(DType::f32, {1, 1, 1, 1});
  c[Slot::q].set(0, 1);
  c[Slot::k] = Tensor(DType::f32, {1, 1, n, 1});
  c[Slot::v] = Tensor(DType::f32, {1, 1, n, 1});
  for (std::int64_t j = 0; j < n; ++j) c[Slot::k].set(j, t[static_cast<std::size_t>(j)]);
  c[Slot::v].set(0, 1);
  validate(c);
  return c;
}

/// The weight of the first key where the scores are these, in double: what is left is what they err by.
double weight_of(const std::vector<double>& scores) {
  const double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (const double s : scores) sum += std::exp(s - most);
  return std::exp(scores[0] - most) / sum;
}

/// The largest use of the bound by a kernel with these scores, of two keys whose products over the cap are near z, and
/// whose weights both count, as it is and changed.
Used most_used(double softcap, double scale, const Arithmetic& arithmetic, const std::function<double(float)>& score_of,
               const std::function<void(Profile&)>& change, double z = 0.9) {
  Random random(4);
  Used most;
  for (int n = 0; n < 20000; ++n) {
    const double size = z * softcap / scale;
    std::vector<double> x{size * (1 + random.normal(0.2)), 0};
    // On both sides of 0 where no score is far from it.
    x[1] = softcap < 4 ? -x[0] * (1 + random.normal(0.1)) : x[0] + random.normal(0.5) * size / (z * softcap);
    for (double& one : x) one = static_cast<double>(static_cast<float>(one));
    const Case c = products(x, softcap, scale);
    const double found = weight_of({score_of(static_cast<float>(x[0])), score_of(static_cast<float>(x[1]))});
    const Used u = used(c, arithmetic, found, change);
    most = {std::max(most.as_it_is, u.as_it_is), std::max(most.changed, u.changed)};
  }
  return most;
}

/// tanh of a float, rounded once.
float tanh_once(float z) {
  return static_cast<float>(std::tanh(static_cast<double>(z)));
}

// Scale and cap are rounded, z is a product with a rounded reciprocal, and c y is rounded. Constants whose roundings
// come together.
TEST(SoftcapBound, NeedsTheRoundingsOfItsSteps) {
  Random random(6);
  double scale = 1, cap = 1, most = -1;
  for (int n = 0; n < 20000; ++n) {
    const double s = 0.3 * (1 + std::fabs(random.normal(0.3))), c = 1.1 * (1 + std::fabs(random.normal(0.3)));
    const auto rounded = static_cast<float>(c);
    const double of_cap = static_cast<double>(rounded) / c - 1;
    const double of_z = static_cast<double>(static_cast<float>(s)) * static_cast<double>(1 / rounded) / (s / c) - 1;
    if (const double together = 0.4 * of_z + of_cap; together > most) most = together, scale = s, cap = c;
  }
  Arithmetic otherwise_exact = with_tanh({TanhMeasure::ulp, 0.5});
  otherwise_exact.accumulate = otherwise_exact.weights = otherwise_exact.output = DType::f64;
  otherwise_exact.exp_ulp = 0x1p-20;
  const auto s = static_cast<float>(scale), c = static_cast<float>(cap), inverse = 1 / c;
  const Used u = most_used(
      cap, scale, otherwise_exact, [&](float x) { return static_cast<double>(c * tanh_once(s * x * inverse)); },
      [](Profile& p) { p.th_argument = p.th_cap = p.th_tau = 0; });
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.changed, 1);
}

TEST(SoftcapBound, NeedsTheErrorOfTanh) {
  constexpr double relative = 0x1p-11;
  int turn = 0;
  const auto score_of = [&](float x) {
    const float y = tanh_once(x / 32.0F);
    return 32.0 * static_cast<double>(y) * (1 + (turn++ % 2 == 0 ? relative : -relative) * 0.99);
  };
  const auto change = [](Profile& p) { p.eps_tanh = 0; };
  const Used u = most_used(32, 1, with_tanh({TanhMeasure::relative, relative}), score_of, change);
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.as_it_is, 0.3);
  EXPECT_GT(u.changed, 100);
  const Used in_ulp = most_used(32, 1, with_tanh({TanhMeasure::ulp, 0x1p12}), score_of, change);
  EXPECT_LE(in_ulp.as_it_is, 1);
  EXPECT_GT(in_ulp.as_it_is, 0.3);
  // Who states nothing has 4u of the result and 4u of 1.
  EXPECT_GT(most_used(32, 1, plain(DType::f32), score_of, change).as_it_is, 100);
}

TEST(SoftcapBound, NeedsTheAbsoluteErrorOfTanh) {
  constexpr double absolute = 1e-5;
  int turn = 0;
  const auto score_of = [&](float x) {
    return 32.0 * (static_cast<double>(tanh_once(x / 32.0F)) + (turn++ % 2 == 0 ? absolute : -absolute) * 0.99);
  };
  const Used u = most_used(
      32, 1, with_tanh({TanhMeasure::absolute, absolute}), score_of, [](Profile& p) { p.abs_tanh = 0; }, 0.01);
  EXPECT_LE(u.as_it_is, 1);
  EXPECT_GT(u.as_it_is, 0.5);
  EXPECT_GT(u.changed, 10);
}

// What each step of the cap is written to memory in, one after the other.
TEST(SoftcapBound, NeedsTheFormatThatEachStepIsKeptIn) {
  Arithmetic stored = with_tanh({TanhMeasure::ulp, 0.5});
  stored.stored_capped = DType::bf16;
  const auto uses = [&](bool z, bool y, bool c, const std::function<void(Profile&)>& change) {
    const auto kept = [](bool is, double x) { return is ? round_to(DType::bf16, x) : x; };
    return most_used(
        50, 1, stored, [&](float x) { return kept(c, 50 * kept(y, std::tanh(kept(z, static_cast<double>(x) / 50)))); },
        change);
  };
  constexpr double f32 = 0x1p-22;
  for (const Used& u : {uses(true, false, false, [](Profile& p) { p.th_argument = f32, p.eps_tanh = p.th_cap = 0; }),
                        uses(false, true, false, [](Profile& p) { p.eps_tanh = f32, p.th_argument = p.th_cap = 0; }),
                        uses(false, false, true, [](Profile& p) { p.th_cap = f32, p.th_argument = p.eps_tanh = 0; })}) {
    EXPECT_LE(u.as_it_is, 1);
    EXPECT_GT(u.as_it_is, 0.1);
    EXPECT_GT(u.changed, 1);
  }
  const auto all = uses(true, true, true, [](Profile& p) { p.abs_tanh = 0; });
  EXPECT_LE(all.as_it_is, 1);
  EXPECT_GT(all.as_it_is, 0.3);
}

// The slope of tanh at the end of what its argument may be that is nearer to 0, where errors of the product count most.
TEST(SoftcapBound, NeedsTheSlopeNearZero) {
  // A product of 64 columns that cancel: its error is far above its own roundings.
  Random random(5);
  double most = 0;
  for (int n = 0; n < 3000; ++n) {
    Case c;
    c.softcap = 0.5, c.scale = 1;
    c[Slot::q] = random.tensor(DType::f32, {1, 1, 1, 64}, 100);
    c[Slot::k] = random.tensor(DType::f32, {1, 1, 2, 64}, 100);
    for (std::int64_t j = 0; j < 2; ++j) {
      double sum = 0;
      for (std::int64_t e = 0; e < 63; ++e) sum += c.q()[e] * c.k()[j * 64 + e];
      c[Slot::k].set(j * 64 + 63, -sum / c.q()[63]);
    }
    c[Slot::v] = Tensor(DType::f32, {1, 1, 2, 1});
    c[Slot::v].set(0, 1);
    std::vector<double> scores;
    for (std::int64_t j = 0; j < 2; ++j) {
      float x = 0;
      for (std::int64_t e = 0; e < 64; ++e) x += static_cast<float>(c.q()[e]) * static_cast<float>(c.k()[j * 64 + e]);
      scores.push_back(static_cast<double>(0.5F * tanh_once(x / 0.5F)));
    }
    most = std::max(most, used(c, plain(DType::f32), weight_of(scores), [](Profile&) {}).as_it_is);
  }
  EXPECT_LE(most, 1);
  EXPECT_GT(most, 0.01);
}

// For |t| far above c scores are +-c, whatever the products err by: the bound knows.
TEST(SoftcapBound, IsSmallWhereTheCapConditions) {
  const Case capped = products({4000, -3000, 2000}, 2);
  const double with = attention_bounds(capped, plain(DType::f32)).elements[0].allowed;
  EXPECT_LT(with, 1e-5);
  EXPECT_GT(with, 1e-8);
}

TEST(SoftcapBound, ExcusesACapThatTheScoresFormatCannotHold) {
  const auto excuse = [](double softcap) {
    return attention_bounds(products({1, 2}, softcap), plain(DType::f32)).rows[0].excuse;
  };
  EXPECT_EQ(excuse(50), Excuse::none);
  EXPECT_EQ(excuse(1e-45), Excuse::overflow);
  EXPECT_EQ(excuse(1e39), Excuse::overflow);
  EXPECT_EQ(excuse(1e-39), Excuse::overflow);
}

TEST(SoftcapProblem, RefusesWhatIsNoCap) {
  Case c = products({1, 2}, 1);
  for (const double wrong : {-1.0, infinity, std::nan("")}) {
    c.softcap = wrong;
    EXPECT_THROW(validate(c), UsageError) << wrong;
  }
  c.softcap = 1;
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 1, 2});
  validate(c);
  c.mask_convention = MaskConvention::pre_scale;
  EXPECT_THROW(validate(c), UsageError);
}

}  // namespace
}  // namespace attest
