// Attention(Q,K,V) = softmax(QK^T scale) V and MAttn_B (000), with the log-sum-exp as a second output; grouped queries;
// key blocks that are split and merged.
#pragma once

#include <vector>

#include "core/definition/mask.h"
#include "core/definition/matrix.h"
#include "core/definition/softmax.h"

// Shapes: Q is M x dk, K is N x dk, V is N x dv, row i of the output belongs to row i of Q. The definition's 1/sqrt(dk)
// is the argument `scale`, a value of the scalar. M = 0 gives an empty output; N = 0 throws UsageError naming the sizes
// (attention.any-length); so does any pair of sizes that do not fit, and a mask of another shape. A row whose every key
// is hidden: core_fully_masked_row, softmax.h.

namespace attest {

/// Output rows and, per row, ln sum_j e^(s_ij) over the scores after mask and scale.
template <Scalar T>
struct AttentionResult {
  Matrix<T> out;
  Vector<T> lse;
};

/// M x N scores after mask and scale: scale*qk + b or scale*(qk + b) by mask.convention, -inf where a key is hidden
/// (that score is not computed, so nothing in a hidden key reaches it).
template <Scalar T>
[[nodiscard]] Matrix<T> masked_scores(const Matrix<T>& q, const Matrix<T>& k, const T& scale, const Mask<T>& mask = {});

/// alpha = softmax of each row of the scores, M x N.
template <Scalar T>
[[nodiscard]] Matrix<T> attention_weights(const Matrix<T>& q, const Matrix<T>& k, const T& scale,
                                          const Mask<T>& mask = {});

/// alpha V over the keys whose score is above -inf: the values of the others are not looked at. The sum runs over
/// ascending keys.
template <Scalar T>
[[nodiscard]] Matrix<T> weighted_values(const Matrix<T>& scores, const Matrix<T>& weights, const Matrix<T>& v);

/// Attention(Q,K,V) = softmax(QK^T scale) V (000).
template <Scalar T>
[[nodiscard]] Matrix<T> attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale);

/// MAttn_B(Q,K,V) (000; 001 and 003 for the conventions).
template <Scalar T>
[[nodiscard]] Matrix<T> mattn(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                              const Mask<T>& mask);
/// The same with the log-sum-exp.
template <Scalar T>
[[nodiscard]] AttentionResult<T> mattn_lse(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                           const Mask<T>& mask = {});

/// 003's other description of a mask: the unmasked weights, those of hidden keys set to 0, each row divided by what is
/// left of its sum. Equals mattn in exact arithmetic (masked.renormalisation); additive parts other than -inf are
/// ignored.
template <Scalar T>
[[nodiscard]] Matrix<T> mattn_renormalised(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                           const Mask<T>& mask);

/// Grouped queries: q has batch*heads pages (page b*heads + h), k and v batch*kv_heads, and head h reads key-value head
/// h / (heads / kv_heads). kv_heads = heads is a plain batch of heads. Throws UsageError where kv_heads does not divide
/// heads or the pages do not fit.
template <Scalar T>
[[nodiscard]] std::vector<AttentionResult<T>> grouped_attention(const std::vector<Matrix<T>>& q,
                                                                const std::vector<Matrix<T>>& k,
                                                                const std::vector<Matrix<T>>& v, Index batch,
                                                                Index heads, Index kv_heads, const T& scale,
                                                                const MaskStack<T>& masks = {});

/// What is known of attention after some of the keys, per row: a reference point r, sum_j e^(s_j - r) and
/// sum_j e^(s_j - r) v_j. The pair (reference, sum) stands for the log-sum-exp r + ln sum, so that merging needs no
/// logarithm. No keys yet: reference -inf, sum 0, values 0.
template <Scalar T>
struct PartialAttention {
  Vector<T> reference;
  Vector<T> sum;
  Matrix<T> values;  ///< M x dv, not normalised
};

/// Over the keys first <= j < last; an empty range, or rows with all of it hidden, give the empty state. The mask is
/// the one of the whole key range.
template <Scalar T>
[[nodiscard]] PartialAttention<T> partial_attention(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                                    const T& scale, const Mask<T>& mask, Index first, Index last);
/// Of the keys of both (attention.split-merge). Merging with an empty row leaves that row's bits.
template <Scalar T>
[[nodiscard]] PartialAttention<T> merge(const PartialAttention<T>& left, const PartialAttention<T>& right);
/// values / sum and reference + ln sum.
template <Scalar T>
[[nodiscard]] AttentionResult<T> finish(const PartialAttention<T>& partial);

}  // namespace attest
