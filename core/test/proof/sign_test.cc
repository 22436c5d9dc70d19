#include "core/proof/sign.h"

#include <gtest/gtest.h>

#include "core/definition/attention.h"
#include "core/definition/multihead.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Sign>;
constexpr unsigned minus = SignSet::negative, zero = SignSet::zero, plus = SignSet::positive, any = SignSet::any;

/// Against numbers: every sum, product and negative of sample numbers has a sign in the set, and each sign in the set
/// is met by some (so the sets are no larger than they must be).
TEST(Signs, AreExactlyThoseOfNumbers) {
  const double samples[] = {-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3};
  for (unsigned a = 1; a <= any; ++a) {
    for (unsigned b = 1; b <= any; ++b) {
      unsigned sums = 0, products = 0, negatives = 0;
      for (const double x : samples) {
        if (!SignSet::of(x).within(a)) continue;
        negatives |= SignSet::of(-x).bits();
        for (const double y : samples) {
          if (!SignSet::of(y).within(b)) continue;
          sums |= SignSet::of(x + y).bits();
          products |= SignSet::of(x * y).bits();
        }
      }
      EXPECT_EQ((SignSet(a) + SignSet(b)).bits(), sums) << a << " + " << b;
      EXPECT_EQ((SignSet(a) * SignSet(b)).bits(), products) << a << " * " << b;
      EXPECT_EQ((-SignSet(a)).bits(), negatives) << a;
    }
  }
}

TEST(Signs, DivideOnlyByWhatCannotBeZero) {
  EXPECT_EQ((Sign::number(plus) / Sign::number(minus)).signs(), SignSet(minus));
  EXPECT_EQ((Sign::number(any) / Sign::number(minus | plus)).signs(), SignSet(any));
  EXPECT_THROW((void)(Sign::number(plus) / Sign::number(zero | plus)), NotKnownNonzero);
  EXPECT_THROW((void)Traits::log(Sign::number(zero | plus)), NotKnownNonzero);
  EXPECT_THROW((void)(Sign::number(plus) - Traits::minus_infinity()), InfinityMisused);
  EXPECT_THROW((void)(Sign::number(zero | plus) * Traits::minus_infinity()), InfinityMisused);
  EXPECT_TRUE(Traits::is_minus_infinity(Sign::number(plus) * Traits::minus_infinity()));
  EXPECT_EQ(Traits::exp(Traits::minus_infinity()).signs(), SignSet(zero));
  EXPECT_THROW((void)(Traits::undefined() + Sign::number(plus)), UndefinedUsed);
  EXPECT_THROW((void)Traits::undefined().signs(), UndefinedUsed);
}

Matrix<Sign> matrix(Index rows, Index cols, unsigned bits) {
  return Matrix<Sign>::Constant(rows, cols, Sign::number(bits));
}

// softmax.nonnegative: weights are positive for any scores, and zero where a key is hidden.
TEST(Signs, ProveThatWeightsArePositive) {
  BoolMatrix allowed = BoolMatrix::Constant(2, 3, true);
  allowed(0, 1) = false;
  const Matrix<Sign> weights =
      attention_weights(matrix(2, 2, any), matrix(3, 2, any), Sign::number(plus), boolean_mask<Sign>(allowed));
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(weights(i, j).signs(), SignSet(allowed(i, j) ? plus : zero));
}

// attention.convex-hull: v_j - c <= 0 for every key gives o - c <= 0, and likewise from below.
TEST(Signs, ProveTheConvexHull) {
  const Matrix<Sign> q = matrix(2, 2, any), k = matrix(3, 2, any);
  const Sign scale = Sign::number(any);
  for (const unsigned side : {minus | zero, zero | plus, minus, plus, zero}) {
    const Matrix<Sign> out = attention(q, k, matrix(3, 2, side), scale);
    for (Index i = 0; i < 2; ++i)
      for (Index c = 0; c < 2; ++c) EXPECT_EQ(out(i, c).signs(), SignSet(side));
    EXPECT_EQ(mattn(q, k, matrix(3, 2, side), scale, causal_mask<Sign>(Causal::bottom_right))(0, 0).signs(),
              SignSet(side));
  }
  EXPECT_EQ(attention(q, k, matrix(3, 2, any), scale)(0, 0).signs(), SignSet(any));
}

// A sum that leaves the hull: one value above the rest, one weight with the wrong sign.
TEST(Signs, RefuteAHullThatOneValueLeaves) {
  Matrix<Sign> v = matrix(3, 2, minus);
  v(2, 0) = Sign::number(plus);
  const Matrix<Sign> out = attention(matrix(2, 2, any), matrix(3, 2, any), v, Sign::number(plus));
  EXPECT_EQ(out(0, 0).signs(), SignSet(any));
  EXPECT_EQ(out(0, 1).signs(), SignSet(minus));
  Matrix<Sign> weights = matrix(2, 3, plus);
  weights(1, 1) = Sign::number(minus);
  const Matrix<Sign> outside = weighted_values(matrix(2, 3, any), weights, matrix(3, 1, plus));
  EXPECT_EQ(outside(0, 0).signs(), SignSet(plus));
  EXPECT_EQ(outside(1, 0).signs(), SignSet(any));
}

}  // namespace
}  // namespace attest
