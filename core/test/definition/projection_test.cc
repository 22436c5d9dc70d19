#include "core/definition/projection.h"

#include "core/definition/matrices.h"
#include "core/test/definition/test_scalars.h"

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(Packing packing, std::ostream* out) {
  *out << (packing == Packing::blocks ? "blocks" : "interleaved");
}

namespace {

using namespace test;

constexpr double scale = 0.5;
/// As in attention_test.cc, with two more sums in front of each score: entries stay below 1.
constexpr double factor = 64;

template <class T>
class Projected : public OnEveryScalar<T> {
 protected:
  static constexpr Index c_q = 3, c_k = 4, c_v = 2, dk = 4, dv = 3;
  Matrix<T> q = random_matrix<T>(this->random, 5, c_q), k = random_matrix<T>(this->random, 6, c_k),
            v = random_matrix<T>(this->random, 6, c_v);
  Weights<T> w{.q = projection(c_q, dk), .k = projection(c_k, dk), .v = projection(c_v, dv)};
  const T tau = scalar<T>(scale);

  Projection<T> projection(Index from, Index to) {
    return {.weight = random_matrix<T>(this->random, from, to, 0.25), .bias = random_vector<T>(this->random, to, 0.25)};
  }
  static Grid plain(const Matrix<T>& x, const Projection<T>& p) {
    return plain_projection(grid_of(x), grid_of(p.weight), p.bias ? row_from(*p.bias) : WideRow{});
  }
};
TYPED_TEST_SUITE(Projected, AllScalars, ScalarNames);

TYPED_TEST(Projected, AttentionMatchesTheFormula) {
  const PlainResult result = plain_attention(this->plain(this->q, this->w.q), this->plain(this->k, this->w.k),
                                             this->plain(this->v, this->w.v), times(scale));
  expect_close(attn_w(this->q, this->k, this->v, this->w, this->tau), result.out, factor);
  const auto sees = [](std::size_t i, std::size_t j) { return j <= i; };
  const PlainResult causal = plain_attention(this->plain(this->q, this->w.q), this->plain(this->k, this->w.k),
                                             this->plain(this->v, this->w.v), times(scale), sees);
  expect_close(mattn_w(this->q, this->k, this->v, this->w, this->tau, causal_mask<TypeParam>()), causal.out, factor);
}

// reduction.weights-is-masked-zero-mask, reduction.self, reduction.masked-self
TYPED_TEST(Projected, ReductionsHoldBitForBit) {
  const Mask<TypeParam> zero =
      additive_mask(Matrix<TypeParam>(Matrix<TypeParam>::Constant(5, 6, scalar<TypeParam>(0))));
  expect_same_bits(mattn_w(this->q, this->k, this->v, this->w, this->tau, zero),
                   attn_w(this->q, this->k, this->v, this->w, this->tau));
  const Matrix<TypeParam> x = random_matrix<TypeParam>(this->random, 4, 3);
  const Weights<TypeParam> own{.q = this->projection(3, 2), .k = this->projection(3, 2), .v = this->projection(3, 5)};
  expect_same_bits(sattn(x, own, this->tau), attn_w(x, x, x, own, this->tau));
  const Mask<TypeParam> mask = additive_mask(random_matrix<TypeParam>(this->random, 4, 4));
  expect_same_bits(msattn(x, own, this->tau, mask), mattn_w(x, x, x, own, this->tau, mask));
}

TYPED_TEST(Projected, ScoresWithoutBiasesAreABilinearForm) {
  const Matrix<TypeParam> x = random_matrix<TypeParam>(this->random, 5, 3);
  const Projection<TypeParam> w_q{.weight = this->projection(3, 4).weight, .bias = {}},
      w_k{.weight = this->projection(3, 4).weight, .bias = {}};
  const Matrix<TypeParam> bilinear = bilinear_scores(x, w_q.weight, w_k.weight, this->tau);
  const Matrix<TypeParam> scores = masked_scores(project(x, w_q), project(x, w_k), this->tau);
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j < 5; ++j)
      EXPECT_TRUE(abs(wide(bilinear(i, j)) - wide(scores(i, j))) <= 16 * unit_of<TypeParam>());
  EXPECT_FALSE(same_bits(bilinear(0, 1), bilinear(1, 0)));
}

