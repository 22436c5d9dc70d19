// The backward pass of MAttn_B: what a loss gains by each argument, from what it gains by the answers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/definition/attention.h"

// With s_j the scores of a row i, P_j = e^(s_j - lse) its weights, A_j = k_j P_j/(1 - p) what dropout leaves of them, g
// the gradient by its output and c that by its log-sum-exp:
//
//   dP_j = k_j (g.v_j)/(1 - p)      D = sum_j P_j dP_j      dS_j = P_j (dP_j - D + c)      dT_j = dS_j (1 - y_j^2)
//
// (y_j is the tanh of a cap; without one dT = dS), and then dq_i = scale sum_j dT_j k_j, dk_j = scale sum_i dT_ij q_i,
// dv_j = sum_i A_ij g_i, the mask's is dS, times the scale where it is added before that, and the sink's is
// -sum_i e^(sink - lse_i) (D_i - c_i). Sums run over ascending keys, or rows, and heads of a group. Keys that a row
// does not see, and rows that see none, have no part in any of them.

namespace attest {

/// The gradients of a loss by the answers of attention.
template <Scalar T>
struct AnswerGradients {
  Matrix<T> out;                 ///< M x dv
  std::optional<Vector<T>> lse;  ///< M; absent: 0
};

/// Its gradients by the arguments, each in the shape of its argument.
template <Scalar T>
struct Gradients {
  Matrix<T> q, k, v;
  std::optional<Matrix<T>> mask;  ///< where there is an additive one; 0 where it hides
  std::optional<T> sink;          ///< where there is one
};

/// One row on its way through the backward pass; entries of hidden keys are 0.
template <Scalar T>
struct GradientRow {
  bool empty = false;     ///< it sees no key: it has no gradients, and nothing below is set
  Vector<T> weights;      ///< P
  Vector<T> applied;      ///< A
  Vector<T> of_weights;   ///< dP
  Vector<T> of_scores;    ///< dS
  Vector<T> of_products;  ///< dT
  T delta;                ///< D - c
  std::optional<T> sink;  ///< this row's part of the sink's gradient
};

/// What a row's formulas are taken at, instead of the exact answers: those that a forward pass returned.
template <Scalar T>
struct GivenRow {
  std::span<const T> out;  ///< empty: D is the sum of P dP all the same
  T lse;
};

/// Row i; g is the gradient by its output, `of_lse` that by its log-sum-exp. With `given` the weights are e^(s - lse)
/// of that log-sum-exp, and D is g.out of that output.
template <Scalar T>
[[nodiscard]] GradientRow<T> gradient_row(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                          const Mask<T>& mask, Index i, std::span<const T> g, const T& of_lse,
                                          const std::optional<GivenRow<T>>& given = {});

/// Of one head. Throws UsageError as mattn does, and where the answers' gradients do not fit.
template <Scalar T>
[[nodiscard]] Gradients<T> mattn_gradients(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                                           const Mask<T>& mask, const AnswerGradients<T>& of);
/// The same formulas at the answers of a forward pass, `answers`, whatever they are.
template <Scalar T>
[[nodiscard]] Gradients<T> mattn_gradients_given(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                                                 const T& scale, const Mask<T>& mask, const AnswerGradients<T>& of,
                                                 const AttentionResult<T>& answers);

/// Grouped queries, in the pages of grouped_attention. Each page of q has its own gradients; those of k and v are in
/// the first head's of its group, summed over the group in order, and empty in the others. `answers`: what the formulas
/// are taken at, a page for each of q; of no columns where D is not taken from them; nullptr: the exact ones.
template <Scalar T>
[[nodiscard]] std::vector<Gradients<T>> grouped_gradients(const std::vector<Matrix<T>>& q,
                                                          const std::vector<Matrix<T>>& k,
                                                          const std::vector<Matrix<T>>& v, Index batch, Index heads,
                                                          Index kv_heads, const T& scale, const MaskStack<T>& masks,
                                                          const std::vector<AnswerGradients<T>>& of,
                                                          const std::vector<AttentionResult<T>>* answers = nullptr);

}  // namespace attest
