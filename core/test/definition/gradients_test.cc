// The backward pass of the core against dual numbers through its forward pass, on every scalar, and in formulas.
#include "core/definition/bodies/gradients.h"

#include "core/definition/bodies/dual_gradients.h"
#include "core/definition/matrices.h"
#include "core/proof/finite_field.h"
#include "core/proof/symbolic.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

/// Exact, or an interval's midpoints.
template <class T>
Grid wide_grid(const Matrix<T>& a) {
  Grid grid(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i)
    for (Index c = 0; c < a.cols(); ++c) grid[static_cast<std::size_t>(i)].push_back(wide(a(i, c)));
  return grid;
}

template <class T>
class GradientsOf : public SmallAttention<T> {
 protected:
  AnswerGradients<T> of{.out = random_matrix<T>(this->random, 5, 3), .lse = random_vector<T>(this->random, 5)};

  /// A mask of everything there is; row 2 sees no key.
  Mask<T> everything(bool sink) {
    Mask<T> mask = additive_mask(random_matrix<T>(this->random, 5, 7));
    BoolMatrix allowed = BoolMatrix::Constant(5, 7, true), kept = allowed;
    allowed(0, 3) = allowed(4, 0) = kept(1, 1) = kept(3, 5) = false;
    allowed.row(2).setConstant(false);
    mask.allowed = allowed, mask.kept = kept;
    mask.kept_share = scalar<T>(0.5);
    mask.softcap = scalar<T>(1.5), mask.slope = scalar<T>(0.25);
    mask.positions.causal = Causal::bottom_right, mask.positions.window_left = 4;
    if (sink) mask.sink = scalar<T>(-0.5);
    return mask;
  }
  Gradients<T> gradients(const Mask<T>& mask) {
    return mattn_gradients(this->q, this->k, this->v, this->tau, mask, of);
  }
  /// Within a few roundings of numbers of this size.
  void expect_agreement(const Mask<T>& mask, double roundings) {
    const Gradients<T> found = gradients(mask);
    const Gradients<T> expected = gradients_by_dual_numbers(this->q, this->k, this->v, this->tau, mask, of);
    expect_close(found.q, wide_grid(expected.q), roundings);
    expect_close(found.k, wide_grid(expected.k), roundings);
    expect_close(found.v, wide_grid(expected.v), roundings);
    ASSERT_EQ(found.mask.has_value(), mask.additive.has_value());
    if (mask.additive) expect_close(*found.mask, wide_grid(*expected.mask), roundings);
    ASSERT_EQ(found.sink.has_value(), mask.sink.has_value());
    if (mask.sink)
      expect_close(Matrix<T>(Matrix<T>::Constant(1, 1, *found.sink)),
                   wide_grid(Matrix<T>(Matrix<T>::Constant(1, 1, *expected.sink))), roundings);
  }
};
TYPED_TEST_SUITE(GradientsOf, AllScalars, ScalarNames);

TYPED_TEST(GradientsOf, AreThoseOfDualNumbers) {
  this->expect_agreement({}, 256);
}
TYPED_TEST(GradientsOf, AreThoseOfDualNumbersWithEverything) {
  this->expect_agreement(this->everything(false), 512);
  this->expect_agreement(this->everything(true), 512);
}
TYPED_TEST(GradientsOf, AreThoseOfDualNumbersBeforeTheScale) {
  this->expect_agreement(additive_mask(random_matrix<TypeParam>(this->random, 5, 7), MaskConvention::pre_scale), 256);
}

TYPED_TEST(GradientsOf, AtTheirOwnAnswersTheGivenFormulasSayTheSame) {
  const Mask<TypeParam> mask = this->everything(true);
  const Gradients<TypeParam> found = this->gradients(mask),
                             given = mattn_gradients_given(this->q, this->k, this->v, this->tau, mask, this->of,
                                                           this->masked(mask));
  expect_close(given.q, wide_grid(found.q), 512);
  expect_close(given.k, wide_grid(found.k), 512);
  expect_close(given.v, wide_grid(found.v), 512);
}

TYPED_TEST(GradientsOf, GivenAnswersCountAsTheyAre) {
  AttentionResult<TypeParam> answers = this->masked({});
  const Gradients<TypeParam> right = mattn_gradients_given(this->q, this->k, this->v, this->tau, {}, this->of, answers);
  // Weights of half the size: a log-sum-exp that is larger by ln 2.
  for (Index i = 0; i < 5; ++i) answers.lse(i) = answers.lse(i) + ScalarTraits<TypeParam>::log(scalar<TypeParam>(2));
  const Gradients<TypeParam> halved =
      mattn_gradients_given(this->q, this->k, this->v, this->tau, {}, this->of, answers);
  expect_close(halved.v, wide_grid(Matrix<TypeParam>(right.v * scalar<TypeParam>(0.5))), 128);
  // Outputs change D, and so those by queries, not those by values.
  answers.out(0, 0) = answers.out(0, 0) + scalar<TypeParam>(1);
  const Gradients<TypeParam> moved = mattn_gradients_given(this->q, this->k, this->v, this->tau, {}, this->of, answers);
  expect_same_bits(moved.v, halved.v);
  EXPECT_FALSE(same_bits(moved.q(0, 0), halved.q(0, 0)));
  EXPECT_TRUE(same_bits(moved.q(1, 0), halved.q(1, 0)));
}

