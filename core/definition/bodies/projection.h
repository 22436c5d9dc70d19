// Definitions of projection.h; see instantiate.h.
#pragma once

#include "core/definition/bodies/attention.h"
#include "core/definition/bodies/matrix.h"
#include "core/definition/matrices.h"
#include "core/definition/projection.h"

namespace attest {

/// Adds b to every row: A + 1b^T.
template <Scalar T>
Matrix<T> plus_bias(Matrix<T> a, const std::optional<Vector<T>>& bias) {
  if (!bias) return a;
  if (bias->size() != a.cols()) {
    throw UsageError("the bias has " + std::to_string(bias->size()) + " entries and its matrix is " + size_text(a) +
                     ": it needs one entry per column");
  }
  for (Index i = 0; i < a.rows(); ++i)
    for (Index c = 0; c < a.cols(); ++c) a(i, c) = a(i, c) + (*bias)(c);
  return a;
}

template <Scalar T>
Matrix<T> project(const Matrix<T>& x, const Projection<T>& w) {
  return plus_bias(product(x, w.weight), w.bias);
}

template <Scalar T>
Matrix<T> attn_w(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const Weights<T>& w, const T& scale) {
  return attention(project(q, w.q), project(k, w.k), project(v, w.v), scale);
}

template <Scalar T>
Matrix<T> mattn_w(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const Weights<T>& w, const T& scale,
                  const Mask<T>& mask) {
  return mattn(project(q, w.q), project(k, w.k), project(v, w.v), scale, mask);
}

template <Scalar T>
Matrix<T> sattn(const Matrix<T>& x, const Weights<T>& w, const T& scale) {
  return attn_w(x, x, x, w, scale);
}

template <Scalar T>
Matrix<T> msattn(const Matrix<T>& x, const Weights<T>& w, const T& scale, const Mask<T>& mask) {
  return mattn_w(x, x, x, w, scale, mask);
}

template <Scalar T>
Matrix<T> bilinear_scores(const Matrix<T>& x, const Matrix<T>& w_q, const Matrix<T>& w_k, const T& scale) {
  Matrix<T> s = product(product(x, product(w_q, transposed(w_k))), transposed(x));
  for (Index i = 0; i < s.rows(); ++i)
    for (Index j = 0; j < s.cols(); ++j) s(i, j) = scale * s(i, j);
  return s;
}

template <Scalar T>
Matrix<T> pack_qkv(const Fused<T>& parts, Index heads, Packing packing) {
  if (packing == Packing::blocks) return beside<T>({parts.q, parts.k, parts.v});
  const std::vector<Matrix<T>> q = split_columns(parts.q, heads), k = split_columns(parts.k, heads),
                               v = split_columns(parts.v, heads);
  std::vector<Matrix<T>> all;
  for (std::size_t m = 0; m < q.size(); ++m) all.insert(all.end(), {q[m], k[m], v[m]});
  return beside(all);
}

template <Scalar T>
Fused<T> unpack_qkv(const Matrix<T>& packed, Index heads, Index dk, Index dv, Packing packing) {
  if (heads < 1 || packed.cols() != heads * (2 * dk + dv)) {
    throw UsageError("a packed projection of size " + size_text(packed) + " cannot hold " + std::to_string(heads) +
                     " heads with dk = " + std::to_string(dk) + " and dv = " + std::to_string(dv) + ": it needs " +
                     std::to_string(heads * (2 * dk + dv)) + " columns");
  }
  if (packing == Packing::blocks) {
    return {.q = columns_from(packed, 0, heads * dk),
            .k = columns_from(packed, heads * dk, heads * dk),
            .v = columns_from(packed, 2 * heads * dk, heads * dv)};
  }
  std::vector<Matrix<T>> q, k, v;
  for (const Matrix<T>& head : split_columns(packed, heads)) {
    q.push_back(columns_from(head, 0, dk));
    k.push_back(columns_from(head, dk, dk));
    v.push_back(columns_from(head, 2 * dk, dv));
  }
  return {.q = beside(q), .k = beside(k), .v = beside(v)};
}

}  // namespace attest
