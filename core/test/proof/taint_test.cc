#include "core/proof/taint.h"

#include <gtest/gtest.h>

#include "core/definition/attention.h"
#include "core/definition/multihead.h"

namespace attest {
namespace {

using Traits = ScalarTraits<Taint>;

/// Matrices whose entries are inputs: row i of the matrix number m is the source 100*m + i.
Matrix<Taint> inputs(std::uint32_t m, Index rows, Index cols) {
  Matrix<Taint> a(rows, cols);
  for (Index i = 0; i < rows; ++i) a.row(i).setConstant(Taint::input(100 * m + static_cast<std::uint32_t>(i)));
  return a;
}
constexpr std::uint32_t q = 1, k = 2, v = 3, x = 4;
std::uint32_t row(std::uint32_t m, Index i) {
  return 100 * m + static_cast<std::uint32_t>(i);
}

TEST(Taints, AreTheUnionOfWhatWasLookedAt) {
  const Taint a = Taint::input(1), b = Taint::input(2), c = Taint::input(3);
  EXPECT_EQ((a * b + c).sources(), (Taint::Sources{1, 2, 3}));
  EXPECT_EQ((a - a).sources(), (Taint::Sources{1}));
  EXPECT_EQ((Traits::from_double(0.0) * a).sources(), (Taint::Sources{1}));  // 0 * NaN is NaN
  EXPECT_EQ(Traits::exp(b / c).sources(), (Taint::Sources{2, 3}));
  const Taint row_of_two[] = {a, c};
  EXPECT_EQ(Traits::reference_point(row_of_two).sources(), (Taint::Sources{1, 3}));
  EXPECT_TRUE(Traits::exp(Traits::minus_infinity()).sources().empty());
  EXPECT_THROW((void)(a - Traits::minus_infinity()), InfinityMisused);
  EXPECT_THROW((void)Traits::undefined().sources(), UndefinedUsed);
}

// attention.query-locality
TEST(Taints, ProveThatARowDependsOnItsQueryAlone) {
  const AttentionResult<Taint> result = mattn_lse(inputs(q, 3, 2), inputs(k, 2, 2), inputs(v, 2, 2), Taint::constant());
  for (Index i = 0; i < 3; ++i) {
    EXPECT_EQ(result.out(i, 0).sources(), (Taint::Sources{row(q, i), row(k, 0), row(k, 1), row(v, 0), row(v, 1)}));
    EXPECT_EQ(result.lse(i).sources(), (Taint::Sources{row(q, i), row(k, 0), row(k, 1)}));
  }
}

// masked.suppression and causal.no-leak: nothing of a hidden key or its value is looked at.
TEST(Taints, ProveThatHiddenKeysAreNotLookedAt) {
  Matrix<Taint> b = Matrix<Taint>::Constant(3, 3, Traits::from_double(0.0));
  b(1, 2) = Traits::minus_infinity();
  const auto expect_hidden = [](const Matrix<Taint>& out, const std::function<bool(Index, Index)>& sees) {
    for (Index i = 0; i < 3; ++i) {
      for (Index j = 0; j < 3; ++j) {
        EXPECT_EQ(out(i, 1).depends_on(row(k, j)), sees(i, j)) << i << " " << j;
        EXPECT_EQ(out(i, 1).depends_on(row(v, j)), sees(i, j)) << i << " " << j;
      }
    }
  };
  const Matrix<Taint> queries = inputs(q, 3, 2), keys = inputs(k, 3, 2), values = inputs(v, 3, 2);
  const Taint one = Taint::constant();
  expect_hidden(mattn(queries, keys, values, one, additive_mask(b)), [](Index i, Index j) { return i != 1 || j != 2; });
  expect_hidden(mattn(queries, keys, values, one, causal_mask<Taint>()), [](Index i, Index j) { return j <= i; });
  Mask<Taint> both = additive_mask(b, MaskConvention::pre_scale);
  both.positions.causal = Causal::top_left;
  expect_hidden(mattn(queries, keys, values, one, both), [](Index i, Index j) { return j <= i; });
}

// Masking after the softmax divides by a sum over all keys: what renormalises looks at hidden ones too.
TEST(Taints, ShowWhatReachesAnOutputThatRenormalises) {
  BoolMatrix allowed = BoolMatrix::Constant(2, 3, true);
  allowed(0, 2) = false;
  const Matrix<Taint> out = mattn_renormalised(inputs(q, 2, 2), inputs(k, 3, 2), inputs(v, 3, 2), Taint::constant(),
                                               boolean_mask<Taint>(allowed));
  EXPECT_TRUE(out(0, 0).depends_on(row(k, 2)));
  EXPECT_FALSE(out(0, 0).depends_on(row(v, 2)));
}

// multihead.suppression needs every head's mask; multihead.partial-mask-leaks otherwise. causal.no-leak for x_j.
TEST(Taints, ProveSuppressionAcrossHeadsOnlyWhereTheyAgree) {
  const auto constant = [](Index rows, Index cols) { return Matrix<Taint>::Constant(rows, cols, Taint::constant()); };
  MultiheadWeights<Taint> w;
  w.q.weight = w.k.weight = w.v.weight = constant(2, 4);
  w.w_o = constant(4, 2);
  w.heads = 2;
  const Matrix<Taint> in = inputs(x, 3, 2);
  BoolMatrix allowed = BoolMatrix::Constant(3, 3, true);
  allowed(0, 2) = false;
  const Mask<Taint> hiding = boolean_mask<Taint>(allowed), open;
  const Matrix<Taint> all = mmhsattn(in, w, Taint::constant(), HeadMasks<Taint>::two_d(hiding));
  EXPECT_FALSE(all(0, 0).depends_on(row(x, 2)));
  EXPECT_TRUE(all(1, 0).depends_on(row(x, 2)));
  const Matrix<Taint> some = mmhsattn(in, w, Taint::constant(), HeadMasks<Taint>::three_d({hiding, open}, 1, 2));
  EXPECT_TRUE(some(0, 0).depends_on(row(x, 2)));
  const Matrix<Taint> causal = mmhsattn(in, w, Taint::constant(), HeadMasks<Taint>::two_d(causal_mask<Taint>()));
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(causal(i, 0).depends_on(row(x, j)), j <= i);
}

}  // namespace
}  // namespace attest
