// 002's column convention: tokens are columns, the softmax runs down the keys, and a mask is keys x queries. Written
// out on its own, so that layout.columns-are-transpose compares two things.
#pragma once

#include <optional>
#include <vector>

#include "core/definition/mask.h"
#include "core/definition/projection.h"

namespace attest {

/// W_q dk x c_q, W_k dk x c_k, W_v dv x c_v, applied from the left: W X + b 1^T. The transposes of Weights.
template <Scalar T>
struct ColumnWeights {
  Projection<T> q, k, v;
};
template <Scalar T>
[[nodiscard]] ColumnWeights<T> columns_of(const Weights<T>& rows);

/// V softmax_columns(scale K^T Q) for Q dk x M, K dk x N, V dv x N; the output is dv x M. allowed (N x M, keys x
/// queries): where false the score is -inf; none: nothing is hidden. Throws UsageError where sizes do not fit or N = 0.
template <Scalar T>
[[nodiscard]] Matrix<T> attention_columns(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                          const std::optional<BoolMatrix>& allowed = std::nullopt);

/// 002's Attention(X, Z | W, Mask): queries from the primary sequence X (c_q x M), keys and values from the context Z
/// (c x N). Z = X is self-attention.
template <Scalar T>
[[nodiscard]] Matrix<T> attn_w_columns(const Matrix<T>& x, const Matrix<T>& z, const ColumnWeights<T>& w,
                                       const T& scale, const std::optional<BoolMatrix>& allowed = std::nullopt);

/// 002's single-query attention: one token x (c_q) against the context tokens, columns of Z (c x N); length dv.
template <Scalar T>
[[nodiscard]] Vector<T> single_query(const Vector<T>& x, const Matrix<T>& z, const ColumnWeights<T>& w, const T& scale);

/// 002's MHAttention: W_o [Y_1; ...; Y_h] + b_o 1^T, W_o d_o x h*dv, Y_m the output of head m.
template <Scalar T>
[[nodiscard]] Matrix<T> mhattn_columns(const Matrix<T>& x, const Matrix<T>& z,
                                       const std::vector<ColumnWeights<T>>& heads, const Matrix<T>& w_o,
                                       const std::optional<Vector<T>>& b_o, const T& scale,
                                       const std::optional<BoolMatrix>& allowed = std::nullopt);

}  // namespace attest
