// The core's functions by the name of a scalar: every one against the function it is, on float, and all scalars on an
// input whose answers are exact.
#include "core/kernels/core_functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/definition/columns.h"
#include "core/definition/matrices.h"
#include "core/definition/position.h"
#include "core/kernel/kernel_under_test.h"
#include "core/scalars/wide.h"
#include "core/test/cases.h"

namespace attest {
namespace {

using Real = float;

Tensor numbers(const Shape& shape, int seed) {
  std::int64_t e = 0;
  return test::filled(DType::f32, shape, [&] { return static_cast<double>((e++ * 7 + seed * 5) % 11 - 5) / 4; });
}
/// With a seed of its own for each tensor that is asked for.
auto numbered() {
  return [seed = 0](Slot, const Shape& shape) mutable { return numbers(shape, ++seed); };
}

/// Page `page` of a tensor as a matrix of its last two axes.
Matrix<Real> matrix(const Tensor& t, std::int64_t page = 0) {
  const Shape& s = t.shape();
  Matrix<Real> m(s[s.rank() - 2], s[s.rank() - 1]);
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) m(i, j) = static_cast<Real>(t[(page * m.rows() + i) * m.cols() + j]);
  return m;
}

Vector<Real> vector(const Tensor& t) {
  Vector<Real> v(t.elements());
  for (Index i = 0; i < v.size(); ++i) v(i) = static_cast<Real>(t[i]);
  return v;
}

testing::AssertionResult is(const Values& found, const Shape& shape, const std::vector<Matrix<Real>>& pages) {
  if (found.shape() != shape || found.tensor().dtype() != DType::f32)
    return testing::AssertionFailure() << "shape " << found.shape().to_string();
  std::int64_t e = 0;
  for (const Matrix<Real>& page : pages)
    for (Index i = 0; i < page.rows(); ++i)
      for (Index j = 0; j < page.cols(); ++j, ++e)
        if (found[e] != static_cast<double>(page(i, j)))
          return testing::AssertionFailure() << "element " << e << " is " << found[e] << ", not " << page(i, j);
  if (e != found.elements()) return testing::AssertionFailure() << e << " elements were expected";
  return testing::AssertionSuccess();
}

const CoreFunctions& on_float() {
  return *core_functions("core:float");
}

/// Two batch entries, two heads that share a key-value head, three rows, three keys.
Case attention_case() {
  Case c = test::attention_of({.batch = 2, .heads = 2, .queries = 3, .keys = 3, .dk = 2, .kv_heads = 1}, numbered());
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 3, 3}, std::vector<double>{0, -INFINITY, 0.5, 0, 0, 0, -1, 0, -INFINITY});
  c.scale = 0.75;
  return c;
}

/// Two batch entries of self-attention lengths, two heads, c_q = 2, c_k = 3, c_v = 1.
Case multihead_case(bool self) {
  using enum Slot;
  Case c = test::case_of(Operation::multihead,
                         {.batch = 2,
                          .heads = 2,
                          .queries = 3,
                          .keys = 3,
                          .dk = 2,
                          .dv = 3,
                          .c_q = 2,
                          .c_k = self ? 2 : 3,
                          .c_v = self ? 2 : 1,
                          .d_o = 2},
                         {q, k, v, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o}, numbered());
  if (self) c[k] = c[v] = c.q();
  c.scale = 0.75;
  c.causal = Causal::top_left;
  return c;
}

MultiheadWeights<Real> weights(const Case& c) {
  MultiheadWeights<Real> w;
  w.q = {.weight = matrix(c[Slot::w_q]), .bias = vector(c[Slot::b_q])};
  w.k = {.weight = matrix(c[Slot::w_k]), .bias = vector(c[Slot::b_k])};
  w.v = {.weight = matrix(c[Slot::w_v]), .bias = vector(c[Slot::b_v])};
  w.w_o = matrix(c[Slot::w_o]);
  w.b_o = vector(c[Slot::b_o]);
  w.heads = c.heads;
  return w;
}

TEST(CoreFunctions, AreNamedByTheKernelsOfTheCoreAndByNoOther) {
  for (const KernelEntry& entry : core_kernels()) EXPECT_NE(core_functions(entry.id), nullptr) << entry.id;
  for (const KernelEntry& entry : builtin_kernels()) EXPECT_EQ(core_functions(entry.id), nullptr) << entry.id;
  for (const char* const other : {"", "core:", "float", "core:flo", "core:floats", "builtin:float"})
    EXPECT_EQ(core_functions(other), nullptr) << other;
}

