// self: scores and the notebook's ladder (003, 004): bilinear scores, softmax(XX^T)X, one projection for all, no scale.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/support/infinity.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/families/core_scores.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"

namespace attest {
namespace {

Tensor page_of(const Tensor& tokens, std::int64_t page) {
  const std::int64_t rows = tokens.shape()[1], columns = tokens.shape()[2];
  Tensor matrix(tokens.dtype(), {rows, columns});
  for (std::int64_t e = 0; e < matrix.elements(); ++e) matrix.set(e, tokens[page * rows * columns + e]);
  return matrix;
}

// 003's printed numbers, four digits each: softmax(XX^T)X of five tokens.
constexpr std::int64_t printed_tokens = 5, printed_columns = 3;
constexpr std::array<double, 15> printed_X{0.5341, 0.3316, 0.5995, 0.9891, 0.8921, 0.4602, 0.1234, 0.5678,
                                           0.9101, 0.4567, 0.7890, 0.1234, 0.2345, 0.6789, 0.3456};
constexpr std::array<double, 25> printed_scores{0.7546, 1.1000, 0.7998, 0.5795, 0.5576, 1.1000, 1.9859, 1.0474, 1.2124,
                                                0.9966, 0.7998, 1.0474, 1.1659, 0.6167, 0.7289, 0.5795, 1.2124, 0.6167,
                                                0.8463, 0.6854, 0.5576, 0.9966, 0.7289, 0.6854, 0.6353};
constexpr std::array<double, 25> printed_weights{0.1953, 0.2759, 0.2044, 0.1640, 0.1604, 0.1564, 0.3793, 0.1484, 0.1750,
                                                 0.1410, 0.1822, 0.2334, 0.2628, 0.1517, 0.1698, 0.1578, 0.2971, 0.1637,
                                                 0.2060, 0.1754, 0.1679, 0.2605, 0.1993, 0.1908, 0.1815};
constexpr std::array<double, 15> printed_Y{0.5150, 0.6652, 0.5058, 0.5899, 0.7082, 0.4736, 0.4698, 0.6529,
                                           0.5333, 0.5335, 0.6919, 0.4664, 0.5016, 0.6750, 0.4882};
/// Half of the last printed digit, and what the notebook's f32 may have lost before it.
constexpr double printed_to = 0.5e-4 + 1e-6;

/// Two batch entries with q = k = X, two columns of 0 beside it: v is X in the first (the output is Y) and I in the
/// second (the output is A). W = I, no scale.
Case notebook(DType dtype) {
  Case c;
  c.operation = Operation::multihead;
  const std::int64_t n = printed_tokens;
  for (const Slot w : {Slot::w_q, Slot::w_k, Slot::w_v}) c[w] = identity_tensor(dtype, n);
  Tensor tokens(dtype, {2, n, n});
  for (std::int64_t e = 0; e < tokens.elements(); ++e) {
    const std::int64_t row = e / n % n, column = e % n;
    if (column < printed_columns) tokens.set(e, printed_X[static_cast<std::size_t>(row * printed_columns + column)]);
  }
  c = with_tokens(std::move(c), tokens);
  for (std::int64_t e = 0; e < n * n; ++e) c[Slot::v].set(n * n + e, e / n == e % n ? 1 : 0);
  return c;
}
/// What is left of it for a kernel that takes one X for all three: Y twice.
Case self_notebook(DType dtype) {
  const Case c = notebook(dtype);
  return with_tokens(c, c.q());
}
Case notebook_like(const Case& c, DType dtype) {
  return is_self_attention(c) ? self_notebook(dtype) : notebook(dtype);
}

/// How far rounding X to the dtype moves the exact outputs: both certified by the oracle's own evaluation.
std::vector<double> moved_by_rounding(const Case& c, const Arithmetic& arithmetic) {
  const AttentionBounds exact = multihead_bounds(notebook_like(c, DType::f64), arithmetic),
                        rounded = multihead_bounds(c, arithmetic);
  std::vector<double> moved;
  for (std::size_t e = 0; e < exact.elements.size(); ++e) {
    const ElementBound &a = exact.elements[e], &b = rounded.elements[e];
    moved.push_back(std::fabs(a.value - b.value) + a.certificate + b.certificate);
  }
  return moved;
}

// 003: the printed Y and A, in any order of the tokens; the printed A* from the core's scores, symmetric to the bit.
Verdict parameter_free(Kernel& kernel, const Case& c) {
  const std::int64_t n = printed_tokens;
  const Indices pi = permutation_argument(c, "pi", n);
  const bool self = is_self_attention(c);
  const Numbers found(run(kernel, with_queries(self ? with_keys(c, pi) : c, pi)));
  const std::vector<double> moved = moved_by_rounding(c, kernel.manifest().arithmetic_for(c));
  Verdict verdict;
  for (std::int64_t e = 0; e < found.elements(); ++e) {
    const std::int64_t entry = e / n / n, row = pi[static_cast<std::size_t>(e / n % n)], column = e % n;
    const bool is_Y = self || entry == 0;
    if (is_Y && column >= printed_columns) continue;
    const double printed = is_Y ? printed_Y[static_cast<std::size_t>(row * printed_columns + column)]
                                : printed_weights[static_cast<std::size_t>(row * n + column)];
    const double more = printed_to + moved[static_cast<std::size_t>((entry * n + row) * n + column)];
    const Numbers wanted = Numbers({1}, std::span(&printed, 1)).loosened(more);
    Verdict one = agree({found.at({1}, {e}), wanted});
    one.element = e;
    verdict = worse_of({std::move(verdict), std::move(one)});
  }
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr) return verdict;
  const Values scores = core->scores(c);
  if (!same_bits(scores, transposed(scores)))
    return violated(Violation::bits, "the score matrix XX^T is not symmetric");
  const CoreRounding rounding = rounding_of(scores);
  const Sized x(c.q(), 0);
  std::vector<long double> allowed;
  allow(allowed, times(times(x, x.transposed(), rounding), 1.0, rounding));
  // |x x' - X X'| of entries below 1 that rounding moves by at most u each: three products, 2u + u^2 each.
  const double unit = c.dtype() == DType::f64 ? 0 : format_of(c.dtype()).unit;
  for (std::size_t e = 0; e < printed_scores.size(); ++e) allowed[e] += printed_to + 3 * (2 * unit + unit * unit);
  const Values first = scores.gather({n, n}, all_of(n * n)), printed = Tensor(DType::f64, {n, n}, printed_scores);
  return worse_of({std::move(verdict), agree_in_core(first, printed, allowed)});
}

std::string misses_notebook(const Case& c) {
  const Case printed = notebook_like(c, c.dtype());
  if (c.tensors == printed.tensors && c.scale == 1 && c.heads == 1) return {};
  return "is not the notebook's X with W = I and scale 1";
}

/// Of the parameter-free form of these tokens nothing is allowed but where it may overflow, in scores or in sums.
std::vector<long double> exact_in_range(const Tensor& tokens, const CoreRounding& rounding) {
  const Sized y(tokens, 0), scores = times(y, y.transposed(), rounding);
  const double most = y.size.empty() ? 0 : std::ranges::max(y.size);
  const bool sums = 2 * most <= rounding.largest;  // of weights that are divided first
  std::vector<long double> allowed;
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const auto row =
        std::span(scores.error).subspan(static_cast<std::size_t>(i * y.rows), static_cast<std::size_t>(y.rows));
    const bool fits = sums && std::ranges::none_of(row, [](long double error) { return std::isinf(error); });
    allowed.insert(allowed.end(), static_cast<std::size_t>(y.columns), fits ? 0 : infinity);
  }
  return allowed;
}

