// 000's class MHAttn by itself: the ranks of its mask, beside the core's own; and the proof of query deletion that
// exchanges its masks.
#include "core/kernels/documents/document_000.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/definition/matrices.h"
#include "core/definition/scalar.h"
#include "core/test/definition/test_scalars.h"

namespace attest {
namespace {

using test::expect_same_bits;

// Batch and heads differ in number, so that neither index can stand for the other; h divides dk, as the class wants.
constexpr Index batch = 3, heads = 2, rows = 4, keys = 3, dk = 2, dv = 3;
constexpr double scale = 0.5;

struct Problem {
  std::vector<Matrix<double>> q, k, v;
  MultiheadWeights<double> w;
};
/// Without W_o: the columns of a head are its own.
Problem problem() {
  std::mt19937_64 random(11);
  const auto m = [&](Index r, Index c) { return test::random_matrix<double>(random, r, c); };
  Problem p;
  for (Index b = 0; b < batch; ++b) {
    p.q.push_back(m(rows, 4));
    p.k.push_back(m(keys, 5));
    p.v.push_back(m(keys, 6));
  }
  p.w.q = {.weight = m(4, heads * dk), .bias = {}};
  p.w.k = {.weight = m(5, heads * dk), .bias = {}};
  p.w.v = {.weight = m(6, heads * dv), .bias = {}};
  p.w.heads = heads;
  return p;
}

using Pages = std::vector<Matrix<double>>;
/// Masks one after another as a tensor of this shape.
Tensor tensor_of(const Pages& pages, const Shape& shape) {
  std::vector<double> entries;
  for (const Matrix<double>& page : pages) entries.insert(entries.end(), page.data(), page.data() + page.size());
  return {DType::f64, shape, entries};
}
/// Finite masks, no two alike.
Pages masks(Index count) {
  std::mt19937_64 random(12);
  Pages pages;
  for (Index at = 0; at < count; ++at) pages.push_back(test::random_matrix<double>(random, rows, keys, 4));
  return pages;
}

/// An implementation, its masks given as pages in the form of each rank.
struct Implementation {
  std::string name;
  std::function<Pages(const Problem&, const Matrix<double>&)> two_d;
  std::function<Pages(const Problem&, const Pages&)> three_d;
  std::function<Pages(const Problem&, const Pages&, Index extent_b, Index extent_h)> four_d;
};

Pages of_class(const Problem& p, const Tensor& attn_mask) {
  return mhattn_class(p.q, p.k, p.v, p.w, scale, mhattn_masks<double>(attn_mask, heads));
}
Implementation document() {
  return {
      .name = "document",
      .two_d = [](const Problem& p, const Matrix<double>& b) { return of_class(p, tensor_of({b}, {rows, keys})); },
      .three_d =
          [](const Problem& p, const Pages& pages) {
            return of_class(p, tensor_of(pages, {static_cast<Index>(pages.size()), rows, keys}));
          },
      .four_d = [](const Problem& p, const Pages& pages, Index extent_b,
                   Index extent_h) { return of_class(p, tensor_of(pages, {extent_b, extent_h, rows, keys})); },
  };
}

Pages of_core(const Problem& p, const MaskStack<double>& stack) {
  return mmhattn_batch(p.q, p.k, p.v, p.w, scale, stack);
}
std::vector<Mask<double>> pre_scale(const Pages& pages) {
  std::vector<Mask<double>> all;
  for (const Matrix<double>& page : pages) all.push_back(additive_mask(page, MaskConvention::pre_scale));
  return all;
}
Implementation core() {
  using Stack = MaskStack<double>;
  return {
      .name = "core",
      .two_d = [](const Problem& p,
                  const Matrix<double>& b) { return of_core(p, Stack::two_d(pre_scale({b}).front())); },
      .three_d =
          [](const Problem& p, const Pages& pages) {
            return of_core(p, Stack::three_d(pre_scale(pages), static_cast<Index>(pages.size()) / heads, heads));
          },
      .four_d = [](const Problem& p, const Pages& pages, Index extent_b,
                   Index extent_h) { return of_core(p, Stack::four_d(pre_scale(pages), extent_b, extent_h)); },
  };
}

void expect_equal(const Pages& a, const Pages& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t at = 0; at < a.size(); ++at) expect_same_bits(a[at], b[at]);
}

class MaskRanks : public testing::TestWithParam<Implementation> {};

TEST_P(MaskRanks, TwoDimensionsAreOneMaskForAll) {
  const Problem p = problem();
  const Matrix<double> one = masks(1).front();
  const Pages answer = GetParam().two_d(p, one);
  expect_equal(answer, GetParam().three_d(p, Pages(batch * heads, one)));
  expect_equal(answer, GetParam().four_d(p, Pages(batch * heads, one), batch, heads));
  expect_equal(answer, GetParam().four_d(p, {one}, 1, 1));
  expect_equal(answer, GetParam().four_d(p, Pages(batch, one), batch, 1));
  expect_equal(answer, GetParam().four_d(p, Pages(heads, one), 1, heads));
  // Each head of each entry is that of the definition under it.
  for (std::size_t b = 0; b < batch; ++b) {
    for (Index m = 0; m < heads; ++m) {
      expect_same_bits<double>(columns_from(answer[b], m * dv, dv),
                               mattn_w(p.q[b], p.k[b], p.v[b], head_of(p.w, m), scale, pre_scale({one}).front()));
    }
  }
}

// One page hides a key and the others nothing: the answer changes in the columns of one head of one entry.
TEST_P(MaskRanks, PageBHPlusMOfThreeDimensionsReachesHeadMOfEntryB) {
  const Problem p = problem();
  const Matrix<double> nothing = Matrix<double>::Zero(rows, keys);
  Matrix<double> hides = nothing;
  hides.col(1).setConstant(-std::numeric_limits<double>::infinity());
  const Pages unmasked = GetParam().two_d(p, nothing);
  for (Index b = 0; b < batch; ++b) {
    for (Index m = 0; m < heads; ++m) {
      Pages pages(batch * heads, nothing);
      pages[static_cast<std::size_t>(b * heads + m)] = hides;
      const Pages answer = GetParam().three_d(p, pages);
      for (Index entry = 0; entry < batch; ++entry) {
        for (Index head = 0; head < heads; ++head) {
          const auto at = static_cast<std::size_t>(entry);
          const Matrix<double> found = columns_from(answer[at], head * dv, dv),
                               before = columns_from(unmasked[at], head * dv, dv);
          EXPECT_EQ(found != before, entry == b && head == m)
              << "the page of entry " << b << ", head " << m << " at entry " << entry << ", head " << head;
        }
      }
    }
  }
}

TEST_P(MaskRanks, ThreeAndFourDimensionsOfTheSamePagesGiveTheSameBits) {
  const Problem p = problem();
  const Pages pages = masks(batch * heads);
  const Pages answer = GetParam().three_d(p, pages);
  expect_equal(answer, GetParam().four_d(p, pages, batch, heads));
  // The pages of one entry serve all of them, in either rank.
  const Pages of_heads(pages.begin(), pages.begin() + heads);
  expect_equal(GetParam().three_d(p, of_heads), GetParam().four_d(p, of_heads, 1, heads));
}

TEST_P(MaskRanks, PagesForAnotherBatchAreRefused) {
  const Problem p = problem();
  EXPECT_THAT(refusal([&] { return GetParam().three_d(p, masks(2 * heads)); }), Says("2 batch entries"));
}

INSTANTIATE_TEST_SUITE_P(Of, MaskRanks, testing::Values(document(), core()),
                         [](const auto& of) { return of.param.name; });

TEST(DocumentMasks, OfEveryRankGiveTheBitsOfTheCore) {
  const Problem p = problem();
  const Pages pages = masks(batch * heads);
  expect_equal(document().two_d(p, pages[0]), core().two_d(p, pages[0]));
  expect_equal(document().three_d(p, pages), core().three_d(p, pages));
  expect_equal(document().four_d(p, pages, batch, heads), core().four_d(p, pages, batch, heads));
}

TEST(DocumentMasks, OfOtherRanksOrPagesThatHDoesNotDivideAreRefused) {
  EXPECT_EQ(refusal([] { return mhattn_masks<double>(Tensor(DType::f64, {keys}), heads); }),
            "attn_mask has 1 dimensions; it may have 2, 3 or 4");
  EXPECT_EQ(refusal([] { return mhattn_masks<double>(Tensor(DType::f64, {3, rows, keys}), heads); }),
            "attn_mask has 3 pages for 2 heads");
}

// Slip 15: the statement deletes row i of Q and of B together. The proof has one of them whole beside the other without
// its row, in every line.
TEST(ProofOfQueryDeletion, ExchangesTheMasks) {
  const Problem p = problem();
  const Matrix<double>&q = p.q[0], &k = p.k[0], &v = p.v[0];
  const Weights<double> w = head_of(p.w, 0);
  const Matrix<double> b = masks(1).front();
  const auto mattn_with = [&](const Matrix<double>& queries, const Matrix<double>& mask) {
    return mattn_w(queries, k, v, w, scale, additive_mask(mask, MaskConvention::pre_scale));
  };
  for (Index i = 0; i < rows; ++i) {
    const Matrix<double> fewer_q = without_row(q, i), fewer_b = without_row(b, i);
    EXPECT_THAT(refusal([&] { return mattn_with(fewer_q, b); }), Says("the mask is 4x3, the scores are 3x3"));
    EXPECT_THAT(refusal([&] { return mattn_with(q, fewer_b); }), Says("the mask is 3x3, the scores are 4x3"));
    expect_same_bits<double>(without_row(mattn_with(q, b), i), mattn_with(fewer_q, fewer_b));
  }
}

}  // namespace
}  // namespace attest
