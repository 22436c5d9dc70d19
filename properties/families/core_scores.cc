#include "properties/families/core_scores.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"

namespace attest {
namespace {

/// Columns of head h of a weight matrix.
Tensor head_columns(const Tensor& w, std::int64_t h, std::int64_t heads) {
  const std::int64_t rows = w.shape()[0], columns = w.shape()[1] / heads;
  Tensor own(w.dtype(), {rows, columns});
  for (std::int64_t e = 0; e < own.elements(); ++e)
    own.set(e, w[e / columns * columns * heads + h * columns + e % columns]);
  return own;
}

/// Error of scores computed as (XW_q)(XW_k)^T and as X(W_q W_k^T)X^T, per batch entry and head.
struct ScoreErrors {
  std::vector<long double> product, bilinear;
};
ScoreErrors score_errors(const Case& c, const CoreRounding& rounding) {
  ScoreErrors errors;
  for (std::int64_t b = 0; b < c.q().shape()[0]; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const Sized x(c.q(), b), w_q(head_columns(c[Slot::w_q], h, c.heads)), w_k(head_columns(c[Slot::w_k], h, c.heads));
      const Sized keys = times(x, w_k, rounding), form = times(w_q, w_k.transposed(), rounding);
      allow(errors.product, times(times(times(x, w_q, rounding), keys.transposed(), rounding), c.scale, rounding));
      allow(errors.bilinear, times(times(times(x, form, rounding), x.transposed(), rounding), c.scale, rounding));
    }
  }
  return errors;
}

}  // namespace

// 004, 001: score(i,j) = x_i^T (W_Q W_K^T) x_j / sqrt(dh), where the definition has (x_i^T W_Q)(x_j^T W_K)^T /
// sqrt(dh).
Verdict bilinear_score(const CoreFunctions& core, const Case& c) {
  if (keys_of(c) == 0) return {};
  const Values product = core.scores(c), bilinear = core.bilinear_scores(c);
  ScoreErrors errors = score_errors(c, rounding_of(product));
  for (std::size_t e = 0; e < errors.product.size(); ++e) errors.product[e] += errors.bilinear[e];
  return agree_in_core(product, bilinear, errors.product);
}

// x_0 and x_1 are 2^n times the first two unit vectors, W_q passes on the first entry and W_k the second, so that
// s_01 = scale 4^n and s_10 = 0.
Verdict scores_symmetric(const CoreFunctions& core, const Case& c) {
  Case candidate = c;
  for (Tensor& tensor : candidate.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  const std::int64_t columns = c.q().shape()[2], width = c[Slot::w_q].shape()[1];
  candidate[Slot::w_q].set(0, 1);
  candidate[Slot::w_k].set(width, 1);
  for (int n = 0; n < 4; ++n) {
    const double value = std::ldexp(1.0, n);
    Tensor x = with_row(candidate.q(), 0, [&](std::int64_t e, double) { return e % columns == 0 ? value : 0.0; });
    x = with_row(x, 1, [&](std::int64_t e, double) { return e % columns == 1 ? value : 0.0; });
    const Case asymmetric = with_tokens(candidate, x);
    const Values scores = core.scores(asymmetric), other_way = transposed(scores);
    const std::int64_t N = keys_of(c);
    std::vector<long double> allowed = score_errors(asymmetric, rounding_of(scores)).product;
    const std::vector<long double> one_way = allowed;
    for (std::size_t e = 0; e < allowed.size(); ++e) {
      const auto cell = static_cast<std::int64_t>(e), i = cell / N % N, j = cell % N;
      allowed[e] += one_way[static_cast<std::size_t>(cell - i * N - j + j * N + i)];
    }
    const Verdict sides = agree_in_core(scores, other_way, allowed);
    if (sides.outcome != Outcome::violated || !std::isfinite(sides.error)) continue;
    return {.reason = fmt::format("counterexample: {} tokens, x_0 = {} e_0, x_1 = {} e_1, W_q = e_0 e_0^T, W_k = e_1 "
                                  "e_0^T: {}",
                                  N, value, value, sides.reason)};
  }
  return violated(Violation::bound,
                  "no counterexample in 4 attempts: the score matrix is symmetric although W_q and W_k differ");
}

}  // namespace attest
