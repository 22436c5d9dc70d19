// What tests compute about a case without asking the code under test.
#pragma once

#include <cmath>
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
  const auto add = [&](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  };
  for (const Tensor& tensor : c.tensors) {
    const std::int64_t head[] = {tensor.present(),      static_cast<std::int64_t>(tensor.dtype()),
                                 tensor.shape().rank(), tensor.shape()[0],
                                 tensor.shape()[1],     tensor.shape()[2],
                                 tensor.shape()[3]};
    add(head, sizeof head);
    add(tensor.bytes().data(), tensor.bytes().size());
  }
  const std::int64_t rest[] = {static_cast<std::int64_t>(c.operation), static_cast<std::int64_t>(c.mask_convention),
                               static_cast<std::int64_t>(c.causal), c.heads};
  add(rest, sizeof rest);
  add(&c.scale, sizeof c.scale);
  return hash;
}

}  // namespace attest
