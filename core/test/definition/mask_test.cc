#include "core/definition/mask.h"

#include "core/definition/attention.h"
#include "core/definition/matrices.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
class MaskedAttention : public SmallAttention<T> {
 protected:
  /// Where a boolean matrix is true, always with a visible key in each row.
  BoolMatrix random_allowed() {
    BoolMatrix allowed(5, 7);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j) allowed(i, j) = j == i || this->random() % 2 == 0;
    return allowed;
  }
};
TYPED_TEST_SUITE(MaskedAttention, AllScalars, ScalarNames);

TYPED_TEST(MaskedAttention, AddsAFiniteMaskBeforeOrAfterTheScaleAsItsConventionSays) {
  Matrix<TypeParam> b = random_matrix<TypeParam>(this->random, 5, 7);
  b(1, 2) = b(4, 0) = ScalarTraits<TypeParam>::minus_infinity();
  const Grid bias = grid_of(b);
  const Sees sees = [](std::size_t i, std::size_t j) { return !(i == 1 && j == 2) && !(i == 4 && j == 0); };
  const PlainResult post = this->plain(
      [&](const Precise& x, std::size_t i, std::size_t j) { return Precise(this->scale * x + bias[i][j]); }, sees);
  const PlainResult pre = this->plain(
      [&](const Precise& x, std::size_t i, std::size_t j) { return Precise(this->scale * (x + bias[i][j])); }, sees);
  const AttentionResult<TypeParam> after = this->masked(additive_mask(b, MaskConvention::post_scale));
  const AttentionResult<TypeParam> before = this->masked(additive_mask(b, MaskConvention::pre_scale));
  expect_close(after.out, post.out, this->factor);
  expect_close(after.lse, post.lse, this->factor);
  expect_close(before.out, pre.out, this->factor);
  expect_close(before.lse, pre.lse, this->factor);
  // masked.conventions-differ: a finite mask tells them apart by far more than any rounding.
  EXPECT_TRUE(abs(wide(after.lse(0)) - wide(before.lse(0))) > 0.01);
}

TYPED_TEST(MaskedAttention, ConventionsAgreeBitForBitWhereTheMaskIsZeroOrMinusInfinity) {
  const Matrix<TypeParam> b = additive_from<TypeParam>(this->random_allowed());
  expect_same_bits(this->masked_out(additive_mask(b, MaskConvention::post_scale)),
                   this->masked_out(additive_mask(b, MaskConvention::pre_scale)));
}

TYPED_TEST(MaskedAttention, ZeroAndAllTrueMasksAreNoMaskBitForBit) {
  const Matrix<TypeParam> none = attention(this->q, this->k, this->v, this->tau);
  const Matrix<TypeParam> zero = Matrix<TypeParam>::Constant(5, 7, scalar<TypeParam>(0));
  expect_same_bits(this->masked_out(additive_mask(zero)), none);
  expect_same_bits(this->masked_out(boolean_mask<TypeParam>(BoolMatrix::Constant(5, 7, true))), none);
}

TYPED_TEST(MaskedAttention, BooleanMaskIsTheAdditiveOneBitForBit) {
  const BoolMatrix allowed = this->random_allowed();
  const AttentionResult<TypeParam> boolean = this->masked(boolean_mask<TypeParam>(allowed));
  const AttentionResult<TypeParam> additive = this->masked(additive_mask(additive_from<TypeParam>(allowed)));
  expect_same_bits(boolean.out, additive.out);
  expect_same_bits(Matrix<TypeParam>(boolean.lse), Matrix<TypeParam>(additive.lse));
  const PlainResult plain = this->plain(times(this->scale), [&](std::size_t i, std::size_t j) {
    return allowed(static_cast<Index>(i), static_cast<Index>(j));
  });
  expect_close(boolean.out, plain.out, this->factor);
}

TYPED_TEST(MaskedAttention, CausalFormsHideWhatTheContractSays) {
  for (const Causal causal : {Causal::top_left, Causal::bottom_right}) {
    const std::size_t shift = causal == Causal::bottom_right ? 7 - 5 : 0;
    const PlainResult plain =
        this->plain(times(this->scale), [=](std::size_t i, std::size_t j) { return j <= i + shift; });
    const AttentionResult<TypeParam> result = this->masked(causal_mask<TypeParam>(causal));
    expect_close(result.out, plain.out, this->factor);
    expect_close(result.lse, plain.lse, this->factor);
    expect_same_bits(result.out, this->masked_out(boolean_mask<TypeParam>(causal_matrix(5, 7, causal))));
  }
}

TYPED_TEST(MaskedAttention, CausalComesOnTopOfTheMask) {
  const BoolMatrix allowed = this->random_allowed();
  Mask<TypeParam> both = boolean_mask<TypeParam>(allowed);
  both.positions.causal = Causal::top_left;
  const BoolMatrix together = (allowed.array() && causal_matrix(5, 7).array()).matrix();
  expect_same_bits(this->masked_out(both), this->masked_out(boolean_mask<TypeParam>(together)));
}

