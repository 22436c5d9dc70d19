#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "attest/case.h"
#include "attest/edge.h"
#include "attest/names.h"
#include "attest/strides.h"
#include "case/case_file.h"

namespace attest {
namespace {

/// Limits that no real problem meets, so that a small file cannot ask for endless loops over empty tensors or for an
/// output that fills the machine.
constexpr std::int64_t most_extent = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_heads = std::int64_t{1} << 24;  // batch times heads
constexpr std::int64_t most_out = std::int64_t{1} << 32;    // elements

template <class... T>
[[noreturn]] void refuse(fmt::format_string<T...> text, T&&... arguments) {
  throw UsageError(fmt::format(text, std::forward<T>(arguments)...));
}

/// "[0, 2, 5]", the multi-index of a flat one.
std::string index_text(const Shape& shape, std::int64_t flat) {
  std::array<std::int64_t, 4> index{};
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return Shape(std::span<const std::int64_t>(index).first(static_cast<std::size_t>(shape.rank()))).to_string();
}

/// First flat index >= `from` whose bits have all of `pattern` set; -1: none.
template <class Bits>
std::int64_t first_with(const Tensor& t, Bits pattern, std::int64_t from) {
  const std::byte* bytes = t.bytes().data();
  const auto count = t.elements();
  for (std::int64_t i = from; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
    if ((bits & pattern) == pattern) return i;
  }
  return -1;
}

/// First flat index >= `from` of a NaN or an infinity: an exponent field of ones (e4m3fn: the one NaN pattern). -1:
/// none.
std::int64_t first_non_finite(const Tensor& t, std::int64_t from) {
  switch (t.dtype()) {
    case DType::f64:
      return first_with<std::uint64_t>(t, 0x7ff0000000000000U, from);
    case DType::f32:
      return first_with<std::uint32_t>(t, 0x7f800000U, from);
    case DType::f16:
      return first_with<std::uint16_t>(t, 0x7c00U, from);
    case DType::bf16:
      return first_with<std::uint16_t>(t, 0x7f80U, from);
    case DType::f8_e4m3:
      return first_with<std::uint8_t>(t, 0x7fU, from);
    case DType::f8_e5m2:
      return first_with<std::uint8_t>(t, 0x7cU, from);
    case DType::boolean:
      return -1;
  }
  return -1;
}

void require_present(const Case& c, Slot slot) {
  if (c[slot].present()) return;
  refuse("{} is missing; {} needs {}", name_of(slot), name_of(c.operation),
         c.operation == Operation::attention ? "q, k and v" : "q, k, v, w_q, w_k and w_v");
}

void require_rank(const Case& c, Slot slot, int rank, std::string_view form) {
  require_present(c, slot);
  const Shape& shape = c[slot].shape();
  if (shape.rank() != rank) {
    refuse("{} has shape {}; {} needs {} axes, {}", name_of(slot), shape.to_string(), name_of(c.operation), rank, form);
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] > most_extent) {
      refuse("{} has shape {}; an axis is at most {} long", name_of(slot), shape.to_string(), most_extent);
    }
  }
}

void require_extent(const Case& c, Slot slot, int axis, std::string_view meaning) {
  const Shape& shape = c[slot].shape();
  if (shape[axis] >= 1) return;
  refuse("{} has shape {}: {} is {}; it must be at least 1", name_of(slot), shape.to_string(), meaning, shape[axis]);
}

/// `why` names the axes, in the letters of kernel-interface.md.
void require_shape(const Case& c, Slot slot, const Shape& shape, std::string_view form) {
  if (c[slot].shape() == shape) return;
  refuse("{} has shape {}; it must be {} = {}", name_of(slot), c[slot].shape().to_string(), form, shape.to_string());
}

void require_shape_if_present(const Case& c, Slot slot, const Shape& shape, std::string_view form) {
  if (c[slot].present()) require_shape(c, slot, shape, form);
}

void validate_scale(const Case& c) {
  if (std::isfinite(c.scale) && c.scale > 0) return;
  refuse("scale is {}; it must be finite and greater than 0", c.scale);
}

