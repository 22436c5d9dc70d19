#include "core/definition/matrices.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

class Layout : public ::testing::Test {
 protected:
  std::mt19937_64 random{12};
  Matrix<double> a = random_matrix<double>(random, 4, 3), b = random_matrix<double>(random, 3, 5),
                 c = random_matrix<double>(random, 4, 2);
};

// layout.deletion-identities: what the proofs of 000 rest on.
TEST_F(Layout, DeletionIdentitiesHold) {
  for (Index i = 0; i < 4; ++i) {
    expect_same_bits(product(without_row(identity<double>(4), i), a), without_row(a, i));
    expect_same_bits(without_row(product(a, b), i), product(without_row(a, i), b));
    expect_same_bits(without_row(beside<double>({a, c}), i), beside<double>({without_row(a, i), without_row(c, i)}));
    const Matrix<double> ones4 = Matrix<double>::Ones(4, 1), ones3 = Matrix<double>::Ones(3, 1);
    const Matrix<double> bias = random_matrix<double>(random, 1, 3);
    expect_same_bits(without_row(product(ones4, bias), i), product(ones3, bias));
    expect_same_bits(without_column(transposed(a), i), transposed(without_row(a, i)));
  }
  const Matrix<double> square = random_matrix<double>(random, 4, 4);
  const Matrix<double> left = without_column(without_row(square, 1), 1);  // A^<s> of 000
  ASSERT_EQ(left.rows(), 3);
  ASSERT_EQ(left.cols(), 3);
  EXPECT_EQ(left(0, 0), square(0, 0));
  EXPECT_EQ(left(1, 1), square(2, 2));
  EXPECT_EQ(left(2, 0), square(3, 0));
}

TEST_F(Layout, PermutationMatricesPermuteRowsAndColumns) {
  const std::vector<Index> pi{2, 0, 3, 1};
  // R_pi of 000: entry (i, pi[i]) is one.
  const Matrix<double> r = Matrix<double>::NullaryExpr(
      4, 4, [&](Index i, Index j) { return pi[static_cast<std::size_t>(i)] == j ? 1.0 : 0.0; });
  expect_same_bits(product(r, a), rows_at(a, pi));
  expect_same_bits(product(transposed(a), transposed(r)), columns_at(transposed(a), pi));
  EXPECT_EQ(rows_at(a, pi)(0, 1), a(2, 1));
}

TEST_F(Layout, JoiningUndoesSplitting) {
  const Matrix<double> wide_one = random_matrix<double>(random, 2, 6);
  const std::vector<Matrix<double>> parts = split_columns(wide_one, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1](1, 0), wide_one(1, 2));
  expect_same_bits(beside(parts), wide_one);
  expect_same_bits(transposed(above<double>({transposed(a), transposed(c)})), beside<double>({a, c}));
  EXPECT_THAT(refusal([&] { return split_columns(wide_one, 4); }), Says("2x6"));
  EXPECT_THAT(refusal([&] { return beside<double>({a, b}); }), Says("3x5"));
  EXPECT_THAT(refusal([&] { return above<double>({a, b}); }), Says("3x5"));
}

// layout.index-fusion: (a i) = a p + i is the row-major index, so fusing two indices moves nothing.
TEST_F(Layout, FusedIndicesAreTheSameMemory) {
  const Matrix<double> row = reshaped(a, 1, 12);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(row(0, fused_index(i, j, 3)), a(i, j));
  expect_same_bits(reshaped(row, 4, 3), a);
  EXPECT_NE(reshaped(a, 3, 4)(0, 3), a(0, 2));
  EXPECT_THAT(refusal([&] { return reshaped(a, 5, 2); }), Says("4x3"));
}

}  // namespace
}  // namespace attest