// 003: softmax(XUU^T X^T) XU is the parameter-free form of XU; its scores are symmetric.
Verdict shared_projection(Kernel& kernel, const Case& c) {
  Verdict verdict = agree({run(kernel, c), run(kernel, with_tokens_projected(c))}, Match::bound);
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr || keys_of(c) == 0) return verdict;
  const Values scores = core->scores(c);
  if (!same_bits(scores, transposed(scores)))
    return violated(Violation::bits, "the scores of X with itself are not symmetric");
  const Tensor x = page_of(c.q(), 0), projected = page_of(with_tokens_projected(c).q(), 0);
  const std::vector<long double> equal = exact_in_range(projected, rounding_of(scores));
  const Values plain = core->parameter_free(projected);
  const Values identity = core->shared_projection(projected, identity_tensor(c.dtype(), projected.shape()[1]));
  // Exact projections: XU, and XU times I, are the same numbers in every order.
  verdict = worse_of({std::move(verdict), agree_in_core(core->shared_projection(x, c[Slot::w_q]), plain, equal)});
  return worse_of({std::move(verdict), agree_in_core(identity, plain, equal)});
}

// 003: softmax(QK^T)V is the form with 1/sqrt(dk) of sqrt(dk) Q. Q = XW_q + 1b_q^T is multiplied through W_q and b_q.
Verdict unscaled_vs_scaled(Kernel& kernel, const Case& c) {
  const double root = inverse_of(c.scale);
  Case scaled = c, unscaled = c;
  for (const Slot slot : {Slot::w_q, Slot::b_q})
    if (c[slot].present())
      scaled[slot] = mapped(c[slot], [&](std::int64_t, double old) { return product_of(root, old); });
  for (const Slot slot : {Slot::w_q, Slot::b_q})
    for (std::int64_t e = 0; e < scaled[slot].elements(); ++e)
      if (!std::isfinite(scaled[slot][e])) return {.outcome = Outcome::excused, .reason = "sqrt(dk) W_q overflows"};
  unscaled.scale = 1;
  return worse_of(
      {same_in_core(kernel, &CoreFunctions::unscaled_self, unscaled, &CoreFunctions::weighted_self_unmasked, unscaled),
       agree({run(kernel, scaled), run(kernel, unscaled)}, Match::bound)});
}