TEST(CoreFunctions, OfMatrices) {
  const Tensor a = numbers({3, 2}, 1), b = numbers({2, 2}, 2), table = numbers({4, 2}, 3);
  EXPECT_TRUE(is(on_float().softmax_rows(a), {3, 2}, {softmax_rows(matrix(a))}));
  EXPECT_TRUE(is(on_float().softmax_columns(a), {3, 2}, {softmax_columns(matrix(a))}));
  EXPECT_TRUE(is(on_float().product(a, b), {3, 2}, {product(matrix(a), matrix(b))}));
  EXPECT_TRUE(is(on_float().parameter_free(a), {3, 2}, {parameter_free(matrix(a))}));
  EXPECT_TRUE(is(on_float().shared_projection(a, b), {3, 2}, {shared_projection(matrix(a), matrix(b))}));
  EXPECT_TRUE(is(on_float().with_positions(a, table), {3, 2}, {with_positions(matrix(a), matrix(table))}));
  EXPECT_THROW(on_float().with_positions(table, a), UsageError);
}

TEST(CoreFunctions, OfAttentionCases) {
  const Case c = attention_case();
  const Mask<Real> mask = additive_mask(matrix(c.mask()));
  const Tensor allowed(DType::boolean, {3, 3}, std::vector<double>{1, 1, 1, 0, 1, 1, 0, 1, 1});
  BoolMatrix columns(3, 3);
  columns << true, true, true, false, true, true, false, true, true;
  std::vector<Matrix<Real>> out, renormalised, turned;
  for (Index page = 0; page < 4; ++page) {
    const Matrix<Real> q = matrix(c.q(), page), k = matrix(c.k(), page / 2), v = matrix(c.v(), page / 2);
    out.push_back(mattn(q, k, v, 0.75F, mask));
    renormalised.push_back(mattn_renormalised(q, k, v, 0.75F, mask));
    turned.push_back(transposed(attention_columns(transposed(q), transposed(k), transposed(v), 0.75F, {columns})));
  }
  EXPECT_TRUE(is(on_float().attention(c), {2, 2, 3, 1}, out));
  EXPECT_TRUE(is(on_float().attention_renormalised(c), {2, 2, 3, 1}, renormalised));
  EXPECT_TRUE(is(on_float().attention_columns(c, allowed), {2, 2, 3, 1}, turned));
}

TEST(CoreFunctions, OfMultiheadCases) {
  const Case c = multihead_case(false);
  const MultiheadWeights<Real> w = weights(c);
  const HeadMasks<Real> masks = HeadMasks<Real>::two_d(causal_mask<Real>());
  std::vector<Matrix<Real>> scores, all, sum, unmasked, one, one_unmasked;
  for (Index b = 0; b < 2; ++b) {
    const Matrix<Real> q = matrix(c.q(), b), k = matrix(c.k(), b), v = matrix(c.v(), b);
    for (Index m = 0; m < 2; ++m) {
      const Weights<Real> head = head_of(w, m);
      scores.push_back(masked_scores(project(q, head.q), project(k, head.k), 0.75F));
    }
    all.push_back(mmhattn(q, k, v, w, 0.75F, masks));
    sum.push_back(mmhattn_as_sum(q, k, v, w, 0.75F, masks));
    unmasked.push_back(mhattn(q, k, v, w, 0.75F));
    one.push_back(mattn_w(q, k, v, head_of(w, 0), 0.75F, causal_mask<Real>()));
    one_unmasked.push_back(attn_w(q, k, v, head_of(w, 0), 0.75F));
  }
  EXPECT_TRUE(is(on_float().scores(c), {2, 2, 3, 3}, scores));
  EXPECT_TRUE(is(on_float().multihead(c), {2, 3, 2}, all));
  EXPECT_TRUE(is(on_float().multihead_as_sum(c), {2, 3, 2}, sum));
  EXPECT_TRUE(is(on_float().multihead_unmasked(c), {2, 3, 2}, unmasked));
  EXPECT_TRUE(is(on_float().weighted(c), {2, 3, 3}, one));
  EXPECT_TRUE(is(on_float().weighted_unmasked(c), {2, 3, 3}, one_unmasked));
}

