// Multi-head cases in double-double against the same cases in balls.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/oracle/multihead_entry.h"
#include "core/oracle/oracle.h"
#include "core/support/infinity.h"
#include "core/test/cases.h"

namespace attest {
namespace {

using detail::in_pairs;
using detail::MultiheadEntry;
using detail::MultiheadProblem;

struct Form {
  DType dtype = DType::f32;
  bool appended = false, bias = false, output = true, hidden = false;
  MaskConvention convention = MaskConvention::post_scale;
  Causal causal = Causal::none;
  double size = 1;                   ///< of the inputs
  std::optional<Slot> cancels = {};  ///< the input whose projection is nothing beside what it is a sum of
};

/// Two columns of an input that are 2^40 times as large as the others and, with equal rows of the weights, cancel to a
/// number of their size.
void cancel(std::mt19937_64& random, Tensor& x, Tensor& w) {
  std::normal_distribution<double> normal;
  const std::int64_t inner = w.shape()[0], columns = w.shape()[1];
  for (std::int64_t row = 0; row < x.elements() / inner; ++row) {
    const double large = 0x1p40 * normal(random);
    x.set(row * inner, large), x.set(row * inner + 1, normal(random) - large);
  }
  for (std::int64_t c = 0; c < columns; ++c) w.set(columns + c, w[c]);
}

Case random_case(std::mt19937_64& random, const Form& form) {
  using enum Slot;
  const test::CaseSizes sizes{
      .batch = 2, .heads = 3, .queries = 5, .keys = 21, .dk = 6, .dv = 5, .c_q = 7, .c_k = 7, .c_v = 7, .d_o = 9};
  std::vector<Slot> slots{q, k, v, w_q, w_k, w_v};
  if (form.bias) slots.insert(slots.end(), {b_q, b_k, b_v});
  if (form.output) slots.push_back(w_o);
  if (form.output && form.bias) slots.push_back(b_o);
  if (form.appended) slots.insert(slots.end(), {bias_k, bias_v});
  std::normal_distribution<double> normal(0, form.size);
  Case c = test::case_of(Operation::multihead, sizes, slots, [&](Slot, const Shape& shape) {
    return test::filled(form.dtype, shape, [&] { return normal(random); });
  });
  if (form.hidden) {
    c[mask] = Tensor(form.dtype, {1, 1, sizes.queries, sizes.keys});
    for (std::int64_t e = 0; e < c[mask].elements(); ++e)
      c[mask].set(e, random() % 3 == 0 ? -infinity : normal(random));
    c.mask_convention = form.convention;
  }
  if (form.cancels == q) cancel(random, c[q], c[w_q]);
  if (form.cancels == k) cancel(random, c[k], c[w_k]);
  if (form.cancels == v) cancel(random, c[v], c[w_v]);
  c.causal = form.causal;
  c.scale = 0.37;
  validate(c);
  return c;
}

std::vector<Form> forms() {
  using enum DType;
  return {{.dtype = f32},
          {.dtype = f64},
          {.dtype = bf16, .bias = true},
          {.dtype = f16, .appended = true},
          {.dtype = f64, .appended = true, .bias = true, .hidden = true},
          {.dtype = f32, .hidden = true, .convention = MaskConvention::pre_scale},
          {.dtype = f64, .output = false},
          {.dtype = f64, .bias = true, .output = false, .causal = Causal::bottom_right},
          {.dtype = f64, .bias = true, .size = 0x1p-40},
          {.dtype = f64, .bias = true, .size = 3},
          {.dtype = bf16, .size = 3},
          {.dtype = bf16, .bias = true, .size = 4},
          {.dtype = f16, .size = 5},
          {.dtype = f32, .size = 50},
          {.dtype = f64, .cancels = Slot::q},
          {.dtype = f64, .cancels = Slot::k},
          {.dtype = f64, .cancels = Slot::v}};
}

TEST(MultiheadPairs, SayWhatBallsSay) {
  std::mt19937_64 random(17);
  int judged = 0, left_to_balls = 0;
  for (const Form& form : forms())
    for (int round = 0; round < 12; ++round) {
      const Case c = random_case(random, form);
      MultiheadProblem problem(c, universal_arithmetic(form.dtype, form.dtype), false);
      const MultiheadEntry pairs = problem.evaluate(round % 2, in_pairs);
      if (!pairs.settled) {
        // Scores of which a kernel of so few bits knows nothing.
        EXPECT_TRUE((form.dtype != DType::f64 && form.size > 1) || form.cancels);
        ++left_to_balls;
        continue;
      }
      const MultiheadEntry balls = problem.evaluate(round % 2, 512);
      ASSERT_TRUE(balls.settled);
      EXPECT_EQ(pairs.excuse, balls.excuse);
      double most = 0;
      for (std::size_t e = 0; e < balls.allowed.size(); ++e) most = std::max(most, std::fabs(pairs.pairs.high[e]));
      for (std::size_t e = 0; e < balls.allowed.size(); ++e) {
        if (balls.excuse[e] != Excuse::none) continue;
        // The pair itself, not the double next to it.
        detail::Ball low, distance;
        arb_set_d(low, pairs.pairs.low[e]), arb_set_d(distance, pairs.pairs.high[e]);
        arb_add(distance, distance, low, 512);
        arb_sub(distance, distance, balls.y[static_cast<std::int64_t>(e)], 512);
        EXPECT_LE(detail::upper_size(distance), pairs.pairs.radius[e]);
        EXPECT_LE(pairs.pairs.radius[e], (form.cancels || form.size > 3 ? 0x1p-44 : 0x1p-64) * most);
        EXPECT_NEAR(pairs.allowed[e], balls.allowed[e], 0x1p-20 * balls.allowed[e]);
        ++judged;
      }
    }
  EXPECT_GT(judged, 5000);
  EXPECT_GT(left_to_balls, 4);
  EXPECT_LT(left_to_balls, 40);
}

// Two keys, the first of a weight of one but for e^-12000: what a bfloat16 of either score errs by lets the weight of
// each grow beyond e^40 in the bound, and so what the first value's distance to the answer owes to the radius of that.
TEST(MultiheadPairs, LeaveToBallsWhatTheirRadiiWouldBlur) {
  Case c;
  c.operation = Operation::multihead;
  using enum Slot;
  c[q] = Tensor(DType::bf16, {1, 1, 1}, std::vector{78.5});
  c[k] = Tensor(DType::bf16, {1, 2, 1}, std::vector{78.5, -78.5});
  c[v] = Tensor(DType::bf16, {1, 2, 1}, std::vector{1.0, -1.0});
  for (const Slot slot : {w_q, w_k, w_v}) c[slot] = Tensor(DType::bf16, {1, 1}, std::vector{1.0});
  validate(c);
  const Arithmetic a = universal_arithmetic(DType::bf16, DType::bf16);
  MultiheadProblem problem(c, a, false);
  EXPECT_FALSE(problem.evaluate(0, in_pairs).settled);
  const double allowed = problem.evaluate(0, 512).allowed[0];
  EXPECT_LT(allowed, 0.04);
  const auto judged = [&](double found) {
    return judge_multihead(c, Tensor(DType::bf16, {1, 1, 1}, std::vector{found}), a).outcome;
  };
  EXPECT_EQ(judged(1), Outcome::held);
  EXPECT_EQ(judged(0.9375), Outcome::violated);
  EXPECT_EQ(judged(0), Outcome::violated);
}

TEST(MultiheadPairs, LeaveToBallsWhatTheyCannotTell) {
  std::mt19937_64 random(18);
  const auto settled = [](const Case& c) {
    return MultiheadProblem(c, universal_arithmetic(c.dtype(), c.dtype()), false).evaluate(0, in_pairs).settled;
  };
  // Scores of 2^300 and more, and products beyond the largest double.
  EXPECT_FALSE(settled(random_case(random, {.dtype = DType::f64, .size = 0x1p75})));
  EXPECT_FALSE(settled(random_case(random, {.dtype = DType::f64, .size = 0x1p600})));
  Case huge = random_case(random, {.dtype = DType::f64, .hidden = true});
  for (std::int64_t e = 0; e < huge.mask().elements(); ++e) huge[Slot::mask].set(e, -0x1p100);
  EXPECT_FALSE(settled(huge)) << "a mask that all scores are lost beside";
  // That one key alone has it is nothing: it has no weight.
  for (std::int64_t e = 0; e < huge.mask().elements(); ++e) huge[Slot::mask].set(e, e % 21 == 3 ? -0x1p100 : 0.0);
  EXPECT_TRUE(settled(huge));
}

}  // namespace
}  // namespace attest
