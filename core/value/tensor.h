// Tensors: an owning, row-major tensor and the one view of a tensor (kernel.h's attest_tensor) that every kernel sees.
#pragma once

#include <attest/kernel.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/value/dtype.h"

namespace attest {

/// Extents of a tensor of rank 0 to 4. Rank 0 is a scalar, of one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::int64_t operator[](int axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  /// The flat row-major index of the element at one index along each axis.
  template <class... Index>
  [[nodiscard]] std::int64_t flat(Index... along) const {
    assert(sizeof...(Index) == static_cast<std::size_t>(rank_));
    std::int64_t element = 0;
    std::size_t axis = 0;
    ((element = element * extent_[axis++] + along), ...);
    return element;
  }
  /// The indices of the element at a flat row-major index; 0 along axes that the tensor lacks.
  [[nodiscard]] std::array<std::int64_t, 4> index_of(std::int64_t element) const {
    std::array<std::int64_t, 4> along{};
    for (std::size_t axis = static_cast<std::size_t>(rank_); axis-- > 0;) {
      along[axis] = element % extent_[axis];
      element /= extent_[axis];
    }
    return along;
  }
  /// The same with another extent of that axis.
  [[nodiscard]] Shape with(int axis, std::int64_t extent) const {
    Shape other = *this;
    other.extent_[static_cast<std::size_t>(axis)] = extent;
    return other;
  }
  /// Product of the extents; 1 for rank 0.
  [[nodiscard]] std::int64_t elements() const;
  [[nodiscard]] bool operator==(const Shape&) const = default;
  /// "[2, 1, 3, 8]"
  [[nodiscard]] std::string to_string() const;

 private:
  int rank_ = 0;
  std::array<std::int64_t, 4> extent_{};
};

/// "[0, 0, 2, 1]": the element at a flat row-major index.
[[nodiscard]] std::string index_text(std::int64_t element, const Shape& shape);

/// An owning row-major tensor of any dtype; a value type. A default-constructed one is absent.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  Tensor(DType dtype, const Shape& shape);
  /// Elements given as doubles in row-major order, each rounded once to dtype.
  Tensor(DType dtype, const Shape& shape, std::span<const double> values);

  [[nodiscard]] bool present() const { return present_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  /// 0 when absent.
  [[nodiscard]] std::int64_t elements() const { return present_ ? shape_.elements() : 0; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }
  /// Element at a flat row-major index, exact.
  [[nodiscard]] double operator[](std::int64_t index) const { return load_element(bytes_.data(), dtype_, index); }
  /// Element at one index along each axis, exact.
  template <class... Index>
  [[nodiscard]] double at(Index... along) const {
    return (*this)[shape_.flat(along...)];
  }
  /// Writes an element, rounded once to dtype.
  void set(std::int64_t index, double value) { store_element(bytes_.data(), dtype_, index, value); }
  /// The same bytes under another shape of as many elements.
  [[nodiscard]] Tensor reshaped(const Shape& shape) const&;
  [[nodiscard]] Tensor reshaped(const Shape& shape) &&;
  /// All elements as doubles, row-major.
  [[nodiscard]] std::vector<double> to_doubles() const;
  /// The view a kernel gets: row-major strides. Absent gives data == nullptr, and only absent does: a present tensor
  /// without elements points at memory that must not be read. The tensor must outlive it, and a kernel
  /// reads through a view of a const tensor only.
  [[nodiscard]] attest_tensor view() const;
  /// Same dtype, shape and bits (so NaN equals itself, +0 differs from -0).
  [[nodiscard]] bool operator==(const Tensor&) const = default;

 private:
  bool present_ = false;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

/// Offset in elements of (i0, i1, i2, i3) in a view; missing axes are 0.
[[nodiscard]] inline std::int64_t offset_in(const attest_tensor& t, std::int64_t i0, std::int64_t i1 = 0,
                                            std::int64_t i2 = 0, std::int64_t i3 = 0) {
  return i0 * t.stride[0] + i1 * t.stride[1] + i2 * t.stride[2] + i3 * t.stride[3];
}
/// All elements of a view as doubles, in row-major order whatever its strides; exact. `values` is resized (its memory
/// is used again), to nothing for an absent view.
void decode(const attest_tensor& view, std::vector<double>& values);
/// Copies a view of any strides into an owning row-major tensor, bit by bit. Absent gives absent.
[[nodiscard]] Tensor gather(const attest_tensor& view);

}  // namespace attest
