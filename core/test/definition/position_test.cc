#include "core/definition/position.h"

#include "core/definition/matrices.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

class Ladder : public ::testing::Test {
 protected:
  std::mt19937_64 random{11};
  Matrix<double> x = random_matrix<double>(random, 4, 3);
  Weights<double> weights(Index dk, Index dv) {
    return {.q = {random_matrix<double>(random, 3, dk), {}},
            .k = {random_matrix<double>(random, 3, dk), {}},
            .v = {random_matrix<double>(random, 3, dv), {}}};
  }
};

TEST_F(Ladder, ParameterFreeHasSymmetricScores) {
  const Matrix<double> scores = masked_scores(x, x, 1.0);
  expect_same_bits(scores, transposed(scores));
  const PlainResult plain = plain_attention(grid_of(x), grid_of(x), grid_of(x), times(1));
  expect_close(parameter_free(x), plain.out, 32);
  // self.scores-symmetric is false once queries and keys have weights of their own.
  const Weights<double> w = weights(2, 2);
  const Matrix<double> s = masked_scores(project(x, w.q), project(x, w.k), 1.0);
  EXPECT_GT(std::abs(s(0, 1) - s(1, 0)), 1e-3);
}

TEST_F(Ladder, SharedProjectionWithTheIdentityIsParameterFree) {
  expect_same_bits(shared_projection(x, identity<double>(3)), parameter_free(x));
  const Matrix<double> u = random_matrix<double>(random, 3, 2);
  const Grid xu = plain_projection(grid_of(x), grid_of(u));
  expect_close(shared_projection(x, u), plain_attention(xu, xu, xu, times(1)).out, 256);
  const Projection<double> p{.weight = u, .bias = {}};
  expect_same_bits(shared_projection(x, u), sattn(x, Weights<double>{.q = p, .k = p, .v = p}, 1.0));
}

// softmax(QK^T)V is the scaled form of sqrt(dk) Q; with dk = 4 both factors are powers of two and nothing rounds.
TEST_F(Ladder, UnscaledIsScaledAtQueriesTimesTheRootOfDk) {
  const Weights<double> w = weights(4, 2);
  Weights<double> doubled = w;
  doubled.q.weight *= 2.0;
  expect_same_bits(unscaled_sattn(x, w), sattn(x, doubled, 0.5));
}

TEST_F(Ladder, PositionsAreAddedRowByRowAndEndAtTheContextLength) {
  const Matrix<double> table = random_matrix<double>(random, 4, 3);
  expect_same_bits(with_positions(x, table), Matrix<double>(x + table));
  const Matrix<double> longer = above<double>({table, random_matrix<double>(random, 2, 3)});
  expect_same_bits(with_positions(x, longer), with_positions(x, table));
  EXPECT_EQ(refusal([&] { return with_positions(longer, table); }),
            "the sequence has 6 tokens and the position table 4: absolute positions end at the context length");
  EXPECT_THAT(refusal([&] { return with_positions(x, random_matrix<double>(random, 4, 2)); }), Says("4x2"));
}

// position.breaks-equivariance and position.moves-with-positions
TEST_F(Ladder, PositionsBreakEquivarianceUnlessTheyMoveToo) {
  const Matrix<double> table = random_matrix<double>(random, 4, 3);
  const Weights<double> w = weights(2, 2);
  const std::vector<Index> pi{2, 0, 3, 1};
  const Matrix<double> straight = rows_at(sattn(with_positions(x, table), w, 0.5), pi);
  const Matrix<double> fixed = sattn(with_positions(rows_at(x, pi), table), w, 0.5);
  const Matrix<double> moved = sattn(with_positions(rows_at(x, pi), rows_at(table, pi)), w, 0.5);
  EXPECT_GT((fixed - straight).cwiseAbs().maxCoeff(), 1e-3);
  EXPECT_LE((moved - straight).cwiseAbs().maxCoeff(), 256 * 0x1p-53);
}

// multihead.v1-is-fused
TEST_F(Ladder, VersionOneIsTheViewFormBitForBit) {
  const std::vector<Weights<double>> heads{weights(2, 3), weights(2, 3)};
  const Matrix<double> w_o = random_matrix<double>(random, 6, 3);
  const Vector<double> b_o = random_vector<double>(random, 3);
  const Mask<double> causal = causal_mask<double>();
  const Matrix<double> views =
      mmhsattn(x, fuse(heads, std::optional(w_o), std::optional(b_o)), 0.5, HeadMasks<double>::two_d(causal));
  const std::vector<PositionedHead<double>> plain{{heads[0], std::nullopt}, {heads[1], std::nullopt}};
  expect_same_bits(multihead_v1(x, plain, std::optional(w_o), std::optional(b_o), 0.5, causal), views);
  const std::vector<PositionedHead<double>> positioned{{heads[0], random_matrix<double>(random, 4, 3)},
                                                       {heads[1], std::nullopt}};
  EXPECT_NE(multihead_v1(x, positioned, std::optional(w_o), std::optional(b_o), 0.5, causal)(3, 0), views(3, 0));
}

}  // namespace
}  // namespace attest
