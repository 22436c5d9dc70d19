#include "core/definition/columns.h"

#include "core/definition/attention.h"
#include "core/definition/matrices.h"
#include "core/definition/multihead.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
class Columns : public OnEveryScalar<T> {
 protected:
  // Rows here; every call of the column convention gets the transposes.
  Matrix<T> q = random_matrix<T>(this->random, 4, 3), k = random_matrix<T>(this->random, 5, 3),
            v = random_matrix<T>(this->random, 5, 2);
  const T tau = scalar<T>(0.5);

  BoolMatrix random_allowed(Index rows, Index keys) {
    BoolMatrix allowed(rows, keys);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < keys; ++j) allowed(i, j) = j == i || this->random() % 2 == 0;
    return allowed;
  }
  Weights<T> weights(Index c_q, Index c, Index dk, Index dv) {
    const auto projection = [&](Index from, Index to) {
      return Projection<T>{.weight = random_matrix<T>(this->random, from, to),
                           .bias = random_vector<T>(this->random, to)};
    };
    return {.q = projection(c_q, dk), .k = projection(c, dk), .v = projection(c, dv)};
  }
};
TYPED_TEST_SUITE(Columns, AllScalars, ScalarNames);

/// Bit for bit, where a b is b a: the two multiply the same numbers in another order.
template <class T>
void expect_transposed(const Matrix<T>& columns, const Matrix<T>& rows) {
  if constexpr (requires { requires !ScalarTraits<T>::commutes; }) {
    ASSERT_EQ(columns.rows(), rows.cols());
    ASSERT_EQ(columns.cols(), rows.rows());
    for (Index i = 0; i < rows.rows(); ++i)
      for (Index j = 0; j < rows.cols(); ++j)
        EXPECT_TRUE(abs(wide(columns(j, i)) - wide(rows(i, j))) <= 64 * unit_of<T>()) << i << ", " << j;
  } else {
    expect_same_bits(transposed(columns), rows);
  }
}

// layout.columns-are-transpose: bit for bit, the mask transposed too, whatever a hidden key holds.
TYPED_TEST(Columns, AreTheTransposeOfRowsBitForBit) {
  BoolMatrix allowed = this->random_allowed(4, 5);
  allowed.col(4).setConstant(false);
  this->k.row(4).setConstant(ScalarTraits<TypeParam>::undefined());
  this->v.row(4).setConstant(ScalarTraits<TypeParam>::undefined());
  const Matrix<TypeParam> columns = attention_columns(transposed(this->q), transposed(this->k), transposed(this->v),
                                                      this->tau, std::optional<BoolMatrix>(transposed(allowed)));
  expect_transposed(columns, mattn(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(allowed)));
}

TYPED_TEST(Columns, WithWeightsAreTheTransposeOfRowsBitForBit) {
  const Weights<TypeParam> w = this->weights(3, 2, 4, 3);
  const Matrix<TypeParam> x = this->q, z = this->v;
  const BoolMatrix allowed = this->random_allowed(4, 5);
  const Matrix<TypeParam> rows = mattn_w(x, z, z, w, this->tau, boolean_mask<TypeParam>(allowed));
  const Matrix<TypeParam> columns = attn_w_columns(transposed(x), transposed(z), columns_of(w), this->tau,
                                                   std::optional<BoolMatrix>(transposed(allowed)));
  expect_transposed(columns, rows);
  // attention.single-query
  const Matrix<TypeParam> unmasked = attn_w(x, z, z, w, this->tau);
  for (Index i = 0; i < x.rows(); ++i) {
    const Vector<TypeParam> token = x.row(i).transpose();
    const Vector<TypeParam> out = single_query(token, transposed(z), columns_of(w), this->tau);
    expect_transposed(Matrix<TypeParam>(out), rows_at(unmasked, {i}));
  }
}

TYPED_TEST(Columns, OfManyHeadsAreTheTransposeOfRowsBitForBit) {
  const std::vector<Weights<TypeParam>> heads{this->weights(3, 2, 4, 3), this->weights(3, 2, 4, 3)};
  const Matrix<TypeParam> w_o = random_matrix<TypeParam>(this->random, 6, 5);
  const Vector<TypeParam> b_o = random_vector<TypeParam>(this->random, 5);
  const Matrix<TypeParam> rows =
      mhattn(this->q, this->v, this->v, fuse(heads, std::optional(w_o), std::optional(b_o)), this->tau);
  const Matrix<TypeParam> columns =
      mhattn_columns(transposed(this->q), transposed(this->v), {columns_of(heads[0]), columns_of(heads[1])},
                     transposed(w_o), std::optional(b_o), this->tau);
  expect_transposed(columns, rows);
}

// causal.column-form: i <= j with keys as rows is "key not after query"; the words "lower triangular" are the
// anticausal one.
TEST(CausalColumns, AreTheCausalMatrixTransposed) {
  const BoolMatrix columns = causal_columns(4);
  EXPECT_EQ(columns, transposed(causal_matrix(4, 4)));
  EXPECT_TRUE(columns(0, 3));
  EXPECT_FALSE(columns(3, 0));
}

TEST(ColumnSizes, ThatDoNotFitAreRefused) {
  const auto m = [](Index r, Index c) { return Matrix<double>(Matrix<double>::Zero(r, c)); };
  EXPECT_THAT(refusal([&] { return attention_columns(m(3, 2), m(3, 0), m(2, 0), 0.5); }), Says("3x0"));
  EXPECT_THAT(refusal([&] { return attention_columns(m(3, 2), m(4, 5), m(2, 5), 0.5); }), Says("4x5"));
  const std::optional<BoolMatrix> rows_by_keys = BoolMatrix::Constant(2, 5, true);
  EXPECT_THAT(refusal([&] { return attention_columns(m(3, 2), m(3, 5), m(2, 5), 0.5, rows_by_keys); }), Says("2x5"));
}

}  // namespace
}  // namespace attest
