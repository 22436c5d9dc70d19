// The core's functions of an attention case.
#pragma once

#include "core/definition/attention.h"
#include "core/definition/columns.h"
#include "core/definition/matrices.h"
#include "core/kernels/core_numbers.h"

namespace attest::detail {
inline BoolMatrix bools_of(const Tensor& a) {
  return matrix_of<double>(a).unaryExpr([](double x) { return x != 0.0; });
}

/// page(q, k, v, scale, mask) of every batch entry and head.
template <class T, class Page>
Values per_head(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const attest_problem p = c.problem();
  const Index batch = p.q.shape[0], heads = p.q.shape[1], group = heads / p.k.shape[1];
  const MaskStack<T> masks = masks_of<T>(p);
  std::vector<Matrix<T>> pages;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      pages.push_back(page(matrix_at<T>(p.q, b, h), matrix_at<T>(p.k, b, h / group), matrix_at<T>(p.v, b, h / group),
                           scale_of<T>(c), masks(b, h)));
    }
  }
  return numbers_of(pages, c.out_shape());
}
template <class T>
Values core_attention(const Case& c) {
  return per_head<T>(c, mattn<T>);
}
template <class T>
Values core_attention_renormalised(const Case& c) {
  return per_head<T>(c, mattn_renormalised<T>);
}
template <class T>
Values core_attention_columns(const Case& c, const Tensor& allowed) {
  std::optional<BoolMatrix> mask;
  if (allowed.present()) mask = bools_of(allowed);
  return per_head<T>(c,
                     [&](const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale, const Mask<T>&) {
                       return transposed(attention_columns(transposed(q), transposed(k), transposed(v), scale, mask));
                     });
}

template <class T>
void set_attention_functions(CoreFunctions& f) {
  f.attention = core_attention<T>;
  f.attention_renormalised = core_attention_renormalised<T>;
  f.attention_columns = core_attention_columns<T>;
}

}  // namespace attest::detail
