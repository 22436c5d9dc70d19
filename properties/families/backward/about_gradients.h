// What the rows about the backward pass have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"

namespace attest {

/// All variants that a backward pass is asked under. With P the weights before any is dropped, A = r keep P those that
/// values have, y = tanh(t/C) of a cap, dP_ij = r keep_ij g_i v_j and D_i = Sum_j P_ij dP_ij:
///   dS_ij = P_ij (dP_ij - D_i), dT_ij = (1 - y_ij^2) dS_ij, dv_j = Sum_i A_ij g_i, and dq_i, dk_j are of dT.
/// A gradient by the log-sum-exp, gamma_i, makes of each D_i one of D_i - gamma_i.
inline constexpr std::string_view all_with_gradients =
    "window chunk lengths packed left_pad sink softcap dropout alibi d_lse";
/// A sink takes its share of a row: its weights do not add up to 1, nor its dS to 0, but to D_i times that share.
inline constexpr std::string_view without_sink = "window chunk lengths packed left_pad softcap dropout alibi";
/// Nothing of that.
inline constexpr std::string_view without_sink_by_lse =
    "window chunk lengths packed left_pad softcap dropout alibi d_lse";
/// What is kept of a row's weights, A, does not add up to 1 either.
inline constexpr std::string_view rows_of_1 = "window chunk lengths packed left_pad softcap alibi";
/// And of dS with the derivative of a cap in it, dT, nothing is known that a sum of dS says.
inline constexpr std::string_view sums_of_scores = "window chunk lengths packed left_pad dropout alibi";
/// Where rows are taken away nothing that counts positions stays as it was.
inline constexpr std::string_view fewer_rows = "lengths packed left_pad sink softcap dropout d_lse";
/// Of laws that count rows and keys from the first of a batch entry.
inline constexpr std::string_view of_entries = "window chunk sink softcap dropout alibi d_lse";
/// Where some are appended, or all change their places, lengths count others.
inline constexpr std::string_view other_rows = "sink softcap dropout d_lse";

/// The row with what all of them have. It holds under all variants unless it says otherwise.
[[nodiscard]] constexpr Property about_gradients(Property row, std::string_view under = all_with_gradients) {
  row.source = "+";
  if (row.needs.empty()) row.needs = "attention_backward";
  row.operation = Operation::attention;
  if (row.backward == Backward::none) row.backward = Backward::any;
  row.under = under;
  return row;
}

inline constexpr std::array of_gradients{defining(hypotheses::gradients, "it is about them")};
inline constexpr std::array of_masks{defining(hypotheses::gradients, "it is about them"),
                                     defining(hypotheses::additive_mask, "it is about the gradient by it")};

[[nodiscard]] inline Case any_with_gradients(Draw& draw) {
  return draw.attention().with_later_arguments().with_gradients();
}
/// Without causal forms; three in four with a mask.
[[nodiscard]] inline Case masked_with_gradients(Draw& draw) {
  return draw.attention().masked().with_later_arguments().with_gradients();
}

/// A mask, and one that adds numbers, whatever else it does.
inline void adding_numbers(Recipe& r) {
  r.boolean_mask = false;
  if (r.mask == MaskKind::none) r.mask = MaskKind::bias;
}
/// With a mask that adds numbers, whatever else it does.
[[nodiscard]] inline Case biased_with_gradients(Draw& draw) {
  return draw.attention().masked().where(adding_numbers).with_later_arguments().with_gradients();
}

/// An axis in two parts, each ascending, neither of them empty; of whole steps where there are two of them.
[[nodiscard]] inline std::pair<Indices, Indices> two_parts(const Case& c, std::int64_t extent, std::int64_t step) {
  if (extent % step != 0 || extent == step) step = 1;
  const std::int64_t first = step * (1 + argument(c, "first", extent / step - 1));
  const Indices order = permutation_argument(c, "parts", extent);
  Indices one(order.begin(), order.begin() + first), other(order.begin() + first, order.end());
  std::ranges::sort(one), std::ranges::sort(other);
  return {std::move(one), std::move(other)};
}

/// What has a row, or a number, for each query.
inline constexpr std::array of_queries{Slot::q, Slot::d_out, Slot::d_lse};
/// A loss's gradients by what a forward pass returns.
inline constexpr std::array of_answers{Slot::d_out, Slot::d_lse};

/// Rows, of a tensor [batch, heads, rows, columns], for which the predicate holds, as value(old); columns may be
/// missing. A tensor that is absent stays so.
template <class Chosen, class Value>
[[nodiscard]] Tensor with_rows_as(const Tensor& t, Chosen chosen, Value value) {
  if (!t.present()) return t;
  const std::int64_t columns = t.shape().rank() == 4 ? t.shape()[3] : 1, rows = t.shape()[2];
  return mapped(t, [&](std::int64_t e, double old) { return chosen(e / columns % rows) ? value(old) : old; });
}
[[nodiscard]] inline double another(double old) {
  return any_number(-old);
}

}  // namespace attest
