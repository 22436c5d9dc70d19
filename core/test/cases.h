// Cases for tests: extents and where the numbers come from, or one query written out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/fields.h"

namespace attest::test {

/// Extents under the names of kernel.h; c_q .. d_o are multihead's.
struct CaseSizes {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, dk = 1, dv = 1;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t c_q = 1, c_k = 1, c_v = 1, d_o = 1;

  [[nodiscard]] std::int64_t of(Axis axis) const {
    const std::array<std::int64_t, axis_count> extents{
        batch,      heads, kv_heads == 0 ? heads : kv_heads, queries, keys, dk, dv, c_q, c_k, c_v, heads * dk,
        heads * dv, d_o};
    return extents[static_cast<std::size_t>(axis)];
  }
};

/// A tensor of next(), next(), ... in row-major order.
template <class Next>
[[nodiscard]] Tensor filled(DType dtype, const Shape& shape, Next&& next) {
  Tensor tensor(dtype, shape);
  for (std::int64_t at = 0; at < tensor.elements(); ++at) tensor.set(at, next());
  return tensor;
}

/// The named tensors, each made by tensor(slot, shape), in the order named. Scale 1, no causal form.
template <class MakeTensor>
[[nodiscard]] Case case_of(Operation operation, const CaseSizes& sizes, const std::vector<Slot>& slots,
                           MakeTensor&& tensor) {
  Case c;
  c.operation = operation;
  if (operation == Operation::multihead) c.heads = static_cast<std::int32_t>(sizes.heads);
  for (const Slot slot : slots) {
    const Axes& axes = tensor_fields[static_cast<std::size_t>(slot)].axes(operation);
    std::vector<std::int64_t> extents;
    extents.reserve(static_cast<std::size_t>(axes.rank));
    for (int axis = 0; axis < axes.rank; ++axis) extents.push_back(sizes.of(axes[axis]));
    c[slot] = tensor(slot, Shape(std::span<const std::int64_t>(extents)));
  }
  return c;
}
/// Attention's q, k and v.
template <class MakeTensor>
[[nodiscard]] Case attention_of(const CaseSizes& sizes, MakeTensor&& tensor) {
  return case_of(Operation::attention, sizes, {Slot::q, Slot::k, Slot::v}, tensor);
}

/// One query, of as many numbers as q has; keys of as many, one after another, and their values likewise; scale 1.
[[nodiscard]] inline Case one_query(DType dtype, const std::vector<double>& q, const std::vector<double>& k,
                                    const std::vector<double>& v, const std::vector<double>& mask = {}) {
  const auto dk = static_cast<std::int64_t>(q.size()), keys = static_cast<std::int64_t>(k.size()) / dk;
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, 1, dk}, q);
  c[Slot::k] = Tensor(dtype, {1, 1, keys, dk}, k);
  c[Slot::v] = Tensor(dtype, {1, 1, keys, keys == 0 ? 1 : static_cast<std::int64_t>(v.size()) / keys}, v);
  if (!mask.empty()) c[Slot::mask] = Tensor(dtype, {1, 1, 1, keys}, mask);
  return c;
}

}  // namespace attest::test
