// Attention with learned projections: Attn_W, MAttn_W, SAttn, MSAttn (000), the bilinear score (004), fused QKV in both
// packings (001).
#pragma once

#include <optional>

#include "core/definition/attention.h"
#include "core/definition/mask.h"
#include "core/definition/matrix.h"

namespace attest {

/// X -> XW + 1b^T, W being c x d and b of length d; no bias: XW alone.
template <Scalar T>
struct Projection {
  Matrix<T> weight;
  std::optional<Vector<T>> bias;
};

/// W of Attn_W (000): W_q c_q x dk, W_k c_k x dk, W_v c_v x dv and their biases b_q, b_k, b_v.
template <Scalar T>
struct Weights {
  Projection<T> q, k, v;
};

/// XW + 1b^T: the product's sum first, then the bias. Throws UsageError where the sizes do not fit.
template <Scalar T>
[[nodiscard]] Matrix<T> project(const Matrix<T>& x, const Projection<T>& w);

/// Attn_W(Q,K,V) = Attention(QW_q + 1b_q^T, KW_k + 1b_k^T, VW_v + 1b_v^T) (000), Q M x c_q, K N x c_k, V N x c_v.
template <Scalar T>
[[nodiscard]] Matrix<T> attn_w(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const Weights<T>& w,
                               const T& scale);
/// MAttn_W: the same with a mask (000).
template <Scalar T>
[[nodiscard]] Matrix<T> mattn_w(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const Weights<T>& w,
                                const T& scale, const Mask<T>& mask);
/// SAttn(X) = Attn_W(X,X,X) (000).
template <Scalar T>
[[nodiscard]] Matrix<T> sattn(const Matrix<T>& x, const Weights<T>& w, const T& scale);
/// MSAttn(X) = MAttn_W(X,X,X) (000).
template <Scalar T>
[[nodiscard]] Matrix<T> msattn(const Matrix<T>& x, const Weights<T>& w, const T& scale, const Mask<T>& mask);

/// Scores of X with itself as a bilinear form: scale x_i^T (W_q W_k^T) x_j, M x M, without biases (004, 001).
template <Scalar T>
[[nodiscard]] Matrix<T> bilinear_scores(const Matrix<T>& x, const Matrix<T>& w_q, const Matrix<T>& w_k, const T& scale);

/// How the columns of one projection matrix hold those of queries, keys and values of all heads.
enum class Packing {
  blocks,      ///< [Q | K | V], each with its heads side by side: 001's code
  interleaved  ///< per head [Q_m | K_m | V_m]: 001's formula, index (m B a) with B in {Q, K, V}
};

/// Queries, keys and values of all heads, heads side by side: M x h*dk, N x h*dk, N x h*dv.
template <Scalar T>
struct Fused {
  Matrix<T> q, k, v;
};

/// One matrix of c x h*(2dk + dv) from three with c rows. Throws UsageError where heads do not divide the columns or
/// the rows differ.
template <Scalar T>
[[nodiscard]] Matrix<T> pack_qkv(const Fused<T>& parts, Index heads, Packing packing);
/// The inverse, for a packed matrix with any number of rows (a packed projection as well as its product with X).
template <Scalar T>
[[nodiscard]] Fused<T> unpack_qkv(const Matrix<T>& packed, Index heads, Index dk, Index dv, Packing packing);

}  // namespace attest
