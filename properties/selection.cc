#include "selection.h"

#include <cstring>
#include <numeric>

#include "visibility.h"

namespace attest {
namespace {

/// Elements of `t` at the product of four index lists (leading axes of a lower rank count as 1).
Tensor gathered(const Tensor& t, const Indices& i0, const Indices& i1, const Indices& i2, const Indices& i3,
                const Shape& shape) {
  if (!t.present()) return {};
  Tensor result(t.dtype(), shape);
  std::int64_t extent[4] = {1, 1, 1, 1};
  for (int axis = 0; axis < t.shape().rank(); ++axis) extent[4 - t.shape().rank() + axis] = t.shape()[axis];
  const std::size_t size = size_of(t.dtype());
  const std::byte* from = t.bytes().data();
  std::byte* to = result.bytes().data();
  for (const std::int64_t a : i0) {
    for (const std::int64_t b : i1) {
      for (const std::int64_t c : i2) {
        const std::int64_t row = ((a * extent[1] + b) * extent[2] + c) * extent[3];
        for (const std::int64_t d : i3) {
          std::memcpy(to, from + static_cast<std::size_t>(row + d) * size, size);
          to += size;
        }
      }
    }
  }
  return result;
}

std::int64_t count(const Indices& indices) {
  return static_cast<std::int64_t>(indices.size());
}

const Indices one{0};

Tensor rank4(const Tensor& t, const Indices& a, const Indices& b, const Indices& c, const Indices& d) {
  return gathered(t, a, b, c, d, {count(a), count(b), count(c), count(d)});
}
Tensor rank3(const Tensor& t, const Indices& b, const Indices& c, const Indices& d) {
  return gathered(t, one, b, c, d, {count(b), count(c), count(d)});
}
Tensor rank2(const Tensor& t, const Indices& c, const Indices& d) {
  return gathered(t, one, one, c, d, {count(c), count(d)});
}
Tensor rank1(const Tensor& t, const Indices& d) {
  return gathered(t, one, one, one, d, {count(d)});
}

/// Columns h·width + c of the chosen heads and columns.
Indices blocks(const Indices& heads, const Indices& columns, std::int64_t width) {
  Indices joined;
  joined.reserve(heads.size() * columns.size());
  for (const std::int64_t h : heads) {
    for (const std::int64_t c : columns) joined.push_back(h * width + c);
  }
  return joined;
}

Tensor selected_mask(const Tensor& mask, const Selection& s) {
  if (!mask.present()) return {};
  return rank4(mask, mask.shape()[0] == 1 ? one : s.batch, mask.shape()[1] == 1 ? one : s.heads, s.queries, s.keys);
}

}  // namespace

Extents extents_of(const Case& c) {
  Extents e;
  e.batch = batch_of(c);
  e.heads = heads_of(c);
  e.queries = queries_of(c);
  e.keys = keys_of(c);
  if (c.operation == Operation::attention) {
    e.kv_heads = c.k().shape()[1];
    e.dk = c.q().shape()[3];
    e.dv = c.v().shape()[3];
    return e;
  }
  e.c_q = c.q().shape()[2];
  e.c_k = c.k().shape()[2];
  e.c_v = c.v().shape()[2];
  e.dk = c[Slot::w_q].shape()[1] / e.heads;
  e.dv = c[Slot::w_v].shape()[1] / e.heads;
  e.d_o = c[Slot::w_o].present() ? c[Slot::w_o].shape()[1] : e.heads * e.dv;
  return e;
}

Indices all_of(std::int64_t extent) {
  Indices indices(static_cast<std::size_t>(extent));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

Indices cycled(std::int64_t extent, std::int64_t wanted) {
  if (extent == 0) return {};
  Indices indices(static_cast<std::size_t>(wanted));
  for (std::int64_t i = 0; i < wanted; ++i) indices[static_cast<std::size_t>(i)] = i % extent;
  return indices;
}

Selection everything(const Case& c) {
  const Extents e = extents_of(c);
  return {.batch = all_of(e.batch),
          .heads = all_of(e.heads),
          .kv_heads = all_of(e.kv_heads),
          .queries = all_of(e.queries),
          .keys = all_of(e.keys),
          .dk = all_of(e.dk),
          .dv = all_of(e.dv),
          .c_q = all_of(e.c_q),
          .c_k = all_of(e.c_k),
          .c_v = all_of(e.c_v),
          .d_o = all_of(e.d_o)};
}

void keep_widths(const Case& c, Selection& s) {
  if (c.operation != Operation::multihead) return;
  const Extents e = extents_of(c);
  const std::int64_t before = e.heads * e.dk, after = count(s.heads) * count(s.dk);
  const auto tie = [&](std::int64_t extent, Indices& indices) {
    if (extent == before) indices = cycled(extent, after);
  };
  tie(e.c_q, s.c_q);
  tie(e.c_k, s.c_k);
  tie(e.c_v, s.c_v);
  tie(e.d_o, s.d_o);
}

Case select(const Case& c, const Selection& s) {
  Case result;
  result.operation = c.operation;
  const Extents e = extents_of(c);
  result.scale = is_inverse_root(c.scale, e.dk) && count(s.dk) != e.dk ? inverse_root(count(s.dk)) : c.scale;
  result.mask_convention = c.mask_convention;
  result.causal = c.causal;
  result.metadata = c.metadata;
  result[Slot::mask] = selected_mask(c.mask(), s);
  if (c.operation == Operation::attention) {
    result[Slot::q] = rank4(c.q(), s.batch, s.heads, s.queries, s.dk);
    result[Slot::k] = rank4(c.k(), s.batch, s.kv_heads, s.keys, s.dk);
    result[Slot::v] = rank4(c.v(), s.batch, s.kv_heads, s.keys, s.dv);
    return result;
  }
  const Indices key_columns = blocks(s.heads, s.dk, e.dk), value_columns = blocks(s.heads, s.dv, e.dv);
  result.heads = static_cast<std::int32_t>(count(s.heads));
  result[Slot::q] = rank3(c.q(), s.batch, s.queries, s.c_q);
  result[Slot::k] = rank3(c.k(), s.batch, s.keys, s.c_k);
  result[Slot::v] = rank3(c.v(), s.batch, s.keys, s.c_v);
  result[Slot::w_q] = rank2(c[Slot::w_q], s.c_q, key_columns);
  result[Slot::w_k] = rank2(c[Slot::w_k], s.c_k, key_columns);
  result[Slot::w_v] = rank2(c[Slot::w_v], s.c_v, value_columns);
  result[Slot::b_q] = rank1(c[Slot::b_q], key_columns);
  result[Slot::b_k] = rank1(c[Slot::b_k], key_columns);
  result[Slot::b_v] = rank1(c[Slot::b_v], value_columns);
  result[Slot::w_o] = rank2(c[Slot::w_o], value_columns, s.d_o);
  result[Slot::b_o] = rank1(c[Slot::b_o], c[Slot::w_o].present() ? s.d_o : value_columns);
  result[Slot::bias_k] = rank1(c[Slot::bias_k], key_columns);
  result[Slot::bias_v] = rank1(c[Slot::bias_v], value_columns);
  return result;
}

}  // namespace attest
