// Verdicts on gradients: of some rows where a case is too large to be judged as a whole, of single rows in balls, and
// the errors that are measured.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/error_statistics.h"
#include "core/oracle/gradients/exact_gradients.h"
#include "core/oracle/gradients/portion.h"
#include "core/test/cases.h"

namespace attest {
namespace {

using detail::Portion;

test::CaseSizes sizes_of(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  return {.batch = 2, .heads = heads, .queries = queries, .keys = keys, .dk = 4, .dv = 3, .kv_heads = heads / 2};
}

/// Two entries, two heads to a group.
Case drawn_case(std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const auto next = [&] { return normal(random); };
  Case c = test::attention_of(sizes_of(heads, queries, keys),
                              [&](Slot, const Shape& shape) { return test::filled(DType::f32, shape, next); });
  c[Slot::d_out] = test::filled(DType::f32, c.out_shape(), next);
  return c;
}

GradientChoice choice(std::initializer_list<Gradient> gradients) {
  GradientChoice wanted{};
  for (const Gradient of : gradients) wanted[static_cast<std::size_t>(of)] = true;
  return wanted;
}

std::set<std::pair<int, int>> whole_groups(const Portion& portion, int sequences, int kv_heads) {
  std::set<std::pair<int, int>> whole;
  for (int s = 0; s < sequences; ++s)
    for (int kv = 0; kv < kv_heads; ++kv)
      if (portion.is_whole(s, kv)) whole.emplace(s, kv);
  return whole;
}

TEST(Portion, IsAllThatThereIsWhereNoSampleIsAskedFor) {
  const Case c = drawn_case(4, 10, 6);
  for (const std::int64_t rows : {0, 80, 100}) {
    const Portion portion(c, rows, all_gradients);
    EXPECT_EQ(whole_groups(portion, 2, 2).size(), 4U);
    EXPECT_EQ(portion.judged(Gradient::q), 80);
    EXPECT_EQ(portion.all(Gradient::q), 80);
    EXPECT_EQ(portion.judged(Gradient::k), 24);
    EXPECT_EQ(portion.all(Gradient::v), 24);
  }
}

TEST(Portion, OfGradientsByQIsRowsOfEachHead) {
  const Portion portion(drawn_case(4, 10, 6), 19, choice({Gradient::q}));
  EXPECT_TRUE(whole_groups(portion, 2, 2).empty());
  EXPECT_EQ(portion.rows_of(0, 0), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(portion.rows_of(1, 1), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(portion.judged(Gradient::q), 19);
  EXPECT_EQ(portion.all(Gradient::q), 80);
}

TEST(Portion, OfGradientsByKeysIsWholeHeads) {
  const Case c = drawn_case(8, 10, 6);
  const std::pair<int, int> last{1, 3}, first{0, 0};
  // One at least, whatever it takes; then as many as there is room for, the last and the first before others.
  EXPECT_EQ(whole_groups(Portion(c, 1, choice({Gradient::k})), 2, 4), (std::set{last}));
  EXPECT_EQ(whole_groups(Portion(c, 59, choice({Gradient::v})), 2, 4), (std::set{last, first}));
  const Portion three(c, 60, choice({Gradient::k, Gradient::v}));
  EXPECT_EQ(whole_groups(three, 2, 4).size(), 3U);
  EXPECT_EQ(three.judged(Gradient::k), 18);
  EXPECT_EQ(three.all(Gradient::k), 48);
  EXPECT_EQ(three.rows_of(0, 1), (std::vector<std::int64_t>{0, 0}));
  // Rows of q are theirs and, where these are asked for, those of the other heads.
  EXPECT_EQ(three.judged(Gradient::q), 60);
  const Portion both(c, 60, choice({Gradient::q, Gradient::k}));
  std::int64_t rows = 60;
  for (int group = 0; group < 8; ++group)
    if (!both.is_whole(group / 4, group % 4))
      for (const std::int64_t of_head : both.rows_of(group / 4, group % 4)) rows += of_head;
  EXPECT_EQ(both.judged(Gradient::q), rows);
  EXPECT_GE(rows, 60 + 10 * 3);
}

TEST(Portion, IsAllWhereRowsOfSeveralHeadsShareTheArgument) {
  const Case c = drawn_case(4, 10, 6);
  for (const Gradient of : {Gradient::mask, Gradient::sink})
    EXPECT_EQ(whole_groups(Portion(c, 3, choice({of})), 2, 2).size(), 4U);
}

TEST(Portion, ChoosesNoHeadWithoutKeys) {
  Case c = drawn_case(4, 10, 6);
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{6, 0});
  EXPECT_EQ(whole_groups(Portion(c, 1, choice({Gradient::k})), 2, 2), (std::set{std::pair{0, 1}}));
}

struct Judged {
  BackwardInputs given;
  std::array<Tensor, gradient_count> found;
  Arithmetic forward;
  BackwardArithmetic backward;
};
Judged answers_of(const Case& c) {
  const auto kernel = std::move(open_kernels("builtin:flash", {}).front());
  const Reply forward = kernel->run(forward_of(c), c.dtype(), /*want_lse=*/true);
  EXPECT_EQ(forward.status, CallStatus::ok) << forward.message;
  Judged all{.given = {c[Slot::d_out], c[Slot::d_lse], forward.out.tensor(), forward.lse.tensor()},
             .found = {},
             .forward = kernel->manifest().arithmetic_for(c),
             .backward = kernel->manifest().backward_arithmetic_for(c)};
  const Reply back = kernel->backward(c, {forward.out, forward.lse}, c.dtype());
  EXPECT_EQ(back.status, CallStatus::ok) << back.message;
  for (std::size_t of = 0; of < all.found.size(); ++of) all.found[of] = back.gradients[of].tensor();
  return all;
}

TEST(SampledGradients, AreJudgedAloneAndCounted) {
  const Case c = drawn_case(8, 40, 24);
  const auto at = [](Gradient of) { return static_cast<std::size_t>(of); };
  Judged answers = answers_of(c);
  const auto verdict_on = [&](Gradient of, std::int64_t rows, bool others) {
    std::array<Tensor, gradient_count> found = answers.found;
    for (const Gradient other : gradients_by_inputs)
      if (!others && other != of) found[at(other)] = {};
    return judge_gradients(forward_of(c), answers.given, found, answers.forward, answers.backward,
                           {.rows = rows})[at(of)];
  };
  for (const bool others : {false, true})
    for (const Gradient of : gradients_by_inputs) {
      SCOPED_TRACE(name_of(of));
      Tensor& gradient = answers.found[at(of)];
      const std::int64_t width = gradient.shape()[3], rows = gradient.elements() / width;
      const Verdict some = verdict_on(of, 100, others);
      EXPECT_EQ(some.outcome, Outcome::held) << some.reason;
      EXPECT_EQ(some.rows, rows);
      EXPECT_EQ(verdict_on(of, 0, others).rows_judged, rows);
      // A wrong element is found in as many rows as were said to be judged.
      std::int64_t seen = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        const double right = gradient[row * width];
        gradient.set(row * width, right + 1);
        const Verdict verdict = verdict_on(of, 100, others);
        if (verdict.outcome == Outcome::violated) {
          ++seen;
          EXPECT_EQ(verdict.element, row * width);
        }
        gradient.set(row * width, right);
      }
      EXPECT_EQ(seen, some.rows_judged);
      EXPECT_LT(seen, rows);
      EXPECT_GT(seen, 0);
    }
}

// Tolerances are written in units of the run's dtype, whatever that of a gradient is.
TEST(GradientErrors, AreWithinWhatIsSuggestedInTheRunsDtype) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  const auto next = [&] { return normal(random); };
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::d_out})
    c[slot] = test::filled(DType::f64, {1, 3, 6, 4}, next);
  c[Slot::sink] = test::filled(DType::f32, {3}, next);
  validate(c);
  const Judged answers = answers_of(c);
  const auto sink = static_cast<std::size_t>(Gradient::sink);
  std::array<Tensor, gradient_count> found;
  found[sink] = answers.found[sink];
  ASSERT_EQ(found[sink].dtype(), DType::f32);
  const Verdict verdict = judge_gradients(forward_of(c), answers.given, found, answers.forward, answers.backward,
                                          {.measure_errors = true})[sink];
  ASSERT_EQ(verdict.outcome, Outcome::held) << verdict.reason;
  const GradientBounds exact = gradient_bounds(forward_of(c), answers.given, answers.forward, answers.backward);
  double most = 0;
  for (std::size_t step = 0; step < relative_steps.size(); ++step)
    for (std::int64_t h = 0; h < 3; ++h) {
      const ElementBound& bound = exact[sink][static_cast<std::size_t>(h)];
      const double error = std::fabs(found[sink][h] - bound.value) - bound.certificate;
      const double by_size = relative_steps[step] * format_of(DType::f64).unit * std::fabs(bound.value);
      EXPECT_LE(error, verdict.errors->atol[step] + by_size) << step << ' ' << h;
      most = std::max(most, error);
    }
  EXPECT_GT(most, 0x1p-40) << "of f32, whose unit would hide it all";
}

