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

#include "attest/definitions/attention.h"
#include "attest/definitions/matrix.h"

#define ATTEST_INSTANTIATE_MATRIX(T)                                 \
  template Matrix<T> product<T>(const Matrix<T>&, const Matrix<T>&); \
  template Matrix<T> matrix_from<T>(const Matrix<double>&);          \
  template Matrix<double> to_doubles<T>(const Matrix<T>&);

#define ATTEST_INSTANTIATE_SOFTMAX(T)                         \
  template Exponentials<T> exponentials<T>(const Vector<T>&); \
  template Vector<T> softmax<T>(const Vector<T>&);            \
  template T log_sum_exp<T>(const Vector<T>&);                \
  template Matrix<T> softmax_rows<T>(const Matrix<T>&);       \
  template Matrix<T> softmax_columns<T>(const Matrix<T>&);

#define ATTEST_INSTANTIATE_ATTENTION(T)                                                                             \
  template Matrix<T> additive_from<T>(const BoolMatrix&);                                                           \
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

#define ATTEST_INSTANTIATE_CORE(T) \
  ATTEST_INSTANTIATE_MATRIX(T)     \
  ATTEST_INSTANTIATE_SOFTMAX(T)    \
  ATTEST_INSTANTIATE_ATTENTION(T)
