#include <algorithm>

#include "core/definition/attention.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
class SplitMerge : public OnEveryScalar<T> {
 protected:
  static constexpr Index keys = 9;
  Matrix<T> q = random_matrix<T>(this->random, 4, 4), k = random_matrix<T>(this->random, keys, 4),
            v = random_matrix<T>(this->random, keys, 3);
  const T tau = scalar<T>(0.5);

  PartialAttention<T> part(Index first, Index last, const Mask<T>& mask) {
    return partial_attention(q, k, v, tau, mask, first, last);
  }
  void expect_whole(const AttentionResult<T>& merged, const Mask<T>& mask) {
    const AttentionResult<T> whole = mattn_lse(q, k, v, tau, mask);
    const Precise allowed = 32 * unit_of<T>();
    for (Index i = 0; i < q.rows(); ++i) {
      EXPECT_TRUE(abs(wide(merged.lse(i)) - wide(whole.lse(i))) <= 2 * allowed) << i;
      for (Index c = 0; c < v.cols(); ++c) EXPECT_TRUE(abs(wide(merged.out(i, c)) - wide(whole.out(i, c))) <= allowed);
    }
  }
};
TYPED_TEST_SUITE(SplitMerge, AllScalars, ScalarNames);

TYPED_TEST(SplitMerge, BlocksMergeToTheWholeHoweverTheyAreCut) {
  Matrix<TypeParam> b = random_matrix<TypeParam>(this->random, 4, this->keys);
  // Block 3..5 wholly hidden from row 1: an empty state in the middle.
  b.row(1).segment(3, 3).setConstant(ScalarTraits<TypeParam>::minus_infinity());
  Mask<TypeParam> mask = additive_mask(b);
  mask.positions.causal = Causal::bottom_right;
  for (const Index step : {1, 2, 3, 4, 9}) {
    PartialAttention<TypeParam> merged = this->part(0, std::min(step, this->keys), mask);
    for (Index first = step; first < this->keys; first += step)
      merged = merge(merged, this->part(first, std::min(first + step, this->keys), mask));
    this->expect_whole(finish(merged), mask);
  }
  // A tree, and the blocks in another order.
  const auto low = merge(this->part(0, 3, mask), this->part(3, 6, mask));
  this->expect_whole(finish(merge(this->part(6, 9, mask), low)), mask);
}

TYPED_TEST(SplitMerge, AnEmptyBlockHasLogSumExpMinusInfinityAndChangesNoBit) {
  using Traits = ScalarTraits<TypeParam>;
  const Mask<TypeParam> none;
  const PartialAttention<TypeParam> empty = this->part(4, 4, none), some = this->part(0, 5, none);
  for (Index i = 0; i < 4; ++i) {
    EXPECT_TRUE(Traits::is_minus_infinity(empty.reference(i)));
    EXPECT_TRUE(same_bits(empty.sum(i), scalar<TypeParam>(0)));
  }
  for (const auto& merged : {merge(empty, some), merge(some, empty)}) {
    expect_same_bits(merged.values, some.values);
    expect_same_bits(Matrix<TypeParam>(merged.sum), Matrix<TypeParam>(some.sum));
    expect_same_bits(Matrix<TypeParam>(merged.reference), Matrix<TypeParam>(some.reference));
  }
  const AttentionResult<TypeParam> nothing = finish(merge(empty, empty));
  EXPECT_TRUE(is_nan(nothing.out(0, 0)) && is_nan(nothing.lse(0)));
}

TYPED_TEST(SplitMerge, HiddenKeysInABlockMayHoldAnything) {
  Mask<TypeParam> mask = boolean_mask<TypeParam>(BoolMatrix::Constant(4, this->keys, true));
  mask.allowed->col(2).setConstant(false);
  const PartialAttention<TypeParam> clean = this->part(0, 5, mask);
  this->k.row(2).setConstant(ScalarTraits<TypeParam>::undefined());
  this->v.row(2).setConstant(ScalarTraits<TypeParam>::undefined());
  expect_same_bits(this->part(0, 5, mask).values, clean.values);
}

}  // namespace
}  // namespace attest
