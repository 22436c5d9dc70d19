// The core for one more scalar: specialise ScalarTraits, include this file in one source file and name the scalar
// there:
//
//   namespace attest {
//   ATTEST_INSTANTIATE_CORE(my_scalar)
//   }
//
// The public headers declare and do not define, so that nobody who uses the core compiles it again: a scalar costs one
// translation unit (src/scalars). A macro, because C++ has no other way to name many functions for one type.
#pragma once

#include "core/definition/bodies/attention.h"
#include "core/definition/bodies/columns.h"
#include "core/definition/bodies/gradients.h"
#include "core/definition/bodies/matrix.h"
#include "core/definition/bodies/multihead.h"
#include "core/definition/bodies/position.h"
#include "core/definition/bodies/projection.h"

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type, and a type in parentheses is no template argument
#define ATTEST_INSTANTIATE_MATRIX(T) template Matrix<T> product<T>(const Matrix<T>&, const Matrix<T>&);

#define ATTEST_INSTANTIATE_SOFTMAX(T)                                                  \
  template Exponentials<T> exponentials<T>(const Vector<T>&, const std::optional<T>&); \
  template Vector<T> softmax<T>(const Vector<T>&);                                     \
  template Matrix<T> softmax_rows<T>(const Matrix<T>&);                                \
  template Matrix<T> softmax_columns<T>(const Matrix<T>&);

#define ATTEST_INSTANTIATE_ATTENTION(T)                                                                             \
  template void check_mask<T>(const Mask<T>&, Index, Index);                                                        \
  template class MaskStack<T>;                                                                                      \
  template Matrix<T> masked_scores<T>(const Matrix<T>&, const Matrix<T>&, const T&, const Mask<T>&);                \
  template Matrix<T> attention_weights<T>(const Matrix<T>&, const Matrix<T>&, const T&, const Mask<T>&);            \
  template Matrix<T> weighted_values<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&);                      \
  template Matrix<T> attention<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&);                  \
  template Matrix<T> mattn<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&, const Mask<T>&);      \
  template AttentionResult<T> mattn_lse<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&,          \
                                           const Mask<T>&);                                                         \
  template Matrix<T> mattn_renormalised<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&,          \
                                           const Mask<T>&);                                                         \
  template std::vector<AttentionResult<T>> grouped_attention<T>(                                                    \
      const std::vector<Matrix<T>>&, const std::vector<Matrix<T>>&, const std::vector<Matrix<T>>&, Index, Index,    \
      Index, const T&, const MaskStack<T>&);                                                                        \
  template PartialAttention<T> partial_attention<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&, \
                                                    const Mask<T>&, Index, Index);                                  \
  template PartialAttention<T> merge<T>(const PartialAttention<T>&, const PartialAttention<T>&);                    \
  template AttentionResult<T> finish<T>(const PartialAttention<T>&);

#define ATTEST_INSTANTIATE_GRADIENTS(T)                                                                          \
  template GradientRow<T> gradient_row<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&,        \
                                          const Mask<T>&, Index, std::span<const T>, const T&,                   \
                                          const std::optional<GivenRow<T>>&);                                    \
  template Gradients<T> mattn_gradients<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&,       \
                                           const Mask<T>&, const AnswerGradients<T>&);                           \
  template Gradients<T> mattn_gradients_given<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&, \
                                                 const Mask<T>&, const AnswerGradients<T>&,                      \
                                                 const AttentionResult<T>&);                                     \
  template std::vector<Gradients<T>> grouped_gradients<T>(                                                       \
      const std::vector<Matrix<T>>&, const std::vector<Matrix<T>>&, const std::vector<Matrix<T>>&, Index, Index, \
      Index, const T&, const MaskStack<T>&, const std::vector<AnswerGradients<T>>&,                              \
      const std::vector<AttentionResult<T>>*);

#define ATTEST_INSTANTIATE_PROJECTION(T)                                                                           \
  template Matrix<T> project<T>(const Matrix<T>&, const Projection<T>&);                                           \
  template Matrix<T> attn_w<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const Weights<T>&, const T&); \
  template Matrix<T> mattn_w<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const Weights<T>&, const T&, \
                                const Mask<T>&);                                                                   \
  template Matrix<T> sattn<T>(const Matrix<T>&, const Weights<T>&, const T&);                                      \
  template Matrix<T> msattn<T>(const Matrix<T>&, const Weights<T>&, const T&, const Mask<T>&);                     \
  template Matrix<T> bilinear_scores<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&);           \
  template Matrix<T> pack_qkv<T>(const Fused<T>&, Index, Packing);                                                 \
  template Fused<T> unpack_qkv<T>(const Matrix<T>&, Index, Index, Index, Packing);

