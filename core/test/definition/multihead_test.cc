#include "core/definition/multihead.h"

#include "core/definition/matrices.h"
#include "core/test/definition/other_forms.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using namespace test;

constexpr double scale = 0.5;
/// As in projection_test.cc, with one more sum behind: W_o of 6 rows up to 1/4.
constexpr double factor = 96;

template <class T>
class Multihead : public OnEveryScalar<T> {
 protected:
  static constexpr Index heads = 3, c_q = 3, c_k = 4, c_v = 2, dk = 4, dv = 2, d_o = 5, rows = 5, keys = 6;
  Matrix<T> q = random_matrix<T>(this->random, rows, c_q), k = random_matrix<T>(this->random, keys, c_k),
            v = random_matrix<T>(this->random, keys, c_v);
  const T tau = scalar<T>(scale);
  MultiheadWeights<T> w = weights();

  Projection<T> projection(Index from, Index to) {
    return {.weight = random_matrix<T>(this->random, from, to, 0.25), .bias = random_vector<T>(this->random, to, 0.25)};
  }
  MultiheadWeights<T> weights() {
    return {.q = projection(c_q, heads * dk),
            .k = projection(c_k, heads * dk),
            .v = projection(c_v, heads * dv),
            .w_o = random_matrix<T>(this->random, heads * dv, d_o, 0.25),
            .b_o = random_vector<T>(this->random, d_o),
            .bias_k = std::nullopt,
            .bias_v = std::nullopt,
            .heads = heads};
  }
  /// One additive mask per head, each with a hidden key of its own.
  std::vector<Mask<T>> masks() {
    std::vector<Mask<T>> all;
    for (Index m = 0; m < heads; ++m) {
      Matrix<T> b = random_matrix<T>(this->random, rows, keys, 0.5);
      b(m, m + 1) = ScalarTraits<T>::minus_infinity();
      all.push_back(additive_mask(b));
    }
    return all;
  }
  /// Columns first .. first + count - 1 of a projection in plain numbers.
  static Grid plain(const Matrix<T>& x, const Projection<T>& p, Index first, Index count) {
    const Matrix<T> block = p.weight.middleCols(first, count);
    const Vector<T> bias = p.bias->segment(first, count);
    return plain_projection(grid_of(x), grid_of(block), row_from(bias));
  }
  /// O_1 .. O_h side by side, each under its mask.
  Grid plain_heads(const std::vector<Mask<T>>& each) {
    Grid all(static_cast<std::size_t>(rows));
    for (Index m = 0; m < heads; ++m) {
      const Grid bias = grid_of(*each[static_cast<std::size_t>(m)].additive);
      const auto head = static_cast<std::size_t>(m);
      const PlainResult result = plain_attention(
          plain(q, w.q, m * dk, dk), plain(k, w.k, m * dk, dk), plain(v, w.v, m * dv, dv),
          [&](const Precise& x, std::size_t i, std::size_t j) { return Precise(scale * x + bias[i][j]); },
          [&](std::size_t i, std::size_t j) { return !(i == head && j == head + 1); });
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i].insert(all[i].end(), result.out[i].begin(), result.out[i].end());
    }
    return all;
  }
};
TYPED_TEST_SUITE(Multihead, AllScalars, ScalarNames);

TYPED_TEST(Multihead, MatchesTheFormulaWithAMaskPerHeadAndAsASumOverHeads) {
  const std::vector<Mask<TypeParam>> each = this->masks();
  const Grid exact = plain_projection(this->plain_heads(each), grid_of(*this->w.w_o), row_from(*this->w.b_o));
  const HeadMasks<TypeParam> stack = HeadMasks<TypeParam>::three_d(each, 1, this->heads);
  expect_close(mmhattn(this->q, this->k, this->v, this->w, this->tau, stack), exact, factor);
  expect_close(mmhattn_as_sum(this->q, this->k, this->v, this->w, this->tau, stack), exact, factor);
}

