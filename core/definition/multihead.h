// Multi-head attention: MHAttn, MMHAttn, MHSAttn, MMHSAttn (000), as a sum over heads (002), PyTorch's special case,
// batches.
#pragma once

#include <optional>
#include <vector>

#include "core/definition/attention.h"
#include "core/definition/mask.h"
#include "core/definition/projection.h"

namespace attest {

/// Weights of h heads side by side: W_q c_q x h*dk, W_k c_k x h*dk, W_v c_v x h*dv, biases of those lengths; head m
/// owns columns m*d .. m*d + d - 1. Every size is free: c_q, c_k, c_v, dk, dv, d_o, h.
template <Scalar T>
struct MultiheadWeights {
  Projection<T> q, k, v;
  std::optional<Matrix<T>> w_o;  ///< h*dv x d_o; absent: the identity, d_o = h*dv
  std::optional<Vector<T>> b_o;  ///< d_o
  /// add_bias_kv: one key row (h*dk) and one value row (h*dv) appended after projection. No mask and no causal form
  /// hides them, nothing is added to their score. Both or neither.
  std::optional<Vector<T>> bias_k, bias_v;
  Index heads = 1;
};

/// The projections of head m alone: W_m of 000.
template <Scalar T>
[[nodiscard]] Weights<T> head_of(const MultiheadWeights<T>& w, Index m);

/// One mask for all heads, or one per head; see MaskStack. Each is M x N, without the appended column of add_bias_kv.
template <Scalar T>
using HeadMasks = MaskStack<T>;

/// MMHAttn(Q,K,V) = [O_1 | ... | O_h] W_o + 1b_o^T, O_m = MAttn_W of head m under its mask (000). Q M x c_q, K N x c_k,
/// V N x c_v; the result is M x d_o. Throws UsageError where sizes do not fit or heads do not divide the columns.
template <Scalar T>
[[nodiscard]] Matrix<T> mmhattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                const MultiheadWeights<T>& w, const T& scale, const HeadMasks<T>& masks);
/// MHAttn(Q,K,V) (000).
template <Scalar T>
[[nodiscard]] Matrix<T> mhattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const MultiheadWeights<T>& w,
                               const T& scale);
/// MMHSAttn(X) = MMHAttn(X,X,X) (000).
template <Scalar T>
[[nodiscard]] Matrix<T> mmhsattn(const Matrix<T>& x, const MultiheadWeights<T>& w, const T& scale,
                                 const HeadMasks<T>& masks);
/// MHSAttn(X) = MHAttn(X,X,X) (000).
template <Scalar T>
[[nodiscard]] Matrix<T> mhsattn(const Matrix<T>& x, const MultiheadWeights<T>& w, const T& scale);

/// O_1 .. O_h with their log-sum-exps, before W_o.
template <Scalar T>
[[nodiscard]] std::vector<AttentionResult<T>> head_outputs(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                                           const MultiheadWeights<T>& w, const T& scale,
                                                           const HeadMasks<T>& masks);
/// [O_1 | ... | O_h] W_o + 1b_o^T of given heads; W_o absent: the concatenation itself.
template <Scalar T>
[[nodiscard]] Matrix<T> join_heads(const std::vector<Matrix<T>>& heads, const std::optional<Matrix<T>>& w_o,
                                   const std::optional<Vector<T>>& b_o);
/// The same as a sum over heads, O_1 W_o^1 + ... + O_h W_o^h + 1b_o^T with W_o^m the m-th block of dv rows (002).
template <Scalar T>
[[nodiscard]] Matrix<T> mmhattn_as_sum(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                       const MultiheadWeights<T>& w, const T& scale, const HeadMasks<T>& masks);

/// MMHAttn of each entry of a batch with the masks of that entry (001, 004; batch.independence).
template <Scalar T>
[[nodiscard]] std::vector<Matrix<T>> mmhattn_batch(const std::vector<Matrix<T>>& q, const std::vector<Matrix<T>>& k,
                                                   const std::vector<Matrix<T>>& v, const MultiheadWeights<T>& w,
                                                   const T& scale, const MaskStack<T>& masks);

/// The parameters of torch.nn.MultiheadAttention as that module stores them, every matrix [out, in]: dk = dv = d/h,
/// c_q = d_o = d (000, multihead.torch-case).
template <Scalar T>
struct TorchMultihead {
  std::optional<Matrix<T>> in_proj_weight;  ///< 3d x d, where c_k = c_v = d: [Q; K; V] rows
  std::optional<Matrix<T>> q_proj_weight, k_proj_weight, v_proj_weight;  ///< else d x d, d x c_k, d x c_v
  std::optional<Vector<T>> in_proj_bias;                                 ///< 3d, packed in either case
  Matrix<T> out_proj_weight;                                             ///< d x d
  std::optional<Vector<T>> out_proj_bias;                                ///< d
  std::optional<Vector<T>> bias_k, bias_v;                               ///< d
  Index heads = 1;
};
/// The same function in the words of 000. Throws UsageError where sizes do not fit or heads do not divide d.
template <Scalar T>
[[nodiscard]] MultiheadWeights<T> from_torch(const TorchMultihead<T>& torch);

}  // namespace attest
