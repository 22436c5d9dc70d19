// The core's functions beyond its two kernel entries, on a scalar chosen at run time by the name of its kernel: what
// properties about the core compare (column forms, score matrices, the notebook's ladder).
#pragma once

#include <string_view>
#include <vector>

#include "core/kernel/values.h"
#include "core/problem/case.h"

namespace attest {

/// The functions on one scalar, whose own numbers they return. Tensors are matrices, [rows, columns], of any dtype that
/// the scalar holds (their elements are rounded once to it otherwise). A case is valid; its scale, mask, convention and
/// causal form hold where a line does not say otherwise. All throw UsageError where the core's function does (sizes, N
/// = 0, positions).
struct CoreFunctions {
  std::string_view scalar;  ///< "float", as in "core:float"
  bool commutes = true;     ///< bit by bit a b is b a, and 1 a is a

  Values (*softmax_rows)(const Tensor& a);
  Values (*softmax_columns)(const Tensor& a);  ///< 002's: down each column
  Values (*product)(const Tensor& a, const Tensor& b);

  /// MAttn_B(Q,K,V) of an attention case, [batch, heads, M, dv].
  Values (*attention)(const Case& c);
  /// The same from the unmasked weights: those of hidden keys set to 0, the rest renormalised (003).
  Values (*attention_renormalised)(const Case& c);
  /// 002's column convention on the pages of an attention case, turned back: [batch, heads, M, dv]. `allowed`, boolean,
  /// keys x queries, is the mask of every page; absent: nothing is hidden. The case's own mask and causal form are not
  /// looked at.
  Values (*attention_columns)(const Case& c, const Tensor& allowed);

  /// Of a multihead case, per batch entry and head, unmasked: scale (X W_q + 1b_q^T)(Z W_k + 1b_k^T)^T with X = q and
  /// Z = k, [batch, heads, M, N].
  Values (*scores)(const Case& c);
  /// Of a multihead case, X = q: scale x_i^T (W_q W_k^T) x_j, without the biases, [batch, heads, M, M] (004).
  Values (*bilinear_scores)(const Case& c);
  /// MMHAttn of a multihead case, [batch, M, d_o].
  Values (*multihead)(const Case& c);
  /// Its weights of each head, [batch, heads, M, N]; with an appended key N+1 columns.
  Values (*multihead_weights)(const Case& c);
  /// The same by way of PyTorch's parameters, from_torch: W_q, W_k and W_v as one in_proj_weight where `packed`, else
  /// as three matrices. Of a case in the shapes of torch.nn.MultiheadAttention.
  Values (*multihead_torch)(const Case& c, bool packed);
  /// The same as a sum over heads (002).
  Values (*multihead_as_sum)(const Case& c);
  /// MHAttn: the function without a mask; the case's own and its causal form are not looked at.
  Values (*multihead_unmasked)(const Case& c);
  /// MMHSAttn(X) with X = q; k and v are not looked at.
  Values (*multihead_self)(const Case& c);
  /// MHSAttn(X), the same without a mask.
  Values (*multihead_self_unmasked)(const Case& c);
  /// MAttn_W of the first head's weights, [batch, M, dv]: no W_o, b_o and appended key.
  Values (*weighted)(const Case& c);
  /// Attn_W, the same without a mask.
  Values (*weighted_unmasked)(const Case& c);
  /// MSAttn(X) with X = q, [batch, M, dv].
  Values (*weighted_self)(const Case& c);
  /// SAttn(X), the same without a mask.
  Values (*weighted_self_unmasked)(const Case& c);
  /// 003's softmax(Q K^T) V of X = q with itself, of the first head's weights, [batch, M, dv].
  Values (*unscaled_self)(const Case& c);

  Values (*parameter_free)(const Tensor& x);                       ///< softmax(X X^T) X (003)
  Values (*shared_projection)(const Tensor& x, const Tensor& u);   ///< softmax(X U U^T X^T) X U (003)
  Values (*with_positions)(const Tensor& x, const Tensor& table);  ///< X plus the table's first rows (003)
  /// 003's MultiHeadAttentionV1 with the case's heads on X = q, [batch, M, d_o]. `positions`: a table per head, or
  /// none at all. The mask is that of the first head of each batch entry; no appended key.
  Values (*multihead_v1)(const Case& c, const std::vector<Tensor>& positions);
};

/// By a kernel's id, "core:float" or "core:mpfr@300"; null for any kernel that is not the core on one of its scalars. A
/// precision that is chosen as it runs is this thread's AskedPrecision, which check_case makes the kernel's.
[[nodiscard]] const CoreFunctions* core_functions(std::string_view kernel_id);
/// The weights that a kernel returns beside its output, [batch, heads, M, N] of a multihead case: of the core its
/// multihead_weights, of 001's module its second answer. Null for every other kernel: the contract has no place for
/// them.
[[nodiscard]] Values (*returned_weights(std::string_view kernel_id))(const Case&);
/// The functions on one more scalar, for kernels "core:SCALAR" that are not of this library; they must outlive every
/// use. Before the first check: not for two threads at once.
void add_core_functions(const CoreFunctions& functions);

}  // namespace attest
