// What tests compute about a case without asking the code under test.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/support/fnv1a.h"
#include "core/test/reference_attention.h"

namespace attest {

/// scale·q.k + bias of row i and key j, in double; -inf where mask or causal form hides the key.
inline double score(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  return test::reference_score<double>(c, b, h, i, j);
}

/// FNV-1a of everything that a kernel sees.
inline std::uint64_t hash_of(const Case& c) {
  std::uint64_t hash = fnv1a_start;
  const auto add = [&](std::uint64_t byte) { hash = fnv1a(hash, byte); };
  const auto add_number = [&](std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) add(number >> (8 * byte) & 0xff);
  };
  const auto add_integer = [&](std::int64_t number) { add_number(static_cast<std::uint64_t>(number)); };
  // By name, and without what is neutral: a new argument changes no hash of a case that does not have it.
  const auto add_name = [&](std::string_view name) {
    for (const char letter : name) add(static_cast<unsigned char>(letter));
  };
  for (const TensorField& field : tensor_fields) {
    const Tensor& tensor = c[field.slot];
    if (!tensor.present()) continue;
    add_name(field.name());
    add_integer(static_cast<std::int64_t>(tensor.dtype()));
    add_integer(tensor.shape().rank());
    for (int axis = 0; axis < 4; ++axis) add_integer(tensor.shape()[axis]);
    for (const std::byte byte : tensor.bytes()) add(std::to_integer<std::uint64_t>(byte));
  }
  add_integer(static_cast<std::int64_t>(c.operation));
  add_integer(c.pool), add_integer(c.append);
  for_each_scalar(c.operation, [&](const auto& field) {
    if (c.*field.member == field.neutral) return;
    add_name(field.name);
    add_number(std::bit_cast<std::uint64_t>(static_cast<double>(c.*field.member)));
  });
  return hash;
}

}  // namespace attest