/// Whatever a problem can have beside its gradients by the output.
Case case_of_everything(std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto next = [&] { return normal(random); };
  Case c = drawn_case(4, 5, 7);
  c.causal = Causal::bottom_right, c.softcap = 1.5, c.dropout_p = 0.25;
  c[Slot::mask] = test::filled(DType::f32, {2, 4, 5, 7}, next);
  c[Slot::keep] = test::filled(DType::boolean, {2, 4, 5, 7}, [&] { return random() % 3 == 0 ? 0.0 : 1.0; });
  c[Slot::sink] = test::filled(DType::f32, {4}, next);
  c[Slot::alibi_slopes] = test::filled(DType::f32, {1, 4}, next);
  c.alignment = Causal::bottom_right;
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{7, 4});
  c[Slot::d_lse] = test::filled(DType::f32, {2, 4, 5}, next);
  validate(c);
  return c;
}

double width(const Enclosure& e) {
  return e.upper - e.lower;
}

// They meet what the oracle's doubles prove of every gradient, and what is padding is 0.
TEST(GradientEnclosures, AreOfTheValuesThatBoundsAreAbout) {
  std::mt19937_64 random(19);
  for (const bool shared : {false, true}) {
    Case c = case_of_everything(random);
    if (shared) c[Slot::mask] = test::filled(DType::f32, {1, 1, 5, 7}, [&] { return double(random() % 8) / 8; });
    const GradientEnclosures exact = gradient_enclosures(c);
    const Tensor out = test::filled(DType::f32, c.out_shape(), [] { return 7.0; }),
                 lse = test::filled(DType::f32, {2, 4, 5}, [] { return 9.0; });
    const GradientBounds bounds = gradient_bounds(forward_of(c), {c[Slot::d_out], c[Slot::d_lse], out, lse},
                                                  universal_arithmetic(DType::f32, DType::f32), BackwardArithmetic());
    for (const Gradient of : every_gradient) {
      const auto& elements = exact[static_cast<std::size_t>(of)];
      const auto& proved = bounds[static_cast<std::size_t>(of)];
      ASSERT_EQ(elements.size(), proved.size()) << name_of(of);
      std::int64_t compared = 0;
      for (std::size_t e = 0; e < elements.size(); ++e) {
        const Enclosure& one = elements[e];
        if (proved[e].excuse == Excuse::padding || std::isnan(proved[e].value)) {
          EXPECT_EQ(one.lower, 0) << name_of(of) << e;
          EXPECT_EQ(one.upper, 0) << name_of(of) << e;
          continue;
        }
        const double near = proved[e].certificate;
        EXPECT_LE(one.lower, proved[e].value + near) << name_of(of) << e;
        EXPECT_GE(one.upper, proved[e].value - near) << name_of(of) << e;
        EXPECT_LE(width(one), 0x1p-51 * std::max(std::fabs(one.upper), 0x1p-140)) << name_of(of) << e;
        if (near <= 1e-9 && std::fabs(proved[e].value) > 1e-6) ++compared;
      }
      EXPECT_GE(compared, of == Gradient::sink ? 4 : 20) << name_of(of);
    }
  }
}

