#include "properties/families/backward/directional_derivative.h"

#include <cmath>
#include <utility>

#include "core/definition/bodies/attention.h"
#include "core/definition/dual.h"
#include "core/kernels/core_problem.h"
#include "core/oracle/rows/ball_row.h"
#include "core/problem/sight.h"
#include "core/scalars/arb.h"

namespace attest {
namespace {

using Moving = Dual<Arb>;

/// Pages of q, k or v.
std::vector<Matrix<Moving>> pages_of(const Tensor& t, const std::vector<double>& along) {
  const Shape& shape = t.shape();
  std::vector<Matrix<Moving>> pages;
  std::size_t at = 0;
  for (std::int64_t page = 0; page < shape[0] * shape[1]; ++page) {
    Matrix<Moving>& m = pages.emplace_back(shape[2], shape[3]);
    for (Index i = 0; i < m.rows(); ++i)
      for (Index c = 0; c < m.cols(); ++c, ++at) m(i, c) = {Arb(t[static_cast<std::int64_t>(at)]), Arb(along[at])};
  }
  return pages;
}

/// What each head adds and hides, without -inf, whose product with a constant has no derivative.
MaskStack<Moving> masks_without_infinity(const attest_problem& problem, const Direction& along) {
  const std::vector<double>&of_mask = along[3], &of_sinks = along[4];
  const MaskStack<Moving> masks = masks_of<Moving>(problem);
  std::vector<Mask<Moving>> pages;
  for (Index b = 0; b < problem.q.shape[0]; ++b) {
    for (Index h = 0; h < problem.q.shape[1]; ++h) {
      Mask<Moving>& page = pages.emplace_back(masks(b, h));
      if (page.sink && !of_sinks.empty() && !ScalarTraits<Moving>::is_minus_infinity(*page.sink))
        page.sink->slope = Arb(of_sinks[static_cast<std::size_t>(h)]);
      if (!page.additive) continue;
      const std::int64_t* const shape = problem.mask.shape;
      const Index first = (b % shape[0] * shape[1] + h % shape[1]) * shape[2] * shape[3];
      page.allowed =
          page.additive->unaryExpr([](const Moving& x) { return !ScalarTraits<Moving>::is_minus_infinity(x); });
      for (Index i = 0; i < page.additive->rows(); ++i)
        for (Index j = 0; j < page.additive->cols(); ++j) {
          Moving& entry = (*page.additive)(i, j);
          if (!(*page.allowed)(i, j))
            entry = ScalarTraits<Moving>::from_double(0.0);
          else if (!of_mask.empty())
            entry.slope = Arb(of_mask[static_cast<std::size_t>(first + i * shape[3] + j)]);
        }
    }
  }
  return MaskStack<Moving>::four_d(std::move(pages), problem.q.shape[0], problem.q.shape[1]);
}

bool sees_a_key(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i) {
  for (std::int64_t j = 0; j < keys_of(c); ++j)
    if (!hidden(c, b, h, i, j)) return true;
  return false;
}

double nearest(const Arb& x) {
  return arf_get_d(arb_midref(x.ball()), ARF_RND_NEAR);
}

}  // namespace

Derivative derivative_of_loss(const Case& c, const Direction& along) {
  const ScalarTraits<Arb>::Call precision;
  const Case forward = forward_of(c);
  const attest_problem problem = forward.problem();
  const Index batch = batch_of(c), heads = heads_of(c);
  std::vector<AttentionResult<Moving>> results;
  // The definition's functions know no attention over nothing.
  if (keys_of(c) > 0)
    results = grouped_attention(pages_of(c.q(), along[0]), pages_of(c.k(), along[1]), pages_of(c.v(), along[2]), batch,
                                heads, c.k().shape()[1], ScalarTraits<Moving>::from_double(c.scale),
                                masks_without_infinity(problem, along));
  const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
  Arb sum(0.0);
  for (std::int64_t row = 0; row < batch * heads * M; ++row) {
    const std::int64_t page = row / M, i = row % M;
    if (!sees_a_key(c, page / heads, page % heads, i)) {
      // Its log-sum-exp is its sink, where it has one.
      if (const auto h = static_cast<std::size_t>(page % heads);
          c[Slot::d_lse].present() && !along[4].empty() && std::isfinite(c[Slot::sink][page % heads]))
        sum = sum + Arb(c[Slot::d_lse][row]) * Arb(along[4][h]);
      continue;
    }
    const AttentionResult<Moving>& result = results[static_cast<std::size_t>(page)];
    for (std::int64_t e = 0; e < dv; ++e) sum = sum + Arb(c[Slot::d_out][row * dv + e]) * result.out(i, e).slope;
    if (c[Slot::d_lse].present()) sum = sum + Arb(c[Slot::d_lse][row]) * result.lse(i).slope;
  }
  Derivative d;
  d.value = nearest(sum);
  const Arb rest = sum - Arb(d.value);
  d.rest = nearest(rest);
  d.error = detail::upper_size((rest - Arb(d.rest)).ball());
  return d;
}

}  // namespace attest
