// The identities that the proofs rest on, over matrices of any entries: the core's scalars, and rationals, where a
// product is exact.
#pragma once

#include <string>
#include <vector>

#include "core/definition/matrices.h"

namespace attest {

/// The core's rearrangements; a test puts broken ones in their place.
struct CoreLayout {
  template <class T>
  static Matrix<T> without_row(const Matrix<T>& a, Index i) {
    return attest::without_row(a, i);
  }
  template <class T>
  static Matrix<T> without_column(const Matrix<T>& a, Index s) {
    return attest::without_column(a, s);
  }
  template <class T>
  static Matrix<T> transposed(const Matrix<T>& a) {
    return attest::transposed(a);
  }
  template <class T>
  static Matrix<T> beside(const Matrix<T>& a, const Matrix<T>& b) {
    return attest::beside(std::vector<Matrix<T>>{a, b});
  }
  static Index fused(Index a, Index i, Index p) { return fused_index(a, i, p); }
};

/// AB summed in the core's order, for entries of any kind.
template <class T>
[[nodiscard]] Matrix<T> plain_product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> c(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < b.cols(); ++j) {
      T sum = T(0);
      for (Index l = 0; l < a.cols(); ++l) sum = l == 0 ? T(a(i, l) * b(l, j)) : T(sum + a(i, l) * b(l, j));
      c(i, j) = sum;
    }
  }
  return c;
}

/// layout.deletion-identities for A (M x p), K (N x p) and B (N x q), row i of A and s of K and B; the one that fails,
/// or empty. same(x, y): equal entries. 1_M b^T is made of the first row of B.
template <class Layout, class T, class Same>
[[nodiscard]] std::string broken_deletion_identity(const Matrix<T>& a, const Matrix<T>& k, const Matrix<T>& b, Index i,
                                                   Index s, Same&& same) {
  const auto equal = [&](const Matrix<T>& x, const Matrix<T>& y) {
    if (x.rows() != y.rows() || x.cols() != y.cols()) return false;
    for (Index r = 0; r < x.rows(); ++r)
      for (Index c = 0; c < x.cols(); ++c)
        if (!same(x(r, c), y(r, c))) return false;
    return true;
  };
  const auto stacked = [&](Index rows) {
    Matrix<T> m(rows, b.cols());
    for (Index r = 0; r < rows; ++r) m.row(r) = b.row(0);
    return m;
  };
  const Index M = a.rows();
  Matrix<T> unit(M, M);
  for (Index r = 0; r < M; ++r)
    for (Index c = 0; c < M; ++c) unit(r, c) = T(r == c ? 1 : 0);
  if (!equal(Layout::without_row(a, i), plain_product(Layout::without_row(unit, i), a))) return "A^(i) = I^(i)A";
  const Matrix<T> kt = Layout::transposed(k);
  if (!equal(Layout::without_row(plain_product(a, kt), i), plain_product(Layout::without_row(a, i), kt)))
    return "(AB)^(i) = A^(i)B";
  if (!equal(Layout::without_column(kt, s), Layout::transposed(Layout::without_row(k, s))))
    return "(K^T)^[s] = (K^(s))^T";
  if (!equal(Layout::without_row(stacked(M), i), stacked(M - 1))) return "(1_M b^T)^(i) = 1_{M-1} b^T";
  if (!equal(Layout::without_row(Layout::beside(k, b), s),
             Layout::beside(Layout::without_row(k, s), Layout::without_row(b, s))))
    return "[A|B]^(i) = [A^(i)|B^(i)]";
  return {};
}

/// layout.index-fusion: a tensor whose indices a and i are fused, i below `p`, is the same memory. `memory` holds
/// entries of [a, i, j] row-major; the fused one is [(a i), j]. Empty, or the entry that is not where it belongs.
template <class Layout, class T, class Same>
[[nodiscard]] std::string broken_fusion(const std::vector<T>& memory, Index blocks, Index p, Index columns,
                                        Same&& same) {
  const Matrix<T> line = Eigen::Map<const Matrix<T>>(memory.data(), 1, blocks * p * columns);
  const Matrix<T> fused = reshaped(line, blocks * p, columns);
  for (Index a = 0; a < blocks; ++a) {
    for (Index i = 0; i < p; ++i) {
      for (Index j = 0; j < columns; ++j) {
        const Index row = Layout::fused(a, i, p), at = Layout::fused(row, j, columns);
        if (row < 0 || row >= blocks * p || at < 0 || at >= line.cols() || !same(fused(row, j), line(0, at)) ||
            !same(fused(row, j), memory[static_cast<std::size_t>((a * p + i) * columns + j)]))
          return "entry (" + std::to_string(a) + ", " + std::to_string(i) + ", " + std::to_string(j) + ")";
      }
    }
  }
  return {};
}

}  // namespace attest