// weights.row-form, and its claim that a row of the projection depends on that row alone.
TEST(Projection, ActsRowByRow) {
  std::mt19937_64 random(3);
  const Matrix<double> x = random_matrix<double>(random, 4, 3);
  const Projection<double> w{.weight = random_matrix<double>(random, 3, 2), .bias = random_vector<double>(random, 2)};
  const Matrix<double> y = project(x, w);
  for (Index i = 0; i < 4; ++i) {
    expect_same_bits(project(rows_at(x, {i}), w), rows_at(y, {i}));
    for (Index c = 0; c < 2; ++c) {
      const double sum = x(i, 0) * w.weight(0, c) + x(i, 1) * w.weight(1, c) + x(i, 2) * w.weight(2, c);
      EXPECT_EQ(y(i, c), sum + (*w.bias)(c));
    }
  }
}

TEST(Projection, RefusesSizesThatDoNotFit) {
  const Matrix<double> x = Matrix<double>::Zero(4, 3), w = Matrix<double>::Zero(2, 5),
                       fitting = Matrix<double>::Zero(3, 5);
  EXPECT_EQ(refusal([&] { return product(x, w); }),
            "cannot multiply a 4x3 matrix by a 2x5 one: the columns of the first must be the rows of the second");
  const Projection<double> bad{.weight = fitting, .bias = Vector<double>::Zero(4)};
  EXPECT_THAT(refusal([&] { return project(x, bad); }), Says("the bias has 4 entries"));
}

class PackedQkv : public ::testing::TestWithParam<Packing> {};
INSTANTIATE_TEST_SUITE_P(BothPackings, PackedQkv, ::testing::Values(Packing::blocks, Packing::interleaved),
                         [](const auto& param) { return param.param == Packing::blocks ? "blocks" : "interleaved"; });

// One product, then split = separate products (multihead.packed-qkv), bit for bit in the core.
TEST_P(PackedQkv, OneProductThenSplitIsThreeProducts) {
  constexpr Index heads = 3, dk = 2, dv = 4, c = 5;
  std::mt19937_64 random(4);
  const Fused<double> w{.q = random_matrix<double>(random, c, heads * dk),
                        .k = random_matrix<double>(random, c, heads * dk),
                        .v = random_matrix<double>(random, c, heads * dv)};
  const Matrix<double> x = random_matrix<double>(random, 7, c);
  const Matrix<double> packed = pack_qkv(w, heads, GetParam());
  const Fused<double> parts = unpack_qkv(product(x, packed), heads, dk, dv, GetParam());
  expect_same_bits(parts.q, product(x, w.q));
  expect_same_bits(parts.k, product(x, w.k));
  expect_same_bits(parts.v, product(x, w.v));
  EXPECT_THAT(refusal([&] { return unpack_qkv(packed, heads, dk, dv + 1, GetParam()); }), Says("5x24"));
}

// Where the columns lie: 001's fused index (m B a) with d = dk = dv, and its code's [Q | K | V].
TEST_P(PackedQkv, ColumnsLieWhereTheIndexSays) {
  constexpr Index heads = 2, d = 3;
  Fused<double> w;
  Matrix<double>* const which[] = {&w.q, &w.k, &w.v};
  for (Index b = 0; b < 3; ++b) {
    which[b]->resize(1, heads * d);
    for (Index m = 0; m < heads; ++m)
      for (Index a = 0; a < d; ++a) (*which[b])(0, m* d + a) = static_cast<double>(100 * m + 10 * b + a);
  }
  const Matrix<double> packed = pack_qkv(w, heads, GetParam());
  for (Index m = 0; m < heads; ++m) {
    for (Index b = 0; b < 3; ++b) {
      for (Index a = 0; a < d; ++a) {
        const Index at = GetParam() == Packing::interleaved ? fused_index(fused_index(m, b, 3), a, d)
                                                            : fused_index(fused_index(b, m, heads), a, d);
        EXPECT_EQ(packed(0, at), static_cast<double>(100 * m + 10 * b + a));
      }
    }
  }
}

}  // namespace
}  // namespace attest
