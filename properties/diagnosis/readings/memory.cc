// Tensors that are exchanged, or lie in memory otherwise than they do.
#include <fmt/format.h>

#include <utility>

#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/readings/reading.h"

namespace attest {
namespace {

/// The layout of other libraries: [batch, tokens, heads, width].
void read_tokens_before_heads(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  const auto by_token = [](const Tensor& tensor) {
    const Shape shape = tensor.shape();
    const std::int64_t heads = shape[1], tokens = shape[2], width = shape[3], entry = heads * tokens * width;
    return gathered(tensor, [=](std::int64_t e) {
      const std::int64_t h = e % entry / (tokens * width), i = e % (tokens * width) / width;
      return e / entry * entry + (i * heads + h) * width + e % width;
    });
  };
  if (extents.heads == 1 && extents.kv_heads == 1 && extents.queries == 1 && extents.keys == 1) return;
  Case other = c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) other[slot] = by_token(c[slot]);
  r.add("tensors lay in memory as [batch, tokens, heads, width]", other, by_token);
  r.add("the output were asked for as [batch, tokens, heads, width]", c, by_token);
  // Whoever takes the extents from the shape finds other ones, too.
  if (extents.queries != extents.keys || c.mask().present() || c[Slot::keep].present()) return;
  const auto exchanged = [](const Tensor& tensor) {
    const Shape shape = tensor.shape();
    Tensor turned(tensor.dtype(), {shape[0], shape[2], shape[1], shape[3]});
    for (std::int64_t e = 0; e < turned.elements(); ++e) {
      const auto [b, i, h, column] = turned.shape().index_of(e);
      turned.set(e, tensor.at(b, h, i, column));
    }
    return turned;
  };
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) other[slot] = exchanged(c[slot]);
  r.add("shapes were [batch, tokens, heads, width]", std::move(other), exchanged);
}

}  // namespace

void read_memory(Readings& r) {
  const Case& c = r.problem();
  const auto exchanged = [&](std::string words, Slot a, Slot b) {
    if (c[a].shape() != c[b].shape() || c[a].dtype() != c[b].dtype()) return;
    Case other = c;
    std::swap(other[a], other[b]);
    r.add(std::move(words), std::move(other));
  };
  exchanged("keys and values were exchanged", Slot::k, Slot::v);
  exchanged("queries and keys were exchanged", Slot::q, Slot::k);
  if (c.k().shape() == c.v().shape() && c.k().dtype() == c.v().dtype()) {
    Case other = c;
    other[Slot::v] = c.k();
    r.add("the keys were the values, too", std::move(other));
  }
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    const std::int64_t tokens = c[slot].shape()[2], width = c[slot].shape()[3];
    Case other = c;
    other[slot] = gathered(c[slot], [&](std::int64_t e) {
      const std::int64_t page = tokens * width, i = e % page / width, column = e % width;
      return e / page * page + column * tokens + i;
    });
    if (tokens > 1 && width > 1)
      r.add(fmt::format("{} lay in memory column by column", name_of(slot)), std::move(other));
  }
  read_tokens_before_heads(r);
}

}  // namespace attest