TEST(CoreFunctions, OfSelfAttentionCases) {
  const Case c = multihead_case(true);
  const MultiheadWeights<Real> w = weights(c);
  const HeadMasks<Real> masks = HeadMasks<Real>::two_d(causal_mask<Real>());
  const std::vector<Tensor> tables{numbers({4, 2}, 12), numbers({3, 2}, 13)};
  std::vector<Matrix<Real>> bilinear, all, unmasked, one, one_unmasked, unscaled, ladder, ladder_without;
  for (Index b = 0; b < 2; ++b) {
    const Matrix<Real> x = matrix(c.q(), b);
    const Weights<Real> head = head_of(w, 0);
    std::vector<PositionedHead<Real>> heads, heads_without;
    for (Index m = 0; m < 2; ++m) {
      bilinear.push_back(bilinear_scores(x, head_of(w, m).q.weight, head_of(w, m).k.weight, 0.75F));
      heads.push_back({.weights = head_of(w, m), .positions = matrix(tables[static_cast<std::size_t>(m)])});
      heads_without.push_back({.weights = head_of(w, m), .positions = std::nullopt});
    }
    all.push_back(mmhsattn(x, w, 0.75F, masks));
    unmasked.push_back(mhsattn(x, w, 0.75F));
    one.push_back(msattn(x, head, 0.75F, causal_mask<Real>()));
    one_unmasked.push_back(sattn(x, head, 0.75F));
    unscaled.push_back(unscaled_sattn(x, head));
    ladder.push_back(multihead_v1(x, heads, w.w_o, w.b_o, 0.75F, causal_mask<Real>()));
    ladder_without.push_back(multihead_v1(x, heads_without, w.w_o, w.b_o, 0.75F, causal_mask<Real>()));
  }
  EXPECT_TRUE(is(on_float().bilinear_scores(c), {2, 2, 3, 3}, bilinear));
  EXPECT_TRUE(is(on_float().multihead_self(c), {2, 3, 2}, all));
  EXPECT_TRUE(is(on_float().multihead_self_unmasked(c), {2, 3, 2}, unmasked));
  EXPECT_TRUE(is(on_float().weighted_self(c), {2, 3, 3}, one));
  EXPECT_TRUE(is(on_float().weighted_self_unmasked(c), {2, 3, 3}, one_unmasked));
  EXPECT_TRUE(is(on_float().unscaled_self(c), {2, 3, 3}, unscaled));
  EXPECT_TRUE(is(on_float().multihead_v1(c, tables), {2, 3, 2}, ladder));
  EXPECT_TRUE(is(on_float().multihead_v1(c, {}), {2, 3, 2}, ladder_without));
}

TEST(CoreFunctions, AnswerInTheirOwnScalar) {
  const Tensor a(DType::f32, {2, 2}, std::vector<double>{1, 2, 3, 4});
  for (const KernelEntry& entry : core_kernels()) {
    const CoreFunctions& core = *core_functions(entry.id);
    EXPECT_EQ("core:" + std::string(core.scalar), entry.id);
    const Values found = core.product(a, transposed(a));
    EXPECT_EQ(found.shape(), (Shape{2, 2}));
    const bool wide = entry.make()->is_wide();
    ASSERT_EQ(found.is<Enclosures>(), wide) << entry.id;
    ASSERT_EQ(found.elements(), 4) << entry.id;
    const double exact[] = {5, 11, 11, 25};
    for (std::int64_t e = 0; e < 4; ++e)
      EXPECT_TRUE(found.enclosure(e).lower == exact[e] && found.enclosure(e).upper == exact[e]) << entry.id;
    EXPECT_TRUE(same_bits(found, transposed(found))) << entry.id;
    EXPECT_FALSE(same_bits(found, core.product(a, a))) << entry.id;
    EXPECT_EQ(wide && found.as<Enclosures>()->unit() == 0, entry.id == "core:mpfi" || entry.id == "core:arb");
  }
}

TEST(CoreFunctions, KeepNumbersThatNoDoubleHolds) {
  for (const KernelEntry& entry : core_kernels()) {
    if (!entry.make()->is_wide()) continue;
    const CoreFunctions& core = *core_functions(entry.id);
    for (const double x : {0x1.8p-700, -0x1.8p+700, 0x1p-1074}) {
      const Tensor a(DType::f64, {1, 1}, std::vector<double>{x});
      const Wide exact = Wide(x) * x;
      const WideInterval found = core.product(a, a).enclosure(0);
      if (core.product(a, a).as<Enclosures>()->rounding().exact_inputs) {
        EXPECT_TRUE(found.lower == exact && found.upper == exact) << entry.id << ' ' << x;
      } else {
        EXPECT_LE(abs(found.lower - exact), abs(exact) * 1e-99) << entry.id << ' ' << x;
      }
    }
    const Tensor zero(DType::f64, {1, 1}, std::vector<double>{-0.0}), one(DType::f64, {1, 1}, std::vector<double>{1});
    EXPECT_TRUE(core.product(zero, one).enclosure(0).lower == 0) << entry.id;
    const Tensor huge(DType::f64, {1, 1}, std::vector<double>{INFINITY});
    EXPECT_TRUE(isinf(core.product(huge, one).enclosure(0).upper)) << entry.id;
  }
}

}  // namespace
}  // namespace attest
