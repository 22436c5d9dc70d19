// The oracle on keys and values in wider formats than the queries: nothing of them is rounded on its way in.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/oracle/oracle.h"
#include "core/test/cases.h"
#include "core/test/reference_attention.h"

namespace attest {
namespace {

/// So many keys that inputs which are all floats are worth summing as floats.
Case wide_keys(DType k, DType v) {
  std::mt19937_64 random(20261124);
  std::normal_distribution<double> normal;
  return test::attention_of({.batch = 1, .heads = 2, .queries = 3, .keys = 150, .dk = 8, .dv = 5},
                            [&](Slot slot, const Shape& shape) {
                              const DType dtype = slot == Slot::q ? DType::f32 : slot == Slot::k ? k : v;
                              return test::filled(dtype, shape, [&] { return normal(random); });
                            });
}

TEST(MixedFormats, AreJudgedByTheNumbersAsTheyAre) {
  for (const auto& [k, v] : {std::pair{DType::f64, DType::f64}, std::pair{DType::f32, DType::f64},
                             std::pair{DType::f64, DType::f32}, std::pair{DType::f16, DType::bf16}}) {
    const Case c = wide_keys(k, v);
    validate(c);
    Tensor exact(DType::f64, c.out_shape());
    for (std::int64_t row = 0; row < 6; ++row) {
      const test::ReferenceRow<long double> expected = test::reference_row<long double>(c, 0, row / 3, row % 3);
      for (std::int64_t x = 0; x < 5; ++x)
        exact.set(row * 5 + x, static_cast<double>(expected.out[static_cast<std::size_t>(x)]));
    }
    const Arithmetic arithmetic = universal_arithmetic(DType::f64, DType::f64);
    const Verdict right = judge_attention(c, exact, {}, arithmetic);
    EXPECT_EQ(right.outcome, Outcome::held) << name_of(k) << " " << name_of(v) << ": " << right.reason;
    EXPECT_LT(right.utilisation, 0.5);
    exact.set(7, exact[7] + 1e-9);
    EXPECT_EQ(judge_attention(c, exact, {}, arithmetic).outcome, Outcome::violated) << name_of(k) << " " << name_of(v);
  }
}

// Subnormals of f16 are normal numbers of f32: who reads them as 0 is allowed it by the formats of k and v.
TEST(MixedFormats, AreFlushedEachInItsOwn) {
  const auto judged = [](double key, double value, double q, double out, bool flushes) {
    const Case c = test::attention_of({.queries = 1, .keys = 2, .dk = 1, .dv = 1}, [&](Slot slot, const Shape& shape) {
      if (slot == Slot::q) return Tensor(DType::f32, shape, std::vector{q});
      return Tensor(DType::f16, shape, slot == Slot::k ? std::vector{key, 0.0} : std::vector{value, value / 2});
    });
    validate(c);
    Arithmetic arithmetic = universal_arithmetic(DType::f32, DType::f32);
    arithmetic.flushes_inputs = flushes;
    return judge_attention(c, Tensor(DType::f32, c.out_shape(), std::vector{out}), {}, arithmetic).outcome;
  };
  // Values of which nothing is left.
  EXPECT_NE(judged(0, 0x1p-20, 1, 0, true), Outcome::violated);
  EXPECT_EQ(judged(0, 0x1p-20, 1, 0, false), Outcome::violated);
  EXPECT_EQ(judged(0, 0x1p-20, 1, 0x1p-13, true), Outcome::violated) << "and no more than that";
  // A key that leaves the score 0 where it is 2^-6: weights of 1/2 each.
  EXPECT_NE(judged(0x1p-20, 1, 0x1p14, 0.75, true), Outcome::violated);
  EXPECT_EQ(judged(0x1p-20, 1, 0x1p14, 0.75, false), Outcome::violated);
}

}  // namespace
}  // namespace attest
