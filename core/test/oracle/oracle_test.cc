#include "core/oracle/oracle.h"

#include <gtest/gtest.h>

#include <random>

#include "core/bound/error_bound.h"
#include "core/test/cases.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

struct Spec {
  DType dtype = DType::f32;
  std::int64_t queries = 4, keys = 24, dk = 8, dv = 5;
  double spread = 1, scale = 0.35355339059327373;
};

Case random_case(std::mt19937_64& random, const Spec& spec) {
  std::normal_distribution<double> normal;
  Case c = test::attention_of({.queries = spec.queries, .keys = spec.keys, .dk = spec.dk, .dv = spec.dv},
                              [&](Slot slot, const Shape& shape) {
                                const double size = slot == Slot::q ? spec.spread : 1;
                                return test::filled(spec.dtype, shape, [&] { return size * normal(random); });
                              });
  c.scale = spec.scale;
  return c;
}

/// Two-pass attention in Real, each operation rounded once; `wrong` spoils it.
template <class Real>
Tensor two_pass(const Case& c, const test::Spoilt& wrong = {}) {
  return {c.dtype(), c.out_shape(), test::reference_attention<Real>(c, wrong)};
}

TEST(Oracle, AcceptsAPlainKernelAndRefusesABrokenOne) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    Spec spec;
    spec.spread = round % 2 ? 4 : 1;
    const Case c = random_case(random, spec);
    const Arithmetic universal = universal_arithmetic(DType::f32, DType::f32);
    const Verdict right = judge_attention(c, two_pass<float>(c), {}, universal);
    EXPECT_EQ(right.outcome, Outcome::held) << right.reason;
    EXPECT_LT(right.utilisation, 0.7);
    EXPECT_GT(right.utilisation, 1e-3);
    EXPECT_EQ(right.level, 1);
    EXPECT_EQ(judge_attention(c, two_pass<float>(c, {.scale = 1.01}), {}, universal).outcome, Outcome::violated);
    EXPECT_EQ(judge_attention(c, two_pass<float>(c, {.dropped_keys = 1}), {}, universal).outcome, Outcome::violated);
  }
}

TEST(Oracle, SettlesF64KernelsInDoubleDouble) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    Spec spec;
    spec.dtype = DType::f64;
    spec.spread = round % 2 ? 4 : 1;
    const Case c = random_case(random, spec);
    const Arithmetic universal = universal_arithmetic(DType::f64, DType::f64);
    const Tensor out = two_pass<double>(c);
    const Verdict right = judge_attention(c, out, {}, universal);
    EXPECT_EQ(right.outcome, Outcome::held) << right.reason;
    EXPECT_EQ(right.level, 2);
    const Verdict balls = judge_attention(c, out, {}, universal, {.first_level = 3});
    EXPECT_EQ(balls.level, 3);
    EXPECT_NEAR(right.utilisation, balls.utilisation, 1e-5 * balls.utilisation);
    EXPECT_EQ(judge_attention(c, two_pass<double>(c, {.scale = 1 + 1e-11}), {}, universal).outcome, Outcome::violated);
  }
}

}  // namespace
}  // namespace attest