TYPED_TEST(Multihead, ReductionsHoldBitForBit) {
  // reduction.mh-is-mmh-zero-mask
  const Matrix<TypeParam> none = mhattn(this->q, this->k, this->v, this->w, this->tau);
  const Mask<TypeParam> zero =
      additive_mask(Matrix<TypeParam>(Matrix<TypeParam>::Constant(this->rows, this->keys, scalar<TypeParam>(0))));
  expect_same_bits(mmhattn(this->q, this->k, this->v, this->w, this->tau, HeadMasks<TypeParam>::two_d(zero)), none);
  // reduction.masked-weights-is-mmh-h1: W_o = I and b_o = 0, written out or left away
  const Weights<TypeParam> one = head_of(this->w, 1);
  const Mask<TypeParam> mask = this->masks()[0];
  const Matrix<TypeParam> single = mattn_w(this->q, this->k, this->v, one, this->tau, mask);
  const HeadMasks<TypeParam> masks = HeadMasks<TypeParam>::two_d(mask);
  const Vector<TypeParam> no_bias = Vector<TypeParam>::Constant(this->dv, scalar<TypeParam>(0));
  expect_same_bits(mmhattn(this->q, this->k, this->v, fuse<TypeParam>({one}), this->tau, masks), single);
  expect_same_bits(mmhattn(this->q, this->k, this->v, fuse<TypeParam>({one}, identity<TypeParam>(this->dv), no_bias),
                           this->tau, masks),
                   single);
  // reduction.mh-self, reduction.mmh-self
  const Matrix<TypeParam> x = random_matrix<TypeParam>(this->random, 4, 3);
  MultiheadWeights<TypeParam> own = this->w;
  own.k = this->projection(3, this->heads * this->dk);
  own.v = this->projection(3, this->heads * this->dv);
  expect_same_bits(mhsattn(x, own, this->tau), mhattn(x, x, x, own, this->tau));
  const HeadMasks<TypeParam> causal = HeadMasks<TypeParam>::two_d(causal_mask<TypeParam>());
  expect_same_bits(mmhsattn(x, own, this->tau, causal), mmhattn(x, x, x, own, this->tau, causal));
}

TYPED_TEST(Multihead, FusedHeadsAreSeparateHeadsBitForBit) {
  std::vector<Weights<TypeParam>> separate;
  std::vector<Matrix<TypeParam>> outputs;
  for (Index m = 0; m < this->heads; ++m) {
    separate.push_back(head_of(this->w, m));
    outputs.push_back(attn_w(this->q, this->k, this->v, separate.back(), this->tau));
  }
  const Matrix<TypeParam> fused = mhattn(this->q, this->k, this->v, this->w, this->tau);
  expect_same_bits(join_heads(outputs, this->w.w_o, this->w.b_o), fused);
  expect_same_bits(mhattn(this->q, this->k, this->v, fuse(separate, this->w.w_o, this->w.b_o), this->tau), fused);
}

