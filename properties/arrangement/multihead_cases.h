// Cases of multi-head attention as the families weights, self, position, multihead and reduction need them: drawn
// small, held to their hypotheses, and rearranged.
#pragma once

#include <functional>

#include "core/problem/selection.h"
#include "properties/arrangement/arrange.h"
#include "properties/generators/draw.h"

namespace attest {

/// Any multihead case with few short extents (its bounds are computed in balls), half of them in the shapes of
/// torch.nn.MultiheadAttention, rarely without queries or without keys.
[[nodiscard]] DrawnMultihead small_multihead(Draw& draw, std::int32_t least_heads = 1);
/// The same with whole numbers from -2 to 2 everywhere, so that projections are exact.
[[nodiscard]] DrawnMultihead whole_numbers(Draw& draw);
/// Attn_W and MAttn_W of 000: the drawn case with one head, no add_bias_kv, and W_o = I, which half of the cases state.
[[nodiscard]] Case one_head(DrawnMultihead drawn);
/// No projection bias at all.
[[nodiscard]] DrawnMultihead without_biases(DrawnMultihead drawn);
/// Self-attention of at least so many tokens.
[[nodiscard]] DrawnMultihead self_attention(DrawnMultihead drawn, std::int32_t tokens);
/// At least two keys (and queries, where the drawn case is self-attention).
[[nodiscard]] DrawnMultihead two_keys(DrawnMultihead drawn);
/// An output projection in every case.
[[nodiscard]] DrawnMultihead with_output(DrawnMultihead drawn);

/// Is the matrix the identity?
[[nodiscard]] bool is_identity(const Tensor& matrix);
[[nodiscard]] Tensor identity_tensor(DType dtype, std::int64_t size);
/// XW + 1b^T in x's dtype; X [batch, rows, c]. `exact` becomes false where a sum or its rounding is not exact.
[[nodiscard]] Tensor projected(const Tensor& x, const Tensor& w, const Tensor& b, bool& exact);
/// The case that starts from the projected tokens: q, k, v projected (exactly: hypotheses::exact_projections), W = I,
/// no b.
[[nodiscard]] Case with_tokens_projected(const Case& c);
/// The case of tokens x for q, k and v alike.
[[nodiscard]] Case with_tokens(Case c, const Tensor& x);

/// The case's shapes with every number 0 but those that make each head pass on the first entry of v's tokens.
[[nodiscard]] Case first_entry_of_values(const Case& c);
/// Are q, k and v the same tensor?
[[nodiscard]] bool is_self_attention(const Case& c);

/// Rows of tokens [batch, rows, columns] replaced: value(element, old) for those of row s.
[[nodiscard]] Tensor with_row(Tensor tokens, std::int64_t s, const std::function<double(std::int64_t, double)>& value);

/// Key s hidden from row i (i < 0: from every row; i >= 0 with `others`: from every row but i), in every head and batch
/// entry. Rows that would be left without a key see another one.
enum class From { row, every_row, every_other_row };
[[nodiscard]] Case hidden_key(const Case& c, From from, std::int64_t i, std::int64_t s);

}  // namespace attest
