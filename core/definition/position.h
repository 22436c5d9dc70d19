// Learned absolute positions and the notebook's ladder from parameter-free self-attention to causal multi-head (003).
#pragma once

#include <optional>
#include <vector>

#include "core/definition/attention.h"
#include "core/definition/multihead.h"
#include "core/definition/projection.h"

namespace attest {

/// X plus the first rows of the position table P, row by row. P has one row per position up to the context length and
/// the columns of X. Throws UsageError naming both lengths where X is longer (position.length-limit).
template <Scalar T>
[[nodiscard]] Matrix<T> with_positions(const Matrix<T>& x, const Matrix<T>& table);

/// softmax(X X^T) X: no weights, no scale; the score matrix is symmetric (self.parameter-free).
template <Scalar T>
[[nodiscard]] Matrix<T> parameter_free(const Matrix<T>& x);
/// softmax(X U U^T X^T) X U: one projection for queries, keys and values (self.shared-projection).
template <Scalar T>
[[nodiscard]] Matrix<T> shared_projection(const Matrix<T>& x, const Matrix<T>& u);
/// softmax(Q K^T) V of X with itself, not scaled (self.unscaled-vs-scaled).
template <Scalar T>
[[nodiscard]] Matrix<T> unscaled_sattn(const Matrix<T>& x, const Weights<T>& w);

/// One head of 003's MultiHeadAttentionV1: its own weights and its own position table.
template <Scalar T>
struct PositionedHead {
  Weights<T> weights;
  std::optional<Matrix<T>> positions;
};
/// 003's MultiHeadAttentionV1: MSAttn of each head on X plus its positions, concatenated, then W_o
/// (multihead.v1-is-fused).
template <Scalar T>
[[nodiscard]] Matrix<T> multihead_v1(const Matrix<T>& x, const std::vector<PositionedHead<T>>& heads,
                                     const std::optional<Matrix<T>>& w_o, const std::optional<Vector<T>>& b_o,
                                     const T& scale, const Mask<T>& mask);

}  // namespace attest
