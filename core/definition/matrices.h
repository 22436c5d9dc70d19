// Rearrangements of matrices: what the theorems are stated with and their proofs rest on (000, notation; 001, index
// fusion). They move entries and compute nothing, so they are the same for every entry type.
#pragma once

#include <numeric>
#include <vector>

#include "core/definition/matrix.h"
#include "core/problem/problem.h"

namespace attest {

// Blocks of a matrix without entries are not formed: Eigen would offset the null pointer of its data.

/// Rows of a in the order named; repeats and omissions allowed. rows_at(a, pi) is R_pi a: row i of it is row pi[i] of
/// a.
template <class T>
[[nodiscard]] Matrix<T> rows_at(const Matrix<T>& a, const std::vector<Index>& rows) {
  Matrix<T> b(static_cast<Index>(rows.size()), a.cols());
  if (b.size() == 0) return b;
  for (Index i = 0; i < b.rows(); ++i) b.row(i) = a.row(rows[static_cast<std::size_t>(i)]);
  return b;
}
/// Columns likewise: A C_pi.
template <class T>
[[nodiscard]] Matrix<T> columns_at(const Matrix<T>& a, const std::vector<Index>& columns) {
  Matrix<T> b(a.rows(), static_cast<Index>(columns.size()));
  if (b.size() == 0) return b;
  for (Index j = 0; j < b.cols(); ++j) b.col(j) = a.col(columns[static_cast<std::size_t>(j)]);
  return b;
}
/// Columns first .. first + count - 1.
template <class T>
[[nodiscard]] Matrix<T> columns_from(const Matrix<T>& a, Index first, Index count) {
  if (a.size() == 0) return Matrix<T>(a.rows(), count);
  return a.middleCols(first, count);
}

/// 0 .. n-1 without i; all of it where i is not among them.
[[nodiscard]] inline std::vector<Index> all_but(Index n, Index i) {
  std::vector<Index> rest(static_cast<std::size_t>(n));
  std::iota(rest.begin(), rest.end(), Index{0});
  std::erase(rest, i);
  return rest;
}
/// A^(i): without row i.
template <class T>
[[nodiscard]] Matrix<T> without_row(const Matrix<T>& a, Index i) {
  return rows_at(a, all_but(a.rows(), i));
}
/// A^[s]: without column s.
template <class T>
[[nodiscard]] Matrix<T> without_column(const Matrix<T>& a, Index s) {
  return columns_at(a, all_but(a.cols(), s));
}

/// A^T.
template <class T>
[[nodiscard]] Matrix<T> transposed(const Matrix<T>& a) {
  return a.transpose();
}
/// I, n x n.
template <Scalar T>
[[nodiscard]] Matrix<T> identity(Index n) {
  return Matrix<T>::NullaryExpr(n, n,
                                [](Index i, Index j) { return ScalarTraits<T>::from_double(i == j ? 1.0 : 0.0); });
}

/// [A | B | ...]; throws UsageError where the numbers of rows differ. No part: 0 x 0.
template <class T>
[[nodiscard]] Matrix<T> beside(const std::vector<Matrix<T>>& parts) {
  Index columns = 0;
  for (const Matrix<T>& part : parts) {
    if (part.rows() != parts[0].rows())
      throw UsageError("cannot put a " + size_text(part) + " matrix beside a " + size_text(parts[0]) + " one");
    columns += part.cols();
  }
  Matrix<T> all(parts.empty() ? 0 : parts[0].rows(), columns);
  if (all.size() == 0) return all;
  Index at = 0;
  for (const Matrix<T>& part : parts) {
    all.middleCols(at, part.cols()) = part;
    at += part.cols();
  }
  return all;
}
/// [A; B; ...]; throws UsageError where the numbers of columns differ. No part: 0 x 0.
template <class T>
[[nodiscard]] Matrix<T> above(const std::vector<Matrix<T>>& parts) {
  Index rows = 0;
  for (const Matrix<T>& part : parts) {
    if (part.cols() != parts[0].cols())
      throw UsageError("cannot put a " + size_text(part) + " matrix below a " + size_text(parts[0]) + " one");
    rows += part.rows();
  }
  Matrix<T> all(rows, parts.empty() ? 0 : parts[0].cols());
  if (all.size() == 0) return all;
  Index at = 0;
  for (const Matrix<T>& part : parts) {
    all.middleRows(at, part.rows()) = part;
    at += part.rows();
  }
  return all;
}
/// A_1 .. A_n of equal width with [A_1 | ... | A_n] = a; throws UsageError where n does not divide the columns.
template <class T>
[[nodiscard]] std::vector<Matrix<T>> split_columns(const Matrix<T>& a, Index n) {
  if (n < 1 || a.cols() % n != 0) {
    throw UsageError("cannot split a " + size_text(a) + " matrix into " + std::to_string(n) +
                     " of equal width: the second number must divide the columns");
  }
  const Index width = a.cols() / n;
  std::vector<Matrix<T>> parts;
  parts.reserve(static_cast<std::size_t>(n));
  for (Index part = 0; part < n; ++part) parts.push_back(columns_from(a, part * width, width));
  return parts;
}

/// (a i) of 001: the index of entry i of p in block a, a*p + i. A tensor with fused indices is the same memory.
[[nodiscard]] constexpr Index fused_index(Index a, Index i, Index p) {
  return a * p + i;
}
/// The same entries in row-major order as rows x columns; throws UsageError where the numbers of entries differ.
template <class T>
[[nodiscard]] Matrix<T> reshaped(const Matrix<T>& a, Index rows, Index columns) {
  if (rows * columns != a.size()) {
    throw UsageError("cannot view a " + size_text(a) + " matrix as " + std::to_string(rows) + "x" +
                     std::to_string(columns) + ": the numbers of entries differ");
  }
  return Eigen::Map<const Matrix<T>>(a.data(), rows, columns);
}

}  // namespace attest
