#include "attest/attention.h"

#include "attest/layout.h"
#include "test_scalars.h"

namespace attest {
namespace {

using namespace test;

constexpr double scale = 0.5;
/// Roundings of a score, an exponential and two sums over at most 7 terms, for entries up to 1 and scores up to 2.
constexpr double factor = 32;

template <class T>
class Attention : public OnEveryScalar<T> {
 protected:
  Matrix<T> q = random_matrix<T>(this->random, 5, 4), k = random_matrix<T>(this->random, 7, 4),
            v = random_matrix<T>(this->random, 7, 3);
  const T tau = scalar<T>(scale);

  PlainResult plain(const Score& score, const Sees& sees = all_keys) {
    return plain_attention(grid_of(q), grid_of(k), grid_of(v), score, sees);
  }
  /// Where a boolean matrix is true, always with a visible key in each row.
  BoolMatrix random_allowed() {
    BoolMatrix allowed(5, 7);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j) allowed(i, j) = j == i || this->random() % 2 == 0;
    return allowed;
  }
};
TYPED_TEST_SUITE(Attention, AllScalars, ScalarNames);

TYPED_TEST(Attention, MatchesTheFormula) {
  const PlainResult plain = this->plain(times(scale));
  const AttentionResult<TypeParam> result = mattn_lse(this->q, this->k, this->v, this->tau);
  expect_close(result.out, plain.out, factor);
  expect_close(result.lse, plain.lse, factor);
  expect_close(attention_weights(this->q, this->k, this->tau), plain.weights, factor);
  expect_same_bits(attention(this->q, this->k, this->v, this->tau), result.out);
}

TYPED_TEST(Attention, IsScoresThenSoftmaxThenValuesBitForBit) {
  const Mask<TypeParam> mask = causal_mask<TypeParam>(Causal::bottom_right);
  const Matrix<TypeParam> scores = masked_scores(this->q, this->k, this->tau, mask);
  expect_same_bits(weighted_values(scores, softmax_rows(scores), this->v),
                   mattn(this->q, this->k, this->v, this->tau, mask));
}

TYPED_TEST(Attention, AddsAFiniteMaskBeforeOrAfterTheScaleAsItsConventionSays) {
  Matrix<TypeParam> b = random_matrix<TypeParam>(this->random, 5, 7);
  b(1, 2) = b(4, 0) = ScalarTraits<TypeParam>::minus_infinity();
  const Grid bias = grid_of(b);
  const Sees sees = [](std::size_t i, std::size_t j) { return !(i == 1 && j == 2) && !(i == 4 && j == 0); };
  const PlainResult post =
      this->plain([&](const Wide& x, std::size_t i, std::size_t j) { return Wide(scale * x + bias[i][j]); }, sees);
  const PlainResult pre =
      this->plain([&](const Wide& x, std::size_t i, std::size_t j) { return Wide(scale * (x + bias[i][j])); }, sees);
  const AttentionResult<TypeParam> after =
      mattn_lse(this->q, this->k, this->v, this->tau, additive_mask(b, MaskConvention::post_scale));
  const AttentionResult<TypeParam> before =
      mattn_lse(this->q, this->k, this->v, this->tau, additive_mask(b, MaskConvention::pre_scale));
  expect_close(after.out, post.out, factor);
  expect_close(after.lse, post.lse, factor);
  expect_close(before.out, pre.out, factor);
  expect_close(before.lse, pre.lse, factor);
  // masked.conventions-differ: a finite mask tells them apart by far more than any rounding.
  EXPECT_TRUE(abs(wide(after.lse(0)) - wide(before.lse(0))) > 0.01);
}

TYPED_TEST(Attention, ConventionsAgreeBitForBitWhereTheMaskIsZeroOrMinusInfinity) {
  const Matrix<TypeParam> b = additive_from<TypeParam>(this->random_allowed());
  expect_same_bits(mattn(this->q, this->k, this->v, this->tau, additive_mask(b, MaskConvention::post_scale)),
                   mattn(this->q, this->k, this->v, this->tau, additive_mask(b, MaskConvention::pre_scale)));
}

TYPED_TEST(Attention, ZeroAndAllTrueMasksAreNoMaskBitForBit) {
  const Matrix<TypeParam> none = attention(this->q, this->k, this->v, this->tau);
  const Matrix<TypeParam> zero = Matrix<TypeParam>::Constant(5, 7, scalar<TypeParam>(0));
  expect_same_bits(mattn(this->q, this->k, this->v, this->tau, additive_mask(zero)), none);
  expect_same_bits(
      mattn(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(BoolMatrix::Constant(5, 7, true))), none);
}

TYPED_TEST(Attention, BooleanMaskIsTheAdditiveOneBitForBit) {
  const BoolMatrix allowed = this->random_allowed();
  const AttentionResult<TypeParam> boolean =
      mattn_lse(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(allowed));
  const AttentionResult<TypeParam> additive =
      mattn_lse(this->q, this->k, this->v, this->tau, additive_mask(additive_from<TypeParam>(allowed)));
  expect_same_bits(boolean.out, additive.out);
  expect_same_bits(Matrix<TypeParam>(boolean.lse), Matrix<TypeParam>(additive.lse));
  const PlainResult plain = this->plain(times(scale), [&](std::size_t i, std::size_t j) {
    return allowed(static_cast<Index>(i), static_cast<Index>(j));
  });
  expect_close(boolean.out, plain.out, factor);
}

TYPED_TEST(Attention, CausalFormsHideWhatTheContractSays) {
  for (const Causal causal : {Causal::top_left, Causal::bottom_right}) {
    const std::size_t shift = causal == Causal::bottom_right ? 7 - 5 : 0;
    const PlainResult plain = this->plain(times(scale), [=](std::size_t i, std::size_t j) { return j <= i + shift; });
    const AttentionResult<TypeParam> result =
        mattn_lse(this->q, this->k, this->v, this->tau, causal_mask<TypeParam>(causal));
    expect_close(result.out, plain.out, factor);
    expect_close(result.lse, plain.lse, factor);
    expect_same_bits(result.out,
                     mattn(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(causal_matrix(5, 7, causal))));
  }
}

TYPED_TEST(Attention, CausalComesOnTopOfTheMask) {
  const BoolMatrix allowed = this->random_allowed();
  Mask<TypeParam> both = boolean_mask<TypeParam>(allowed);
  both.causal = Causal::top_left;
  const BoolMatrix together = (allowed.array() && causal_matrix(5, 7).array()).matrix();
  expect_same_bits(mattn(this->q, this->k, this->v, this->tau, both),
                   mattn(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(together)));
}

TYPED_TEST(Attention, BottomRightWithMoreQueriesThanKeysHidesEverythingFromTheFirstRows) {
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

// Nothing of a hidden key may reach an output: NaN and infinities in its key and its value change no bit
// (masked.suppression).
TYPED_TEST(Attention, HiddenKeysMayHoldAnything) {
  using Traits = ScalarTraits<TypeParam>;
  Mask<TypeParam> mask = boolean_mask<TypeParam>(this->random_allowed());
  mask.allowed->col(3).setConstant(false);
  Mask<TypeParam> additive = additive_mask(additive_from<TypeParam>(*mask.allowed), MaskConvention::pre_scale);
  const AttentionResult<TypeParam> clean = mattn_lse(this->q, this->k, this->v, this->tau, mask);
  for (const TypeParam& poison : {Traits::undefined(), Traits::minus_infinity(), scalar<TypeParam>(3e38)}) {
    this->k.row(3).setConstant(poison);
    this->v.row(3).setConstant(poison);
    for (const Mask<TypeParam>& m : {mask, additive}) {
      const AttentionResult<TypeParam> poisoned = mattn_lse(this->q, this->k, this->v, this->tau, m);
      expect_same_bits(poisoned.out, clean.out);
      expect_same_bits(Matrix<TypeParam>(poisoned.lse), Matrix<TypeParam>(clean.lse));
    }
  }
  // The same poison in plain sight does show.
  this->k.row(3).setConstant(Traits::undefined());
  EXPECT_TRUE(is_nan(attention(this->q, this->k, this->v, this->tau)(0, 0)));
}

TYPED_TEST(Attention, NaNInOneQueryStaysInItsRow) {
  const Matrix<TypeParam> clean = attention(this->q, this->k, this->v, this->tau);
  this->q(2, 1) = ScalarTraits<TypeParam>::undefined();
  const Matrix<TypeParam> out = attention(this->q, this->k, this->v, this->tau);
  expect_same_bits(without_row(out, 2), without_row(clean, 2));
  EXPECT_TRUE(is_nan(out(2, 0)));
}

TYPED_TEST(Attention, FullyMaskedRowIsUndefinedAndTheOthersAreUnaffected) {
  static_assert(core_fully_masked_row == FullyMaskedRow::nan);
  BoolMatrix allowed = BoolMatrix::Constant(5, 7, true);
  allowed.row(2).setConstant(false);
  const AttentionResult<TypeParam> result =
      mattn_lse(this->q, this->k, this->v, this->tau, boolean_mask<TypeParam>(allowed));
  EXPECT_TRUE(is_nan(result.lse(2)));
  for (Index c = 0; c < 3; ++c) EXPECT_TRUE(is_nan(result.out(2, c)));
  expect_same_bits(without_row(result.out, 2), without_row(attention(this->q, this->k, this->v, this->tau), 2));
}

// What batch-invariant and padding-invariant promise.
TYPED_TEST(Attention, RowsDoNotDependOnOtherRowsNorOnMaskedKeysAtTheEnd) {
  const Matrix<TypeParam> whole = attention(this->q, this->k, this->v, this->tau);
  expect_same_bits(attention(without_row(this->q, 1), this->k, this->v, this->tau), without_row(whole, 1));
  const Matrix<TypeParam> k9 = above<TypeParam>({this->k, random_matrix<TypeParam>(this->random, 2, 4)}),
                          v9 = above<TypeParam>({this->v, random_matrix<TypeParam>(this->random, 2, 3)});
  BoolMatrix allowed = BoolMatrix::Constant(5, 9, true);
  allowed.rightCols(2).setConstant(false);
  expect_same_bits(mattn(this->q, k9, v9, this->tau, boolean_mask<TypeParam>(allowed)), whole);
}

TYPED_TEST(Attention, RenormalisedWeightsAreTheMask) {
  Mask<TypeParam> mask = boolean_mask<TypeParam>(this->random_allowed());
  this->v(6, 1) = ScalarTraits<TypeParam>::undefined();
  mask.allowed->col(6).setConstant(false);
  const Matrix<TypeParam> masked = mattn(this->q, this->k, this->v, this->tau, mask);
  const Matrix<TypeParam> renormalised = mattn_renormalised(this->q, this->k, this->v, this->tau, mask);
  for (Index i = 0; i < 5; ++i)
    for (Index c = 0; c < 3; ++c)
      EXPECT_TRUE(abs(wide(masked(i, c)) - wide(renormalised(i, c))) <= factor * unit_of<TypeParam>());
}

TYPED_TEST(Attention, GroupedQueriesAreRepeatedHeadsBitForBit) {
  const Index batch = 2, heads = 6, kv_heads = 2;
  std::vector<Matrix<TypeParam>> qs, ks, vs, k_repeated, v_repeated;
  for (Index page = 0; page < batch * heads; ++page) qs.push_back(random_matrix<TypeParam>(this->random, 3, 4));
  for (Index page = 0; page < batch * kv_heads; ++page) {
    ks.push_back(random_matrix<TypeParam>(this->random, 4, 4));
    vs.push_back(random_matrix<TypeParam>(this->random, 4, 2));
    k_repeated.insert(k_repeated.end(), 3, ks.back());
    v_repeated.insert(v_repeated.end(), 3, vs.back());
  }
  const auto grouped = grouped_attention(qs, ks, vs, batch, heads, kv_heads, this->tau);
  const auto repeated = grouped_attention(qs, k_repeated, v_repeated, batch, heads, heads, this->tau);
  for (std::size_t page = 0; page < grouped.size(); ++page) {
    expect_same_bits(grouped[page].out, repeated[page].out);
    expect_same_bits(grouped[page].out, attention(qs[page], ks[page / 3], vs[page / 3], this->tau));
  }
}

/// The one line of the UsageError that the call ends in.
template <class Call>
std::string refusal(const Call& call) {
  try {
    (void)call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(no UsageError)";
}

TEST(AttentionSizes, NoQueryGivesAnEmptyOutputAndNoKeyIsRefusedByName) {
  const auto m = [](Index rows, Index cols) { return Matrix<double>(Matrix<double>::Zero(rows, cols)); };
  const AttentionResult<double> empty = mattn_lse(m(0, 4), m(3, 4), m(3, 2), 0.5);
  EXPECT_EQ(empty.out.rows(), 0);
  EXPECT_EQ(empty.out.cols(), 2);
  EXPECT_EQ(empty.lse.size(), 0);
  EXPECT_EQ(refusal([&] { return attention(m(3, 4), m(0, 4), m(0, 2), 0.5); }),
            "Q is 3x4 and K is 0x4: attention over no key (N = 0) is not defined, N must be at least 1");
  EXPECT_NE(refusal([&] { return attention(m(3, 4), m(2, 5), m(2, 2), 0.5); }).find("Q is 3x4 and K is 2x5"),
            std::string::npos);
  EXPECT_NE(refusal([&] { return attention(m(3, 4), m(2, 4), m(3, 2), 0.5); }).find("K is 2x4 and V is 3x2"),
            std::string::npos);
}

TEST(AttentionSizes, AMaskOfAnotherShapeIsRefusedNamingBoth) {
  const auto m = [](Index rows, Index cols) { return Matrix<double>(Matrix<double>::Zero(rows, cols)); };
  EXPECT_EQ(refusal([&] { return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, additive_mask(m(3, 3))); }),
            "the mask is 3x3, the scores are 3x2: a mask fits one number of queries and one of keys");
  EXPECT_NE(refusal([&] {
              return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, boolean_mask<double>(BoolMatrix::Constant(2, 2, true)));
            }).find("the mask is 2x2, the scores are 3x2"),
            std::string::npos);
  Mask<double> appended = additive_mask(m(3, 2));
  appended.appended_keys = 1;
  EXPECT_NE(refusal([&] { return mattn(m(3, 4), m(2, 4), m(2, 2), 0.5, appended); }).find("3x1"), std::string::npos);
  EXPECT_EQ(mattn(m(3, 4), m(3, 4), m(3, 2), 0.5, appended).rows(), 3);
}

TEST(AttentionSizes, GroupsThatDoNotFitAreRefused) {
  const std::vector<Matrix<double>> six(6, Matrix<double>::Zero(2, 2)), four(4, Matrix<double>::Zero(2, 2));
  EXPECT_NE(refusal([&] { return grouped_attention(six, four, four, 1, 6, 4, 0.5); }).find("6 heads cannot share 4"),
            std::string::npos);
  EXPECT_NE(refusal([&] { return grouped_attention(six, four, four, 1, 6, 3, 0.5); }).find("pages"), std::string::npos);
}

}  // namespace
}  // namespace attest
