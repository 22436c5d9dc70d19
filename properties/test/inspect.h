// What tests compute about a case without asking the code under test.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attest/case.h"

namespace attest {

/// scale·q.k + bias of row i and key j, in double; -inf where mask or causal form hides the key.
inline double score(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Shape &q = c.q().shape(), &k = c.k().shape();
  const std::int64_t heads = q[1], rows = q[2], dk = q[3], kv_heads = k[1], keys = k[2];
  if (c.causal == Causal::top_left && j > i) return -INFINITY;
  if (c.causal == Causal::bottom_right && j > i + keys - rows) return -INFINITY;
  double dot = 0;
  const std::int64_t row = ((b * heads + h) * rows + i) * dk,
                     key = ((b * kv_heads + h / (heads / kv_heads)) * keys + j) * dk;
  for (std::int64_t column = 0; column < dk; ++column) dot += c.q()[row + column] * c.k()[key + column];
  double bias = 0;
  if (const Tensor& mask = c.mask(); mask.present()) {
    const std::int64_t mb = mask.shape()[0] == 1 ? 0 : b, mh = mask.shape()[1] == 1 ? 0 : h;
    const double entry = mask[((mb * mask.shape()[1] + mh) * rows + i) * keys + j];
    bias = mask.dtype() != DType::boolean ? entry : entry != 0 ? 0.0 : -INFINITY;
  }
  return c.mask_convention == MaskConvention::pre_scale ? c.scale * (dot + bias) : c.scale * dot + bias;
}

/// FNV-1a of everything that a kernel sees.
inline std::uint64_t hash_of(const Case& c) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  const auto add_number = [&](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) add(number >> (8 * byte) & 0xff);
  };
  const auto add_integer = [&](std::int64_t number) { add_number(static_cast<std::uint64_t>(number)); };
  for (const Tensor& tensor : c.tensors) {
    add_integer(tensor.present());
    add_integer(static_cast<std::int64_t>(tensor.dtype()));
    add_integer(tensor.shape().rank());
    for (int axis = 0; axis < 4; ++axis) add_integer(tensor.shape()[axis]);
    for (const std::byte byte : tensor.bytes()) add(std::to_integer<std::uint64_t>(byte));
  }
  add_integer(static_cast<std::int64_t>(c.operation));
  add_integer(static_cast<std::int64_t>(c.mask_convention));
  add_integer(static_cast<std::int64_t>(c.causal));
  add_integer(c.heads);
  add_number(std::bit_cast<std::uint64_t>(c.scale));
  return hash;
}

}  // namespace attest
