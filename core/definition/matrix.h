// Matrices of the core: Eigen's storage, row-major; sums written out in one stated order.
#pragma once

#include <Eigen/Core>
#include <span>
#include <string>

#include "core/definition/scalar.h"
#include "core/support/errors.h"

namespace attest {

using Index = Eigen::Index;
/// m x n, row-major, sizes at run time, either of which may be 0.
template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
/// true: the key may be attended.
using BoolMatrix = Matrix<bool>;

// Order of summation, everywhere in the core: the terms in ascending index, added one by one to the first. So a sum of
// one term is that term, and leaving out terms at the end leaves the bits of the rest. (Eigen's own products add in an
// order that depends on size and alignment.)

/// Row i, or all entries, as a range; the matrix must outlive it, so a temporary is not taken.
template <class T>
[[nodiscard]] std::span<const T> row_of(const Matrix<T>& a, Index i) {
  return {a.data() + i * a.cols(), static_cast<std::size_t>(a.cols())};
}
template <class T>
[[nodiscard]] std::span<T> row_of(Matrix<T>& a, Index i) {
  return {a.data() + i * a.cols(), static_cast<std::size_t>(a.cols())};
}
template <class T>
std::span<const T> row_of(const Matrix<T>&& a, Index i) = delete;
template <class T>
[[nodiscard]] std::span<const T> entries_of(const Vector<T>& a) {
  return {a.data(), static_cast<std::size_t>(a.size())};
}
template <class T>
[[nodiscard]] std::span<T> entries_of(Vector<T>& a) {
  return {a.data(), static_cast<std::size_t>(a.size())};
}

template <class T>
std::span<const T> entries_of(const Vector<T>&& a) = delete;

/// Sum of a_l b_l in the order above; 0 for empty ranges. Both have the same length.
template <Scalar T>
[[nodiscard]] T dot(std::span<const T> a, std::span<const T> b) {
  if (a.empty()) return ScalarTraits<T>::from_double(0.0);
  T sum = a[0] * b[0];
  for (std::size_t l = 1; l < a.size(); ++l) sum = sum + a[l] * b[l];
  return sum;
}

/// "3x4"
template <class T>
[[nodiscard]] std::string size_text(const Matrix<T>& a) {
  return std::to_string(a.rows()) + "x" + std::to_string(a.cols());
}

/// AB for A m x l and B l x n. Throws UsageError naming both sizes where the inner ones differ.
template <Scalar T>
[[nodiscard]] Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b);

}  // namespace attest
