#include "core/definition/attention.h"

#include "core/definition/matrices.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

template <class T>
using Attention = SmallAttention<T>;
TYPED_TEST_SUITE(Attention, AllScalars, ScalarNames);

TYPED_TEST(Attention, MatchesTheFormula) {
  const PlainResult plain = this->plain(times(this->scale));
  const AttentionResult<TypeParam> result = mattn_lse(this->q, this->k, this->v, this->tau);
  expect_close(result.out, plain.out, this->factor);
  expect_close(result.lse, plain.lse, this->factor);
  expect_close(attention_weights(this->q, this->k, this->tau), plain.weights, this->factor);
  expect_same_bits(attention(this->q, this->k, this->v, this->tau), result.out);
}

TYPED_TEST(Attention, IsScoresThenSoftmaxThenValuesBitForBit) {
  const Mask<TypeParam> mask = causal_mask<TypeParam>(Causal::bottom_right);
  const Matrix<TypeParam> scores = masked_scores(this->q, this->k, this->tau, mask);
  expect_same_bits(weighted_values(scores, softmax_rows(scores), this->v), this->masked_out(mask));
}

TYPED_TEST(Attention, NaNInOneQueryStaysInItsRow) {
  const Matrix<TypeParam> clean = attention(this->q, this->k, this->v, this->tau);
  this->q(2, 1) = ScalarTraits<TypeParam>::undefined();
  const Matrix<TypeParam> out = attention(this->q, this->k, this->v, this->tau);
  expect_same_bits(without_row(out, 2), without_row(clean, 2));
  EXPECT_TRUE(is_nan(out(2, 0)));
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

TEST(AttentionSizes, NoQueryGivesAnEmptyOutputAndNoKeyIsRefusedByName) {
  const auto m = [](Index rows, Index cols) { return Matrix<double>(Matrix<double>::Zero(rows, cols)); };
  const AttentionResult<double> empty = mattn_lse(m(0, 4), m(3, 4), m(3, 2), 0.5);
  EXPECT_EQ(empty.out.rows(), 0);
  EXPECT_EQ(empty.out.cols(), 2);
  EXPECT_EQ(empty.lse.size(), 0);
  EXPECT_EQ(refusal([&] { return attention(m(3, 4), m(0, 4), m(0, 2), 0.5); }),
            "Q is 3x4 and K is 0x4: attention over no key (N = 0) is not defined, N must be at least 1");
  EXPECT_THAT(refusal([&] { return attention(m(3, 4), m(2, 5), m(2, 2), 0.5); }), Says("Q is 3x4 and K is 2x5"));
  EXPECT_THAT(refusal([&] { return attention(m(3, 4), m(2, 4), m(3, 2), 0.5); }), Says("K is 2x4 and V is 3x2"));
}

TEST(AttentionSizes, GroupsThatDoNotFitAreRefused) {
  const std::vector<Matrix<double>> six(6, Matrix<double>::Zero(2, 2)), four(4, Matrix<double>::Zero(2, 2));
  EXPECT_THAT(refusal([&] { return grouped_attention(six, four, four, 1, 6, 4, 0.5); }),
              Says("6 heads cannot share 4"));
  EXPECT_THAT(refusal([&] { return grouped_attention(six, four, four, 1, 6, 3, 0.5); }), Says("pages"));
}

}  // namespace
}  // namespace attest