TYPED_TEST(GradientsOf, WhatNoRowSeesHasNone) {
  BoolMatrix allowed = BoolMatrix::Constant(5, 7, true);
  allowed.col(3).setConstant(false);
  allowed.row(2).setConstant(false);
  this->k(3, 0) = this->v(3, 1) = this->of.out(2, 0) = this->q(2, 0) = ScalarTraits<TypeParam>::undefined();
  const Gradients<TypeParam> found = this->gradients(boolean_mask<TypeParam>(allowed));
  const auto zeros = [](const auto& row) {
    for (Index c = 0; c < row.size(); ++c) EXPECT_TRUE(same_bits(TypeParam(row(c)), scalar<TypeParam>(0)));
  };
  zeros(found.k.row(3)), zeros(found.v.row(3)), zeros(found.q.row(2));
  for (Index i = 0; i < 7; ++i) EXPECT_FALSE(is_nan(found.k(i, 0)) || is_nan(found.v(i, 1)));
}

TYPED_TEST(GradientsOf, ThoseOfAGroupAreSumsOverItsHeads) {
  std::vector<Matrix<TypeParam>> queries, keys{this->k, random_matrix<TypeParam>(this->random, 7, 4)},
      values{this->v, random_matrix<TypeParam>(this->random, 7, 3)};
  std::vector<AnswerGradients<TypeParam>> answers;
  for (int page = 0; page < 4; ++page) {
    queries.push_back(random_matrix<TypeParam>(this->random, 5, 4));
    answers.push_back({random_matrix<TypeParam>(this->random, 5, 3), std::nullopt});
  }
  const auto grouped = grouped_gradients(queries, keys, values, 1, 4, 2, this->tau, {}, answers);
  ASSERT_EQ(grouped.size(), 4U);
  const auto alone = [&](std::size_t h) {
    return mattn_gradients(queries[h], keys[h / 2], values[h / 2], this->tau, {}, answers[h]);
  };
  for (std::size_t h = 0; h < 4; ++h) expect_same_bits(grouped[h].q, alone(h).q);
  for (const std::size_t first : {0U, 2U}) {
    const auto one = alone(first), other = alone(first + 1);
    EXPECT_EQ(grouped[first + 1].k.size() + grouped[first + 1].v.size(), 0);
    expect_close(grouped[first].k, wide_grid(Matrix<TypeParam>(one.k + other.k)), 64);
    expect_close(grouped[first].v, wide_grid(Matrix<TypeParam>(one.v + other.v)), 64);
  }
}

TEST(Gradients, RefuseAnswersOfAnotherShape) {
  const Matrix<double> a = Matrix<double>::Constant(2, 3, 1.0);
  const Matrix<double> square = Matrix<double>::Constant(2, 2, 1.0);
  const Vector<double> three = Vector<double>::Constant(3, 1.0);
  EXPECT_THAT(refusal([&] { return mattn_gradients(a, a, a, 1.0, {}, {square, {}}); }), Says("is 2x2"));
  EXPECT_THAT(refusal([&] { return mattn_gradients(a, a, a, 1.0, {}, {a, three}); }), Says("has 3 entries"));
}

/// The two ways are the same function of their arguments: two queries, three keys, dk = dv = 2, with a mask, and a
/// group of their own for everything else.
template <class Inputs, class Same>
void expect_the_same_formulas(Inputs& inputs, const Same& same, bool variants) {
  using T = typename Inputs::Number;
  int count = 0;
  const auto number = [&] { return inputs.real("x" + std::to_string(count++)); };
  const auto matrix = [&](Index rows, Index cols) {
    Matrix<T> a(rows, cols);
    for (Index i = 0; i < rows; ++i)
      for (Index c = 0; c < cols; ++c) a(i, c) = number();
    return a;
  };
  const Matrix<T> q = matrix(2, 2), k = matrix(3, 2), v = matrix(3, 2);
  Mask<T> mask = additive_mask(matrix(2, 3));
  mask.positions.causal = Causal::bottom_right;
  if (variants) {
    BoolMatrix kept = BoolMatrix::Constant(2, 3, true);
    kept(1, 0) = false;
    mask.kept = kept, mask.kept_share = inputs.positive("share");
    mask.sink = number(), mask.slope = number(), mask.softcap = inputs.positive("cap");
  }
  Vector<T> of_lse(2);
  of_lse(0) = number(), of_lse(1) = number();
  const AnswerGradients<T> of{matrix(2, 2), of_lse};
  const T scale = inputs.positive("scale");
  const Gradients<T> found = mattn_gradients(q, k, v, scale, mask, of),
                     expected = gradients_by_dual_numbers(q, k, v, scale, mask, of);
  const auto all_same = [&](const Matrix<T>& a, const Matrix<T>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (Index i = 0; i < a.rows(); ++i)
      for (Index c = 0; c < a.cols(); ++c) EXPECT_TRUE(same(a(i, c), b(i, c))) << i << ", " << c;
  };
  all_same(found.q, expected.q), all_same(found.k, expected.k), all_same(found.v, expected.v);
  all_same(*found.mask, *expected.mask);
  ASSERT_EQ(found.sink.has_value(), variants);
  EXPECT_TRUE(!variants || same(*found.sink, *expected.sink));
  EXPECT_FALSE(same(found.q(0, 0), found.q(0, 1)));
}

TEST(Gradients, AreThoseOfDualNumbersForAllRealNumbers) {
  for (const bool variants : {false, true}) {
    SCOPED_TRACE(variants);
    SymbolicScope symbols(1024);
    expect_the_same_formulas(symbols, [](const Symbolic& a, const Symbolic& b) { return identical(a, b); }, variants);
  }
}

}  // namespace
}  // namespace attest