#define ATTEST_INSTANTIATE_MULTIHEAD(T)                                                                                \
  template Weights<T> head_of<T>(const MultiheadWeights<T>&, Index);                                                   \
  template Matrix<T> mmhattn<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const MultiheadWeights<T>&,      \
                                const T&, const HeadMasks<T>&);                                                        \
  template Matrix<T> mhattn<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const MultiheadWeights<T>&,       \
                               const T&);                                                                              \
  template Matrix<T> mmhsattn<T>(const Matrix<T>&, const MultiheadWeights<T>&, const T&, const HeadMasks<T>&);         \
  template Matrix<T> mhsattn<T>(const Matrix<T>&, const MultiheadWeights<T>&, const T&);                               \
  template std::vector<AttentionResult<T>> head_outputs<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&,       \
                                                           const MultiheadWeights<T>&, const T&, const HeadMasks<T>&); \
  template Matrix<T> join_heads<T>(const std::vector<Matrix<T>>&, const std::optional<Matrix<T>>&,                     \
                                   const std::optional<Vector<T>>&);                                                   \
  template Matrix<T> mmhattn_as_sum<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&,                           \
                                       const MultiheadWeights<T>&, const T&, const HeadMasks<T>&);                     \
  template std::vector<Matrix<T>> mmhattn_batch<T>(const std::vector<Matrix<T>>&, const std::vector<Matrix<T>>&,       \
                                                   const std::vector<Matrix<T>>&, const MultiheadWeights<T>&,          \
                                                   const T&, const MaskStack<T>&);                                     \
  template MultiheadWeights<T> from_torch<T>(const TorchMultihead<T>&);

#define ATTEST_INSTANTIATE_COLUMNS(T)                                                                            \
  template ColumnWeights<T> columns_of<T>(const Weights<T>&);                                                    \
  template Matrix<T> attention_columns<T>(const Matrix<T>&, const Matrix<T>&, const Matrix<T>&, const T&,        \
                                          const std::optional<BoolMatrix>&);                                     \
  template Matrix<T> attn_w_columns<T>(const Matrix<T>&, const Matrix<T>&, const ColumnWeights<T>&, const T&,    \
                                       const std::optional<BoolMatrix>&);                                        \
  template Vector<T> single_query<T>(const Vector<T>&, const Matrix<T>&, const ColumnWeights<T>&, const T&);     \
  template Matrix<T> mhattn_columns<T>(const Matrix<T>&, const Matrix<T>&, const std::vector<ColumnWeights<T>>&, \
                                       const Matrix<T>&, const std::optional<Vector<T>>&, const T&,              \
                                       const std::optional<BoolMatrix>&);

#define ATTEST_INSTANTIATE_POSITION(T)                                                                           \
  template Matrix<T> with_positions<T>(const Matrix<T>&, const Matrix<T>&);                                      \
  template Matrix<T> parameter_free<T>(const Matrix<T>&);                                                        \
  template Matrix<T> shared_projection<T>(const Matrix<T>&, const Matrix<T>&);                                   \
  template Matrix<T> unscaled_sattn<T>(const Matrix<T>&, const Weights<T>&);                                     \
  template Matrix<T> multihead_v1<T>(const Matrix<T>&, const std::vector<PositionedHead<T>>&,                    \
                                     const std::optional<Matrix<T>>&, const std::optional<Vector<T>>&, const T&, \
                                     const Mask<T>&);

#define ATTEST_INSTANTIATE_CORE(T) \
  ATTEST_INSTANTIATE_MATRIX(T)     \
  ATTEST_INSTANTIATE_SOFTMAX(T)    \
  ATTEST_INSTANTIATE_ATTENTION(T)  \
  ATTEST_INSTANTIATE_GRADIENTS(T)  \
  ATTEST_INSTANTIATE_PROJECTION(T) \
  ATTEST_INSTANTIATE_MULTIHEAD(T)  \
  ATTEST_INSTANTIATE_COLUMNS(T)    \
  ATTEST_INSTANTIATE_POSITION(T)
// NOLINTEND(bugprone-macro-parentheses)
