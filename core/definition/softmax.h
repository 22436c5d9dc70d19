// Softmax, row-wise (000, 001, 003, 004) and column-wise (002), and the exponentials it is made of.
#pragma once

#include <optional>

#include "core/definition/matrix.h"
#include "core/problem/fully_masked_row.h"

namespace attest {

/// What the core answers where a mask hides every key of a row, which the documents leave undefined: every weight,
/// output and log-sum-exp of that row is ScalarTraits<T>::undefined().
inline constexpr FullyMaskedRow core_fully_masked_row = FullyMaskedRow::nan;

/// The exponentials of one row x about a reference point r: terms_j = e^(x_j - r), exactly 0 where x_j is -inf (nothing
/// is computed there), and their sum. A row without any entry above -inf is empty: reference -inf, sum 0. A sink is one
/// more term of the sum, the last one, and no entry: a row that has nothing else is not empty.
template <Scalar T>
struct Exponentials {
  T reference;
  T sum;
  Vector<T> terms;
  bool empty;
};
template <Scalar T>
[[nodiscard]] Exponentials<T> exponentials(const Vector<T>& x, const std::optional<T>& sink = std::nullopt);

/// softmax(x)_j = e^(x_j) / sum_l e^(x_l) (000); entries equal to -inf get exactly 0. Empty row: see above.
template <Scalar T>
[[nodiscard]] Vector<T> softmax(const Vector<T>& x);

/// softmax applied to each row (000).
template <Scalar T>
[[nodiscard]] Matrix<T> softmax_rows(const Matrix<T>& a);

/// softmax applied to each column (002); equals softmax_rows(a^T)^T bit for bit (softmax.columnwise-is-transpose).
template <Scalar T>
[[nodiscard]] Matrix<T> softmax_columns(const Matrix<T>& a);

}  // namespace attest
