#include "core/definition/softmax.h"

#include <limits>

#include "core/definition/matrices.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
using Softmax = OnEveryScalar<T>;
TYPED_TEST_SUITE(Softmax, AllScalars, ScalarNames);

/// e^{x_j} / sum e^{x_l} row by row, with no reference point.
Grid plain_softmax(const Grid& a) {
  Grid weights;
  for (const WideRow& row : a) {
    Precise z = 0;
    for (const Precise& x : row) z += exp(x);
    WideRow w;
    for (const Precise& x : row) w.push_back(exp(x) / z);
    weights.push_back(std::move(w));
  }
  return weights;
}

TYPED_TEST(Softmax, OfRowsMatchesTheFormula) {
  const Matrix<TypeParam> a = random_matrix<TypeParam>(this->random, 6, 5);
  expect_close(softmax_rows(a), plain_softmax(grid_of(a)), /*factor=*/8);
}

TYPED_TEST(Softmax, OfColumnsIsTheTransposeBitForBit) {
  const Matrix<TypeParam> a = random_matrix<TypeParam>(this->random, 4, 7);
  expect_same_bits(softmax_columns(a), transposed(softmax_rows(transposed(a))));
  const Matrix<TypeParam> rows = softmax_rows(a), columns = softmax_columns(a);
  EXPECT_FALSE(same_bits(rows(0, 0), columns(0, 0)));
}

TYPED_TEST(Softmax, GivesMinusInfinityExactlyNothing) {
  using Traits = ScalarTraits<TypeParam>;
  Vector<TypeParam> x = random_vector<TypeParam>(this->random, 5);
  const Vector<TypeParam> kept = (Vector<TypeParam>(3) << x(0), x(2), x(4)).finished();
  x(1) = x(3) = Traits::minus_infinity();
  const Vector<TypeParam> with = softmax(x), without = softmax(kept);
  EXPECT_TRUE(same_bits(with(1), scalar<TypeParam>(0)) && same_bits(with(3), scalar<TypeParam>(0)));
  for (Index j = 0; j < 3; ++j) EXPECT_TRUE(same_bits(with(2 * j), without(j)));
}

TYPED_TEST(Softmax, OfAnEmptyRowIsUndefined) {
  using Traits = ScalarTraits<TypeParam>;
  const Vector<TypeParam> x = Vector<TypeParam>::Constant(3, Traits::minus_infinity());
  const Exponentials<TypeParam> e = exponentials(x);
  EXPECT_TRUE(e.empty && Traits::is_minus_infinity(e.reference) && same_bits(e.sum, scalar<TypeParam>(0)));
  const Vector<TypeParam> weights = softmax(x);
  for (const TypeParam& w : entries_of(weights)) EXPECT_TRUE(is_nan(w));
}

TYPED_TEST(Softmax, DoesNotOverflowWhereScoresAreLarge) {
  Vector<TypeParam> x(3);
  x << scalar<TypeParam>(20000), scalar<TypeParam>(20000), scalar<TypeParam>(-20000);
  const Vector<TypeParam> w = softmax(x);
  EXPECT_EQ(ScalarTraits<TypeParam>::to_double(w(0)), 0.5);
  EXPECT_EQ(ScalarTraits<TypeParam>::to_double(w(1)), 0.5);
  EXPECT_LE(std::abs(ScalarTraits<TypeParam>::to_double(w(2))), 1e-300);
}

// A NaN must not be taken for a hidden key, wherever it stands.
TEST(SoftmaxOfDouble, OfARowWithNaNIsNaN) {
  for (Index at = 0; at < 3; ++at) {
    Vector<double> x = Vector<double>::Constant(3, 1.0);
    x(at) = std::numeric_limits<double>::quiet_NaN();
    const Vector<double> weights = softmax(x);
    for (const double w : entries_of(weights)) EXPECT_TRUE(std::isnan(w));
  }
}

}  // namespace
}  // namespace attest
