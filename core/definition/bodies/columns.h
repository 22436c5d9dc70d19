// Definitions of columns.h; see instantiate.h.
#pragma once

#include "core/definition/bodies/matrix.h"
#include "core/definition/bodies/softmax.h"
#include "core/definition/columns.h"
#include "core/definition/matrices.h"

namespace attest {

template <Scalar T>
ColumnWeights<T> columns_of(const Weights<T>& rows) {
  const auto turned = [](const Projection<T>& w) {
    return Projection<T>{.weight = transposed(w.weight), .bias = w.bias};
  };
  return {.q = turned(rows.q), .k = turned(rows.k), .v = turned(rows.v)};
}

/// W X + b 1^T.
template <Scalar T>
Matrix<T> project_columns(const Matrix<T>& x, const Matrix<T>& w, const std::optional<Vector<T>>& b) {
  Matrix<T> y = product(w, x);
  if (!b) return y;
  if (b->size() != y.rows()) {
    throw UsageError("the bias has " + std::to_string(b->size()) + " entries and its matrix is " + size_text(y) +
                     ": in the column convention it needs one entry per row");
  }
  for (Index c = 0; c < y.rows(); ++c)
    for (Index t = 0; t < y.cols(); ++t) y(c, t) = y(c, t) + (*b)(c);
  return y;
}

template <Scalar T>
Matrix<T> attention_columns(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale,
                            const std::optional<BoolMatrix>& allowed) {
  using Traits = ScalarTraits<T>;
  const Index queries = q.cols(), keys = k.cols();
  if (q.rows() != k.rows() || v.cols() != keys || keys == 0) {
    throw UsageError("Q " + size_text(q) + ", K " + size_text(k) + " and V " + size_text(v) +
                     " do not fit: in the column convention they are dk x M, dk x N and dv x N with N at least 1");
  }
  if (allowed && (allowed->rows() != keys || allowed->cols() != queries)) {
    throw UsageError("the mask is " + size_text(*allowed) + ", the scores are " + std::to_string(keys) + "x" +
                     std::to_string(queries) + ": in the column convention a mask is keys x queries");
  }
  Matrix<T> s(keys, queries);
  for (Index key = 0; key < keys; ++key) {
    for (Index query = 0; query < queries; ++query) {
      if (allowed && !(*allowed)(key, query)) {
        s(key, query) = Traits::minus_infinity();
        continue;
      }
      T sum = Traits::from_double(0.0);
      for (Index c = 0; c < q.rows(); ++c) sum = c == 0 ? T(k(c, key) * q(c, query)) : T(sum + k(c, key) * q(c, query));
      s(key, query) = scale * sum;
    }
  }
  const Matrix<T> weights = softmax_columns(s);
  Matrix<T> out(v.rows(), queries);
  for (Index query = 0; query < queries; ++query) {
    for (Index c = 0; c < v.rows(); ++c) {
      bool any = false;
      out(c, query) = Traits::undefined();
      for (Index key = 0; key < keys; ++key) {
        if (Traits::is_minus_infinity(s(key, query))) continue;
        const T term = v(c, key) * weights(key, query);
        out(c, query) = any ? T(out(c, query) + term) : term;
        any = true;
      }
    }
  }
  return out;
}

template <Scalar T>
Matrix<T> attn_w_columns(const Matrix<T>& x, const Matrix<T>& z, const ColumnWeights<T>& w, const T& scale,
                         const std::optional<BoolMatrix>& allowed) {
  return attention_columns(project_columns(x, w.q.weight, w.q.bias), project_columns(z, w.k.weight, w.k.bias),
                           project_columns(z, w.v.weight, w.v.bias), scale, allowed);
}

template <Scalar T>
Vector<T> single_query(const Vector<T>& x, const Matrix<T>& z, const ColumnWeights<T>& w, const T& scale) {
  return attn_w_columns(Matrix<T>(x), z, w, scale, std::optional<BoolMatrix>()).col(0);
}

template <Scalar T>
Matrix<T> mhattn_columns(const Matrix<T>& x, const Matrix<T>& z, const std::vector<ColumnWeights<T>>& heads,
                         const Matrix<T>& w_o, const std::optional<Vector<T>>& b_o, const T& scale,
                         const std::optional<BoolMatrix>& allowed) {
  std::vector<Matrix<T>> outputs;
  outputs.reserve(heads.size());
  for (const ColumnWeights<T>& head : heads) outputs.push_back(attn_w_columns(x, z, head, scale, allowed));
  return project_columns(above(outputs), w_o, b_o);
}

}  // namespace attest