// add_bias_kv appends one key-value row after projection: the same as giving it as a token, were there one that
// projects to it. A mask gets a column of 0 for it, causal never hides it.
TYPED_TEST(Multihead, BiasKvIsOneMoreKeyThatNothingHides) {
  this->w.bias_k = random_vector<TypeParam>(this->random, this->heads * this->dk);
  this->w.bias_v = random_vector<TypeParam>(this->random, this->heads * this->dv);
  for (const Causal causal : {Causal::none, Causal::top_left, Causal::bottom_right}) {
    std::vector<Mask<TypeParam>> each = this->masks();
    std::vector<Matrix<TypeParam>> outputs;
    for (Index m = 0; m < this->heads; ++m) {
      Mask<TypeParam>& mask = each[static_cast<std::size_t>(m)];
      mask.positions.causal = causal;
      const Weights<TypeParam> head = head_of(this->w, m);
      const Matrix<TypeParam> key = this->w.bias_k->segment(m * this->dk, this->dk).transpose(),
                              value = this->w.bias_v->segment(m * this->dv, this->dv).transpose();
      // The causal form is spelled out: its alignment is that of the keys without the appended one.
      Matrix<TypeParam> b = *mask.additive;
      for (Index i = 0; i < this->rows; ++i)
        for (Index j = 0; j < this->keys; ++j)
          if (!sight({causal}, i, this->rows, this->keys).sees(j)) b(i, j) = ScalarTraits<TypeParam>::minus_infinity();
      const Matrix<TypeParam> column = Matrix<TypeParam>::Constant(this->rows, 1, scalar<TypeParam>(0));
      outputs.push_back(mattn(project(this->q, head.q), above<TypeParam>({project(this->k, head.k), key}),
                              above<TypeParam>({project(this->v, head.v), value}), this->tau,
                              additive_mask(beside<TypeParam>({b, column}))));
    }
    expect_same_bits(
        mmhattn(this->q, this->k, this->v, this->w, this->tau, HeadMasks<TypeParam>::three_d(each, 1, this->heads)),
        join_heads(outputs, this->w.w_o, this->w.b_o));
  }
}

TEST(MultiheadBiasKv, ServesEvenWhereNoKeyIsLeft) {
  std::mt19937_64 random(2);
  const auto m = [&](Index rows, Index cols) { return random_matrix<double>(random, rows, cols); };
  MultiheadWeights<double> w{.q = {m(2, 2), {}},
                             .k = {m(2, 2), {}},
                             .v = {m(2, 2), {}},
                             .w_o = {},
                             .b_o = {},
                             .bias_k = random_vector<double>(random, 2),
                             .bias_v = random_vector<double>(random, 2)};
  const Matrix<double> out = mhattn(m(3, 2), m(0, 2), m(0, 2), w, 0.5);
  for (Index i = 0; i < 3; ++i)
    for (Index c = 0; c < 2; ++c) EXPECT_EQ(out(i, c), (*w.bias_v)(c));
  w.bias_v.reset();
  EXPECT_THAT(refusal([&] { return mhattn(m(3, 2), m(2, 2), m(2, 2), w, 0.5); }), Says("needs both"));
}

