// 000: the class MHAttn, by itself.
#pragma once

#include <vector>

#include "core/definition/multihead.h"
#include "core/value/tensor.h"

namespace attest {

/// What the class makes of its attn_mask: of rank 2, one for all; of rank 3, one per batch entry and head, (b h) m n;
/// of rank 4, b h m n, where an extent of 1 serves every index. A mask of truth values is one of numbers to it, 1 where
/// true. Throws UsageError for any other rank, and for one of rank 3 whose pages h does not divide.
template <Scalar T>
[[nodiscard]] MaskStack<T> mhattn_masks(const Tensor& attn_mask, Index heads);

/// Its forward pass, an output per batch entry: the masks are added to the scores before these are scaled. Throws
/// UsageError where the class raises.
template <Scalar T>
[[nodiscard]] std::vector<Matrix<T>> mhattn_class(const std::vector<Matrix<T>>& queries,
                                                  const std::vector<Matrix<T>>& keys,
                                                  const std::vector<Matrix<T>>& values, const MultiheadWeights<T>& w,
                                                  const T& scale, const MaskStack<T>& masks);

}  // namespace attest
