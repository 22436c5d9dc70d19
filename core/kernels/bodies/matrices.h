// The core's functions of matrices: softmax, products, and 003's ladder on one matrix.
#pragma once

#include "core/definition/matrix.h"
#include "core/definition/position.h"
#include "core/definition/softmax.h"
#include "core/kernels/core_numbers.h"

namespace attest::detail {
template <class T>
Values core_softmax_rows(const Tensor& a) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(softmax_rows(matrix_of<T>(a)));
}
template <class T>
Values core_softmax_columns(const Tensor& a) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(softmax_columns(matrix_of<T>(a)));
}
template <class T>
Values core_product(const Tensor& a, const Tensor& b) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(product(matrix_of<T>(a), matrix_of<T>(b)));
}
template <class T>
Values core_parameter_free(const Tensor& x) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(parameter_free(matrix_of<T>(x)));
}
template <class T>
Values core_shared_projection(const Tensor& x, const Tensor& u) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(shared_projection(matrix_of<T>(x), matrix_of<T>(u)));
}
template <class T>
Values core_with_positions(const Tensor& x, const Tensor& table) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(with_positions(matrix_of<T>(x), matrix_of<T>(table)));
}

template <class T>
void set_matrix_functions(CoreFunctions& f) {
  f.softmax_rows = core_softmax_rows<T>;
  f.softmax_columns = core_softmax_columns<T>;
  f.product = core_product<T>;
  f.parameter_free = core_parameter_free<T>;
  f.shared_projection = core_shared_projection<T>;
  f.with_positions = core_with_positions<T>;
}

}  // namespace attest::detail
