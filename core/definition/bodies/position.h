// Definitions of position.h; see instantiate.h.
#pragma once

#include "core/definition/bodies/multihead.h"
#include "core/definition/position.h"

namespace attest {

template <Scalar T>
Matrix<T> with_positions(const Matrix<T>& x, const Matrix<T>& table) {
  if (x.rows() > table.rows()) {
    throw UsageError("the sequence has " + std::to_string(x.rows()) + " tokens and the position table " +
                     std::to_string(table.rows()) + ": absolute positions end at the context length");
  }
  if (x.cols() != table.cols()) {
    throw UsageError("X is " + size_text(x) + " and the position table " + size_text(table) +
                     ": both need the same number of columns");
  }
  Matrix<T> y = x;
  for (Index i = 0; i < y.rows(); ++i)
    for (Index c = 0; c < y.cols(); ++c) y(i, c) = y(i, c) + table(i, c);
  return y;
}

template <Scalar T>
Matrix<T> parameter_free(const Matrix<T>& x) {
  return attention(x, x, x, ScalarTraits<T>::from_double(1.0));
}

template <Scalar T>
Matrix<T> shared_projection(const Matrix<T>& x, const Matrix<T>& u) {
  return parameter_free(product(x, u));
}

template <Scalar T>
Matrix<T> unscaled_sattn(const Matrix<T>& x, const Weights<T>& w) {
  return sattn(x, w, ScalarTraits<T>::from_double(1.0));
}

template <Scalar T>
Matrix<T> multihead_v1(const Matrix<T>& x, const std::vector<PositionedHead<T>>& heads,
                       const std::optional<Matrix<T>>& w_o, const std::optional<Vector<T>>& b_o, const T& scale,
                       const Mask<T>& mask) {
  std::vector<Matrix<T>> outputs;
  for (const PositionedHead<T>& head : heads) {
    const Matrix<T> input = head.positions ? with_positions(x, *head.positions) : x;
    outputs.push_back(msattn(input, head.weights, scale, mask));
  }
  return join_heads(outputs, w_o, b_o);
}

}  // namespace attest
