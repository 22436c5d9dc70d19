// Definitions of matrix.h; see instantiate.h.
#pragma once

#include "core/definition/matrix.h"
#include "core/problem/problem.h"

namespace attest {

template <Scalar T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  if (a.cols() != b.rows()) {
    throw UsageError("cannot multiply a " + size_text(a) + " matrix by a " + size_text(b) +
                     " one: the columns of the first must be the rows of the second");
  }
  Matrix<T> c(a.rows(), b.cols());
  for (Index i = 0; i < c.rows(); ++i) {
    for (Index j = 0; j < c.cols(); ++j)
      c(i, j) = a.cols() == 0 ? ScalarTraits<T>::from_double(0.0) : T(a(i, 0) * b(0, j));
    for (Index l = 1; l < a.cols(); ++l)
      for (Index j = 0; j < c.cols(); ++j) c(i, j) = c(i, j) + a(i, l) * b(l, j);
  }
  return c;
}

}  // namespace attest