TYPED_TEST(MaskedAttention, BottomRightWithMoreQueriesThanKeysHidesEverythingFromTheFirstRows) {
  const Matrix<TypeParam> k3 = rows_at(this->k, {0, 1, 2}), v3 = rows_at(this->v, {0, 1, 2});
  const AttentionResult<TypeParam> result =
      mattn_lse(this->q, k3, v3, this->tau, causal_mask<TypeParam>(Causal::bottom_right));
  for (Index i = 0; i < 2; ++i) {
    EXPECT_TRUE(is_nan(result.lse(i)));
    for (Index c = 0; c < 3; ++c) EXPECT_TRUE(is_nan(result.out(i, c)));
  }
  // Row 2 sees key 0 alone, and a weight of exactly 1.
  for (Index c = 0; c < 3; ++c) EXPECT_TRUE(wide(result.out(2, c)) == wide(this->v(0, c)));
}

TYPED_TEST(MaskedAttention, HiddenKeysMayHoldAnything) {
  using Traits = ScalarTraits<TypeParam>;
  Mask<TypeParam> mask = boolean_mask<TypeParam>(this->random_allowed());
  mask.allowed->col(3).setConstant(false);
  Mask<TypeParam> additive = additive_mask(additive_from<TypeParam>(*mask.allowed), MaskConvention::pre_scale);
  const AttentionResult<TypeParam> clean = this->masked(mask);
  for (const TypeParam& poison : {Traits::undefined(), Traits::minus_infinity(), scalar<TypeParam>(3e38)}) {
    this->k.row(3).setConstant(poison);
    this->v.row(3).setConstant(poison);
    for (const Mask<TypeParam>& m : {mask, additive}) {
      const AttentionResult<TypeParam> poisoned = this->masked(m);
      expect_same_bits(poisoned.out, clean.out);
      expect_same_bits(Matrix<TypeParam>(poisoned.lse), Matrix<TypeParam>(clean.lse));
    }
  }
  // The same poison in plain sight does show.
  this->k.row(3).setConstant(Traits::undefined());
  EXPECT_TRUE(is_nan(attention(this->q, this->k, this->v, this->tau)(0, 0)));
}

TYPED_TEST(MaskedAttention, FullyMaskedRowIsUndefinedAndTheOthersAreUnaffected) {
  static_assert(core_fully_masked_row == FullyMaskedRow::nan);
  BoolMatrix allowed = BoolMatrix::Constant(5, 7, true);
  allowed.row(2).setConstant(false);
  const AttentionResult<TypeParam> result = this->masked(boolean_mask<TypeParam>(allowed));
  EXPECT_TRUE(is_nan(result.lse(2)));
  for (Index c = 0; c < 3; ++c) EXPECT_TRUE(is_nan(result.out(2, c)));
  expect_same_bits(without_row(result.out, 2), without_row(attention(this->q, this->k, this->v, this->tau), 2));
}

TYPED_TEST(MaskedAttention, RenormalisedWeightsAreTheMask) {
  Mask<TypeParam> mask = boolean_mask<TypeParam>(this->random_allowed());
  this->v(6, 1) = ScalarTraits<TypeParam>::undefined();
  mask.allowed->col(6).setConstant(false);
  const Matrix<TypeParam> masked = this->masked_out(mask);
  const Matrix<TypeParam> renormalised = mattn_renormalised(this->q, this->k, this->v, this->tau, mask);
  for (Index i = 0; i < 5; ++i)
    for (Index c = 0; c < 3; ++c)
      EXPECT_TRUE(abs(wide(masked(i, c)) - wide(renormalised(i, c))) <= this->factor * unit_of<TypeParam>());
}

TEST(MaskSizes, AMaskOfAnotherShapeIsRefusedNamingBoth) {
  const auto m = [](Index rows, Index cols) { return Matrix<double>(Matrix<double>::Zero(rows, cols)); };
  EXPECT_EQ(refusal([&] { return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, additive_mask(m(3, 3))); }),
            "the mask is 3x3, the scores are 3x2: a mask fits one number of queries and one of keys");
  EXPECT_THAT(refusal([&] {
                return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, boolean_mask<double>(BoolMatrix::Constant(2, 2, true)));
              }),
              Says("the mask is 2x2, the scores are 3x2"));
  Mask<double> appended = additive_mask(m(3, 2));
  appended.appended_keys = 1;
  EXPECT_THAT(refusal([&] { return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, appended); }), Says("3x1"));
  EXPECT_EQ(mattn(m(3, 4), m(3, 4), m(3, 2), 0.5, appended).rows(), 3);
}

}  // namespace
}  // namespace attest
