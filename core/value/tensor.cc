#include "core/value/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace attest {
namespace {

/// What the view of a present tensor without elements points at: kernel.h's NULL means absent.
alignas(std::max_align_t) std::byte no_elements[sizeof(std::max_align_t)];

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  assert(extents.size() <= extent_.size());
  std::copy(extents.begin(), extents.end(), extent_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(extent_.begin(), extent_.begin() + rank_, ", "));
}

std::string index_text(std::int64_t element, const Shape& shape) {
  const auto along = shape.index_of(element);
  return Shape(std::span<const std::int64_t>(along).first(static_cast<std::size_t>(shape.rank()))).to_string();
}

Tensor::Tensor(DType dtype, const Shape& shape)
    : present_(true),
      dtype_(dtype),
      shape_(shape),
      bytes_(static_cast<std::size_t>(shape.elements()) * size_of(dtype)) {}

Tensor::Tensor(DType dtype, const Shape& shape, std::span<const double> values) : Tensor(dtype, shape) {
  assert(values.size() == static_cast<std::size_t>(elements()));
  store_range(bytes_.data(), dtype, 0, elements(), values.data());
}

Tensor Tensor::reshaped(const Shape& shape) const& {
  return Tensor(*this).reshaped(shape);
}

Tensor Tensor::reshaped(const Shape& shape) && {
  assert(shape.elements() == elements());
  shape_ = shape;
  return std::move(*this);
}

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values;
  decode(view(), values);
  return values;
}

attest_tensor Tensor::view() const {
  attest_tensor view{};
  if (!present_) return view;
  // kernel.h has one structure for what is read and what is written; only the owner of a non-const tensor may write.
  view.data = bytes_.empty() ? no_elements : const_cast<std::byte*>(bytes_.data());
  view.dtype = static_cast<std::int32_t>(dtype_);
  view.rank = shape_.rank();
  std::int64_t stride = 1;
  for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
    view.shape[axis] = shape_[axis];
    view.stride[axis] = stride;
    stride *= shape_[axis];
  }
  return view;
}

namespace {

/// Extents and strides of a view as four axes: axes of 1 are put in front.
struct FourAxes {
  std::int64_t shape[4] = {1, 1, 1, 1};
  std::int64_t stride[4] = {0, 0, 0, 0};
  explicit FourAxes(const attest_tensor& view) {
    for (int axis = 0; axis < view.rank; ++axis) {
      shape[4 - view.rank + axis] = view.shape[axis];
      stride[4 - view.rank + axis] = view.stride[axis];
    }
  }
};

/// Calls row(offset of the row's first element) for each last-axis row, in row-major order.
template <class Row>
void for_each_row(const FourAxes& axes, Row row) {
  for (std::int64_t i = 0; i < axes.shape[0]; ++i) {
    for (std::int64_t j = 0; j < axes.shape[1]; ++j) {
      for (std::int64_t k = 0; k < axes.shape[2]; ++k) {
        row(i * axes.stride[0] + j * axes.stride[1] + k * axes.stride[2]);
      }
    }
  }
}

}  // namespace

void decode(const attest_tensor& view, std::vector<double>& values) {
  values.clear();
  if (view.data == nullptr) return;
  const FourAxes axes(view);
  values.resize(static_cast<std::size_t>(axes.shape[0] * axes.shape[1] * axes.shape[2] * axes.shape[3]));
  const auto dtype = static_cast<DType>(view.dtype);
  double* next = values.data();
  for_each_row(axes, [&](std::int64_t offset) {
    if (axes.stride[3] == 1) {
      load_range(view.data, dtype, offset, axes.shape[3], next);
      next += axes.shape[3];
    } else {
      for (std::int64_t l = 0; l < axes.shape[3]; ++l)
        *next++ = load_element(view.data, dtype, offset + l * axes.stride[3]);
    }
  });
}

Tensor gather(const attest_tensor& view) {
  if (view.data == nullptr) return {};
  const auto dtype = static_cast<DType>(view.dtype);
  Tensor tensor(dtype, Shape(std::span(view.shape, static_cast<std::size_t>(view.rank))));
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  const FourAxes axes(view);
  const auto* from = static_cast<const std::byte*>(view.data);
  std::byte* to = tensor.bytes().data();
  for_each_row(axes, [&](std::int64_t offset) {
    if (axes.stride[3] == 1) {
      if (axes.shape[3] == 0) return;
      std::memcpy(to, from + offset * size, static_cast<std::size_t>(axes.shape[3] * size));
      to += axes.shape[3] * size;
      return;
    }
    for (std::int64_t l = 0; l < axes.shape[3]; ++l, to += size) {
      std::memcpy(to, from + (offset + l * axes.stride[3]) * size, static_cast<std::size_t>(size));
    }
  });
  return tensor;
}

}  // namespace attest