// Each form of a mask that means the same gives the same bits, and each page reaches its own (b, h): batch and heads
// differ in number, so that neither index can stand for the other.
TEST(MultiheadBatch, EntriesAndMaskFormsAreIndependent) {
  constexpr Index batch = 2, heads = 3, rows = 4, keys = 5;
  std::mt19937_64 random(6);
  const auto m = [&](Index r, Index c) { return random_matrix<double>(random, r, c); };
  const MultiheadWeights<double> w{.q = {m(3, heads * 2), {}},
                                   .k = {m(3, heads * 2), {}},
                                   .v = {m(3, heads * 2), {}},
                                   .w_o = m(heads * 2, 4),
                                   .b_o = {},
                                   .bias_k = {},
                                   .bias_v = {},
                                   .heads = heads};
  std::vector<Matrix<double>> q, k, v;
  for (Index b = 0; b < batch; ++b) {
    q.push_back(m(rows, 3));
    k.push_back(m(keys, 3));
    v.push_back(m(keys, 3));
  }
  const auto mask = [&] {
    BoolMatrix allowed(rows, keys);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < keys; ++j) allowed(i, j) = j == 0 || random() % 2 == 0;
    return boolean_mask<double>(allowed);
  };
  const auto run = [&](const MaskStack<double>& masks) { return mmhattn_batch(q, k, v, w, 0.5, masks); };
  const auto expect_equal = [](const std::vector<Matrix<double>>& a, const std::vector<Matrix<double>>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t at = 0; at < a.size(); ++at) expect_same_bits(a[at], b[at]);
  };
  using Stack = MaskStack<double>;

  const Mask<double> one = mask();
  const std::vector<Mask<double>> repeated(batch * heads, one);
  const std::vector<Matrix<double>> two_d = run(Stack::two_d(one));
  expect_equal(two_d, run(Stack::three_d(repeated, batch, heads)));
  expect_equal(two_d, run(Stack::four_d({one}, 1, 1)));
  expect_equal(two_d, run(Stack::four_d({one, one, one}, 1, heads)));
  expect_equal(two_d, run(Stack::four_d({one, one}, batch, 1)));

  std::vector<Mask<double>> all;
  all.reserve(static_cast<std::size_t>(batch * heads));
  for (Index page = 0; page < batch * heads; ++page) all.push_back(mask());
  const std::vector<Matrix<double>> own = run(Stack::three_d(all, batch, heads));
  for (Index b = 0; b < batch; ++b) {
    std::vector<Matrix<double>> outputs;
    outputs.reserve(static_cast<std::size_t>(heads));
    const auto at = static_cast<std::size_t>(b);
    for (Index h = 0; h < heads; ++h)
      outputs.push_back(mattn_w(q[at], k[at], v[at], head_of(w, h), 0.5, all[static_cast<std::size_t>(b * heads + h)]));
    expect_same_bits(own[at], join_heads(outputs, w.w_o, w.b_o));
  }
  // Extents that serve every index: per entry, per head.
  const std::vector<Matrix<double>> per_entry = run(Stack::four_d({all[0], all[1]}, batch, 1));
  const std::vector<Matrix<double>> per_head = run(Stack::four_d({all[0], all[1], all[2]}, 1, heads));
  for (std::size_t b = 0; b < batch; ++b) {
    expect_same_bits(per_entry[b], mmhattn(q[b], k[b], v[b], w, 0.5, Stack::two_d(all[b])));
    expect_same_bits(per_head[b],
                     mmhattn(q[b], k[b], v[b], w, 0.5, Stack::three_d({all[0], all[1], all[2]}, 1, heads)));
  }

  EXPECT_THAT(refusal([&] { return Stack::three_d(repeated, heads, heads); }), Says("6 pages"));
  EXPECT_THAT(refusal([&] { return run(Stack::four_d({one, one, one}, heads, 1)); }), Says("3 batch entries"));
  EXPECT_THAT(refusal([&] { return run(Stack::four_d({one, one}, 1, 2)); }), Says("of 2 heads"));
}

// Permuting heads together with the row blocks of W_o changes the order of one sum and nothing else.
TEST(MultiheadWeightsOfHeads, MayBePermutedWithTheBlocksOfWo) {
  constexpr Index heads = 3, dv = 2;
  std::mt19937_64 random(8);
  const auto m = [&](Index r, Index c) { return random_matrix<double>(random, r, c); };
  const MultiheadWeights<double> w{.q = {m(3, heads * 2), {}},
                                   .k = {m(3, heads * 2), {}},
                                   .v = {m(3, heads * dv), {}},
                                   .w_o = m(heads * dv, 4),
                                   .b_o = {},
                                   .bias_k = {},
                                   .bias_v = {},
                                   .heads = heads};
  const Matrix<double> x = m(4, 3), w_o = rows_at(*w.w_o, {4, 5, 0, 1, 2, 3});
  const MultiheadWeights<double> permuted = fuse<double>({head_of(w, 2), head_of(w, 0), head_of(w, 1)}, w_o);
  const Matrix<double> a = mhsattn(x, w, 0.5), b = mhsattn(x, permuted, 0.5);
  for (Index i = 0; i < 4; ++i)
    for (Index c = 0; c < 4; ++c) EXPECT_LE(std::abs(a(i, c) - b(i, c)), 32 * 0x1p-53);
  EXPECT_NE(a(0, 0), mhsattn(x, fuse<double>({head_of(w, 2), head_of(w, 0), head_of(w, 1)}, w.w_o), 0.5)(0, 0));
}