// The scores of X with itself, one projection for both sides, are a symmetric matrix.
Verdict symmetric_scores(Kernel& kernel, const Case& c) {
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr) return about_the_core(kernel);
  const Values scores = core->scores(c);
  return equal_in_core(scores, transposed(scores));
}

// softmax(XUU^T X^T) XU is the parameter-free form of the projected tokens.
Verdict product_alone(Kernel& kernel, const Case& c) {
  const CoreFunctions* const core = core_of_bits(kernel);
  if (core == nullptr) return about_the_core(kernel);
  const Tensor projected = page_of(with_tokens_projected(c).q(), 0);
  return agree_in_core(core->shared_projection(page_of(c.q(), 0), c[Slot::w_q]), core->parameter_free(projected),
                       exact_in_range(projected, rounding_of(core->scores(c))));
}

constexpr std::array bilinear{needed(hypotheses::self_attention, "the score of two X is x_i^T (W_Q W_K^T) z_j"),
                              needed(hypotheses::no_biases, "biases add terms that are linear in x")};
constexpr std::array printed_case{defining(hypotheses::notebook, "it is the notebook's own numbers that are printed"),
                                  defining(hypotheses::unmasked, "the notebook has no mask there")};
constexpr std::array asymmetric{
    defining(hypotheses::self_attention, "the statement is about X with itself"),
    defining(hypotheses::two_keys, "a matrix of one score is symmetric"),
    defining(hypotheses::two_token_columns, "W_q W_k^T of one column is a number, and the scores are symmetric")};
