// Definitions of softmax.h; see instantiate.h.
#pragma once

#include <vector>

#include "core/definition/softmax.h"

namespace attest {

template <Scalar T>
Exponentials<T> exponentials(const Vector<T>& x, const std::optional<T>& sink) {
  using Traits = ScalarTraits<T>;
  std::vector<T> visible;
  visible.reserve(static_cast<std::size_t>(x.size()));
  for (const T& entry : entries_of(x))
    if (!Traits::is_minus_infinity(entry)) visible.push_back(entry);
  const bool sinks = sink && !Traits::is_minus_infinity(*sink);
  if (sinks) visible.push_back(*sink);

  const T zero = Traits::from_double(0.0);
  Exponentials<T> e{.reference = Traits::minus_infinity(), .sum = zero, .terms = Vector<T>(x.size()), .empty = true};
  if (!visible.empty()) e.reference = Traits::reference_point(std::span<const T>(visible));
  for (Index j = 0; j < x.size(); ++j) {
    if (Traits::is_minus_infinity(x(j))) {
      e.terms(j) = zero;
      continue;
    }
    e.terms(j) = Traits::exp(x(j) - e.reference);
    e.sum = e.empty ? e.terms(j) : T(e.sum + e.terms(j));
    e.empty = false;
  }
  if (sinks) {
    const T term = Traits::exp(*sink - e.reference);
    e.sum = e.empty ? term : T(e.sum + term);
    e.empty = false;
  }
  return e;
}

/// The weights of one row; the row's policy where it is empty.
template <Scalar T>
Vector<T> normalised(const Exponentials<T>& e) {
  static_assert(core_fully_masked_row == FullyMaskedRow::nan);
  Vector<T> weights(e.terms.size());
  for (Index j = 0; j < weights.size(); ++j)
    weights(j) = e.empty ? ScalarTraits<T>::undefined() : T(e.terms(j) / e.sum);
  return weights;
}

template <Scalar T>
Vector<T> softmax(const Vector<T>& x) {
  return normalised(exponentials(x));
}

template <Scalar T>
Matrix<T> softmax_rows(const Matrix<T>& a) {
  Matrix<T> weights(a.rows(), a.cols());
  for (Index i = 0; i < a.rows(); ++i) weights.row(i) = softmax<T>(a.row(i).transpose()).transpose();
  return weights;
}

template <Scalar T>
Matrix<T> softmax_columns(const Matrix<T>& a) {
  Matrix<T> weights(a.rows(), a.cols());
  if (a.size() == 0) return weights;
  for (Index j = 0; j < a.cols(); ++j) weights.col(j) = softmax<T>(a.col(j));
  return weights;
}

}  // namespace attest