TEST(GradientEnclosures, OfOneKeyAreWhatTheyAreByHand) {
  Case c;
  c[Slot::q] = Tensor(DType::f64, {1, 2, 3, 1}, std::vector<double>{1, 2, 3, 4, 5, 6});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f64, {1, 1, 1, 1}, std::vector<double>{2});
  c[Slot::d_out] = Tensor(DType::f64, {1, 2, 3, 1}, std::vector<double>{1, 10, 100, 1000, 1e4, 1e5});
  c[Slot::d_lse] = Tensor(DType::f64, {1, 2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  c.scale = 0.5;
  validate(c);
  const GradientEnclosures exact = gradient_enclosures(c);
  const auto is = [&](Gradient of, std::size_t at, double value) {
    EXPECT_EQ(exact[static_cast<std::size_t>(of)][at].lower, value) << name_of(of) << at;
    EXPECT_EQ(exact[static_cast<std::size_t>(of)][at].upper, value) << name_of(of) << at;
  };
  // The lone weight is 1 whatever its score is: dS is the gradient by the log-sum-exp.
  is(Gradient::v, 0, 111111), is(Gradient::k, 0, 0.5 * (1 + 4 + 9 + 16 + 25 + 36));
  for (std::size_t i = 0; i < 6; ++i) is(Gradient::q, i, 0.5 * 2 * static_cast<double>(i + 1));
}

// Scores of 142 bits that differ by a half: the first precision loses it.
TEST(GradientEnclosures, TakeThePrecisionThatTheyNeed) {
  Case c;
  c[Slot::q] = Tensor(DType::f64, {1, 1, 1, 2}, std::vector<double>{0x1p70, 1});
  c[Slot::k] = Tensor(DType::f64, {1, 1, 2, 2}, std::vector<double>{0x1p70, 0.25, 0x1p70, 0.75});
  c[Slot::v] = Tensor(DType::f64, {1, 1, 2, 1}, std::vector<double>{1, 2});
  c[Slot::d_out] = Tensor(DType::f64, {1, 1, 1, 1}, std::vector<double>{1});
  c.scale = 1;
  validate(c);
  const GradientEnclosures exact = gradient_enclosures(c);
  const Enclosure &first = exact[static_cast<std::size_t>(Gradient::v)].at(0),
                  &second = exact[static_cast<std::size_t>(Gradient::v)].at(1);
  EXPECT_NEAR(first.lower, 1 / (1 + std::exp(0.5)), 1e-15);
  EXPECT_NEAR(second.upper, 1 / (1 + std::exp(-0.5)), 1e-15);
  EXPECT_LE(width(first), 0x1p-52);
  EXPECT_LE(width(second), 0x1p-52);
}

// q is 0 in the second column, so that what is allowed there is in proportion to k, far below the smallest normal
// number too: a weight times k is 0 in double then, and the error of D that it is multiplied by 1e10.
TEST(GradientBounds, AreInProportionToKeysThatAreSubnormal) {
  const double g = 0x1p77;
  const auto bound_of = [&](double k) {
    Case c;
    c.scale = 0.0625;
    c[Slot::q] = Tensor(DType::f64, {1, 1, 1, 2}, std::vector<double>{-15, 0});
    c[Slot::k] = Tensor(DType::f64, {1, 1, 2, 2}, std::vector<double>{0, k, -16, 0});
    c[Slot::v] = Tensor(DType::f64, {1, 1, 2, 1}, std::vector<double>{1, 1});
    c[Slot::d_out] = Tensor(DType::f64, {1, 1, 1, 1}, std::vector<double>{g});
    validate(c);
    const BackwardInputs given{c[Slot::d_out],
                               {},
                               Tensor(DType::f64, {1, 1, 1, 1}, std::vector<double>{1}),
                               Tensor(DType::f64, {1, 1, 1}, std::vector<double>{std::log(1 + std::exp(15.0))})};
    const Arithmetic forward = universal_arithmetic(DType::f64, DType::f64);
    BackwardArithmetic backward = universal_backward_arithmetic(forward);
    backward.delta = DeltaFrom::weights, backward.scale_before_rounding = false;
    return gradient_bounds(c, given, forward, backward)[static_cast<std::size_t>(Gradient::q)].at(1);
  };
  const double smallest = 0x1p-1074, large = bound_of(0x1p-73).allowed, small = bound_of(2 * smallest).allowed;
  EXPECT_GT(std::ldexp(large, -1000), 100 * smallest);
  EXPECT_GE(small, std::ldexp(large, -1000));
  EXPECT_LE(small, std::ldexp(large, -1000) + 40 * smallest);
}

// A row by itself in balls is the row of its group, whatever the problem has.
TEST(ExactQueryRows, AreThoseOfTheirGroup) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  const auto next = [&] { return normal(random); };
  const Case c = case_of_everything(random);
  const Tensor out = test::filled(DType::f32, c.out_shape(), next), lse = test::filled(DType::f32, {2, 4, 5}, next);
  const BackwardInputs given{c[Slot::d_out], c[Slot::d_lse], out, lse};
  const Arithmetic forward = universal_arithmetic(DType::f32, DType::f32);
  std::int64_t compared = 0;
  for (const GradientsAt at : {GradientsAt::definition, GradientsAt::answers})
    for (const DeltaFrom delta : {DeltaFrom::out, DeltaFrom::weights}) {
      BackwardArithmetic backward;
      backward.delta = delta;
      const detail::GradientTask task{c, given, forward, backward, {.at = at}};
      detail::ExactQueryRows rows;
      for (const Sequence& s : sequences_of(c))
        for (std::int64_t h = 0; h < 4; ++h) {
          const Matrix<Arb> expected = detail::exact_gradients(task, s, h / 2, 256)[static_cast<std::size_t>(h % 2)].q;
          for (std::int64_t i = 0; i < s.queries; ++i)
            for (Index e = 0; e < expected.cols(); ++e, ++compared) {
              const Arb& one = rows.row(task, s, h, i, 128)(e);
              EXPECT_TRUE(arb_overlaps(one.ball(), expected(i, e).ball())) << h << ' ' << i << ' ' << e;
              EXPECT_GE(arb_rel_accuracy_bits(one.ball()), arb_is_zero(one.ball()) ? 0 : 60);
            }
        }
    }
  EXPECT_EQ(compared, 4 * 2 * 4 * 5 * 4);
}

}  // namespace
}  // namespace attest