void validate_mask(const Case& c, std::int64_t batch, std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  const Tensor& mask = c.mask();
  if (!mask.present()) return;
  require_rank(c, Slot::mask, 4, "[batch or 1, heads or 1, M, N]");
  const Shape& shape = mask.shape();
  const bool fits = (shape[0] == batch || shape[0] == 1) && (shape[1] == heads || shape[1] == 1) &&
                    shape[2] == queries && shape[3] == keys;
  if (!fits) {
    refuse("mask has shape {}; it must be [batch or 1, heads or 1, M, N] = [{} or 1, {} or 1, {}, {}]",
           shape.to_string(), batch, heads, queries, keys);
  }
  if (mask.dtype() == DType::boolean) {
    for (std::int64_t i = 0; i < mask.elements(); ++i) {
      const int byte = std::to_integer<int>(mask.bytes()[static_cast<std::size_t>(i)]);
      if (byte > 1) refuse("mask holds the byte {} at {}; 1 shows a key and 0 hides it", byte, index_text(shape, i));
    }
    return;
  }
  for (std::int64_t i = first_non_finite(mask, 0); i >= 0; i = first_non_finite(mask, i + 1)) {
    if (mask[i] == -std::numeric_limits<double>::infinity()) continue;
    refuse("mask holds {} at {}; an entry is finite or -inf", mask[i], index_text(shape, i));
  }
}

/// q, k, v as attention takes them.
void validate_attention(const Case& c) {
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    if (slot > Slot::mask && c[slot].present()) {
      refuse("{} is present; attention takes q, k, v and mask only (operation multihead takes it)", name_of(slot));
    }
  }
  require_rank(c, Slot::q, 4, "[batch, heads, M, dk]");
  require_rank(c, Slot::k, 4, "[batch, kv_heads, N, dk]");
  require_rank(c, Slot::v, 4, "[batch, kv_heads, N, dv]");
  const Shape& q = c.q().shape();
  const Shape& k = c.k().shape();
  const Shape& v = c.v().shape();
  require_extent(c, Slot::q, 0, "batch");
  require_extent(c, Slot::q, 1, "heads");
  require_extent(c, Slot::q, 3, "dk");
  require_extent(c, Slot::k, 1, "kv_heads");
  require_extent(c, Slot::v, 3, "dv");
  require_shape(c, Slot::k, {q[0], k[1], k[2], q[3]}, "[batch, kv_heads, N, dk], batch and dk as in q");
  require_shape(c, Slot::v, {q[0], k[1], k[2], v[3]}, "[batch, kv_heads, N, dv], the first three as in k");
  if (q[1] % k[1] != 0) refuse("q has {} heads and k has {}; the heads of k must divide those of q", q[1], k[1]);
  validate_mask(c, q[0], q[1], q[2], k[2]);
}

/// `columns` of a projection must split evenly into heads.
void require_heads_divide(const Case& c, Slot slot) {
  const std::int64_t columns = c[slot].shape()[1];
  if (columns % c.heads == 0) return;
  refuse("{} has {} columns, which {} heads do not divide; head h owns an equal share of them", name_of(slot), columns,
         c.heads);
}