// torch.nn.MultiheadAttention in the words of its documentation, loop by loop: y = x W^T + b with [out, in] matrices,
// heads of d/h consecutive features, softmax(q k^T / sqrt(d/h)) v, concatenated, out_proj.
TEST(MultiheadOfTorch, IsTheSpecialCase) {
  constexpr Index d = 4, heads = 2, rows = 3, keys = 5;
  constexpr std::size_t width = d / heads;
  std::mt19937_64 random(9);
  const auto m = [&](Index r, Index c) { return random_matrix<double>(random, r, c, 0.5); };
  TorchMultihead<double> torch;
  torch.in_proj_weight = m(3 * d, d);
  torch.in_proj_bias = random_vector<double>(random, 3 * d, 0.5);
  torch.out_proj_weight = m(d, d);
  torch.out_proj_bias = random_vector<double>(random, d);
  torch.heads = heads;
  const Matrix<double> q = m(rows, d), k = m(keys, d), v = m(keys, d);
  const double tau = 1.0 / std::sqrt(static_cast<double>(width));

  const auto linear = [&](const Grid& x, const Matrix<double>& out_in, const Vector<double>& b, Index first) {
    Grid y(x.size(), WideRow(d));
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (Index o = 0; o < d; ++o) {
        Precise sum = b(first + o);
        for (Index c = 0; c < d; ++c) sum += Precise(out_in(first + o, c)) * x[i][static_cast<std::size_t>(c)];
        y[i][static_cast<std::size_t>(o)] = sum;
      }
    }
    return y;
  };
  const Grid full_q = linear(grid_of(q), *torch.in_proj_weight, *torch.in_proj_bias, 0),
             full_k = linear(grid_of(k), *torch.in_proj_weight, *torch.in_proj_bias, d),
             full_v = linear(grid_of(v), *torch.in_proj_weight, *torch.in_proj_bias, 2 * d);
  Grid joined(static_cast<std::size_t>(rows));
  for (std::size_t h = 0; h < heads; ++h) {
    const auto slice = [&](const Grid& full) {
      Grid part;
      for (const WideRow& row : full)
        part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(h * width),
                          row.begin() + static_cast<std::ptrdiff_t>((h + 1) * width));
      return part;
    };
    const PlainResult result = plain_attention(slice(full_q), slice(full_k), slice(full_v), times(Precise(tau)));
    for (std::size_t i = 0; i < joined.size(); ++i)
      joined[i].insert(joined[i].end(), result.out[i].begin(), result.out[i].end());
  }
  const Grid exact = linear(joined, torch.out_proj_weight, *torch.out_proj_bias, 0);
  const Matrix<double> packed = mhattn(q, k, v, from_torch(torch), tau);
  expect_close(packed, exact, factor);

  // Three matrices instead of the packed one, as when c_k or c_v is not d; the bias stays packed.
  TorchMultihead<double> apart = torch;
  apart.in_proj_weight.reset();
  apart.q_proj_weight = torch.in_proj_weight->topRows(d);
  apart.k_proj_weight = torch.in_proj_weight->middleRows(d, d);
  apart.v_proj_weight = torch.in_proj_weight->bottomRows(d);
  expect_same_bits(mhattn(q, k, v, from_torch(apart), tau), packed);
  apart.k_proj_weight = m(d, 7);
  EXPECT_EQ(mhattn(q, m(keys, 7), v, from_torch(apart), tau).rows(), rows);

  apart.v_proj_weight.reset();
  EXPECT_THAT(refusal([&] { return from_torch(apart); }), Says("v_proj_weight"));
  torch.heads = 3;
  EXPECT_THAT(refusal([&] { return from_torch(torch); }), Says("4 is not divisible by 3 heads"));
}

}  // namespace
}  // namespace attest