constexpr auto shared_scores = joined(
    one_plain_head,
    std::array{needed(hypotheses::self_attention, "scores of two X are not symmetric", symmetric_scores),
               spare(hypotheses::unmasked, "the projected tokens have the same mask"),
               needed(hypotheses::no_biases, "XU + 1b^T is not XU", product_alone),
               needed(hypotheses::one_projection, "scores of two projections are not symmetric", symmetric_scores),
               spare(hypotheses::unscaled, "the projected tokens have the same scale"),
               defining(hypotheses::exact_projections, "the other side starts from the projected tokens")});
constexpr auto scaled_scores = joined(
    one_plain_head, std::array{spare(hypotheses::self_attention, "queries are multiplied, whatever the keys are"),
                               needed(hypotheses::unmasked, "a mask added before the scale is scaled with the scores"),
                               defining(hypotheses::power_of_four, "sqrt(dk) Q must be what the dtype holds"),
                               defining(hypotheses::exact_inverse_root,
                                        "the scaled form has this scale, and sqrt(dk) Q must be exact")});

const Property family[] = {
    {.name = "self.bilinear-score",
     .statement = "without biases score(i,j) = x_iᵀ(W_Q W_Kᵀ)x_j / √dh",
     .source = "004 001",
     .needs = "core",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = bilinear,
     .given = [](Draw& draw) -> Case { return self_attention(without_biases(small_multihead(draw).unmasked()), 0); },
     .check = [](Kernel& kernel, const Case& c) { return on_core(kernel, c, bilinear_score); }},
    {.name = "self.parameter-free",
     .statement = "softmax(XXᵀ)X; score matrix symmetric; the printed X, A*, A, Y",
     .source = "003",
     .needs = "multihead",
     .floating_point = "golden",
     .operation = Operation::multihead,
     .hypotheses = printed_case,
     .given = [](Draw& draw) -> Case { return notebook(draw.dtype()); },
     .check = parameter_free},
    {.name = "self.scores-symmetric",
     .statement = "with separate W_q and W_k the score matrix of X with itself is symmetric",
     .source = "003",
     .needs = "core",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = asymmetric,
     .given = [](Draw& draw) -> Case {
       return self_attention(small_multihead(draw).unmasked(), 2).where([](Recipe& r) {
         r.c_q = std::max(r.c_q, 2);
         r.c_k = r.c_v = r.c_q;
         r.scale = ScaleKind::inverse_root;
       });
     },
     .check = [](Kernel& kernel, const Case& c) { return on_core(kernel, c, scores_symmetric); }},
    {.name = "self.shared-projection",
     .statement = "softmax(XUUᵀXᵀ)XU; symmetric scores; U = I is the parameter-free form",
     .source = "003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = shared_scores,
     .given = [](Draw& draw) -> Case {
       Case c = one_head(self_attention(without_biases(whole_numbers(draw).unmasked()), 0).where([](Recipe& r) {
         r.dv = r.dk;
         r.scale = ScaleKind::one;
       }));
       c[Slot::w_k] = c[Slot::w_v] = c[Slot::w_q];
       return c;
     },
     .check = shared_projection},
    {.name = "self.unscaled-vs-scaled",
     .statement = "softmax(QKᵀ)V and the 1/√dk form are related by Q → √dk·Q",
     .source = "003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = scaled_scores,
     .given = [](Draw& draw) -> Case {
       return one_head(self_attention(small_multihead(draw).unmasked(), 0).where([](Recipe& r) {
         constexpr std::int32_t powers[] = {1, 4, 4, 4, 16, 16, 16, 64};
         r.dk = powers[(r.seed >> 30) % 8];
         r.scale = ScaleKind::inverse_root;
       }));
     },
     .check = unscaled_vs_scaled},
};

}  // namespace

namespace hypotheses {
// Here, beside the printed numbers.
constexpr Hypothesis notebook{"notebook", "the notebook's X with W = I and scale 1", misses_notebook};
}  // namespace hypotheses

std::span<const Property> self_score_properties() {
  return family;
}

}  // namespace attest