void validate_multihead(const Case& c) {
  if (c.heads < 1) refuse("heads is {}; it must be at least 1", c.heads);
  require_rank(c, Slot::q, 3, "[batch, M, c_q]");
  require_rank(c, Slot::k, 3, "[batch, N, c_k]");
  require_rank(c, Slot::v, 3, "[batch, N, c_v]");
  require_rank(c, Slot::w_q, 2, "[c_q, heads*dk]");
  require_rank(c, Slot::w_k, 2, "[c_k, heads*dk]");
  require_rank(c, Slot::w_v, 2, "[c_v, heads*dv]");
  const Shape& q = c.q().shape();
  const Shape& k = c.k().shape();
  const Shape& v = c.v().shape();
  require_extent(c, Slot::q, 0, "batch");
  require_extent(c, Slot::q, 2, "c_q");
  require_extent(c, Slot::k, 2, "c_k");
  require_extent(c, Slot::v, 2, "c_v");
  require_shape(c, Slot::k, {q[0], k[1], k[2]}, "[batch, N, c_k], batch as in q");
  require_shape(c, Slot::v, {q[0], k[1], v[2]}, "[batch, N, c_v], batch and N as in k");
  const std::int64_t key_columns = c[Slot::w_q].shape()[1];
  const std::int64_t value_columns = c[Slot::w_v].shape()[1];
  require_extent(c, Slot::w_q, 1, "heads*dk");
  require_extent(c, Slot::w_v, 1, "heads*dv");
  require_shape(c, Slot::w_q, {q[2], key_columns}, "[c_q, heads*dk]");
  require_shape(c, Slot::w_k, {k[2], key_columns}, "[c_k, heads*dk]");
  require_shape(c, Slot::w_v, {v[2], value_columns}, "[c_v, heads*dv]");
  require_heads_divide(c, Slot::w_q);
  require_heads_divide(c, Slot::w_v);
  require_shape_if_present(c, Slot::b_q, {key_columns}, "[heads*dk]");
  require_shape_if_present(c, Slot::b_k, {key_columns}, "[heads*dk]");
  require_shape_if_present(c, Slot::b_v, {value_columns}, "[heads*dv]");
  if (c[Slot::bias_k].present() != c[Slot::bias_v].present()) {
    refuse("{} is present without {}; the appended row needs both", c[Slot::bias_k].present() ? "bias_k" : "bias_v",
           c[Slot::bias_k].present() ? "bias_v" : "bias_k");
  }
  require_shape_if_present(c, Slot::bias_k, {key_columns}, "[heads*dk]");
  require_shape_if_present(c, Slot::bias_v, {value_columns}, "[heads*dv]");
  std::int64_t out_columns = value_columns;
  if (c[Slot::w_o].present()) {
    require_rank(c, Slot::w_o, 2, "[heads*dv, d_o]");
    require_extent(c, Slot::w_o, 1, "d_o");
    out_columns = c[Slot::w_o].shape()[1];
    require_shape(c, Slot::w_o, {value_columns, out_columns}, "[heads*dv, d_o]");
  }
  require_shape_if_present(c, Slot::b_o, {out_columns}, "[d_o]");
  validate_mask(c, q[0], c.heads, q[1], k[1]);
}

void validate_size(const Case& c) {
  const Shape& q = c.q().shape();
  const std::int64_t heads = c.operation == Operation::attention ? q[1] : c.heads;
  if (q[0] > most_heads / heads) refuse("batch {} times heads {} is more than {}", q[0], heads, most_heads);
  const Shape out = c.out_shape();
  std::int64_t elements = 1;
  for (int axis = 0; axis < out.rank(); ++axis) {
    // Each factor is below 2^31 and the product so far at most 2^32, so that this cannot overflow.
    elements *= out[axis];
    if (elements > most_out) refuse("the output {} has more than {} elements", out.to_string(), most_out);
  }
}

/// dtypes, and NaN or Inf among the elements.
void validate_elements(const Case& c) {
  if (c.dtype() == DType::boolean) refuse("q is bool; it must be of a floating dtype");
  const auto stated = c.metadata.find("non_finite");
  const bool non_finite_stated = stated != c.metadata.end() && stated->second == "yes";
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    const Tensor& t = c[slot];
    if (slot == Slot::mask || !t.present()) continue;
    if (t.dtype() != c.dtype()) {
      refuse("{} is {} and q is {}; all tensors but mask have one dtype", name_of(slot), name_of(t.dtype()),
             name_of(c.dtype()));
    }
    if (non_finite_stated && slot <= Slot::v) continue;
    const std::int64_t found = first_non_finite(t, 0);
    if (found < 0) continue;
    refuse("{} holds {} at {}; {}", name_of(slot), t[found], index_text(t.shape(), found),
           slot <= Slot::v ? "inputs are finite unless the metadata says \"non_finite\": \"yes\""
                           : "weights and biases are finite");
  }
}

void validate_metadata(const Case& c) {
  for (const std::string_view key : case_keys(c.operation)) {
    if (c.metadata.count(std::string(key)) != 0) refuse("metadata holds \"{}\", which the case itself states", key);
  }
  static_cast<void>(layouts_of(c));
  if (const auto edge = c.metadata.find(edge_key); edge != c.metadata.end() && !edge_named(edge->second))
    refuse("metadata \"edge\" is {}; it must be \"none\", \"front\" or \"behind\"", in_quotes(edge->second));
}

}  // namespace

void validate(const Case& c) {
  if (c.operation == Operation::attention) {
    validate_attention(c);
  } else {
    validate_multihead(c);
  }
  validate_size(c);
  validate_scale(c);
  validate_elements(c);
  validate_metadata(c);
}

}  // namespace attest
