#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"

namespace attest {
namespace {

/// Slice 0 in the place of every slice along an axis.
void repeat_first_slice(Tensor& t, int axis) {
  const Shape& shape = t.shape();
  std::size_t slice = size_of(t.dtype()), outer = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) slice *= static_cast<std::size_t>(shape[a]);
  for (int a = 0; a < axis; ++a) outer *= static_cast<std::size_t>(shape[a]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  std::byte* data = t.bytes().data();
  for (std::size_t o = 0; o < outer; ++o, data += extent * slice)
    for (std::size_t i = 1; i < extent; ++i) std::memcpy(data + i * slice, data, slice);
}

/// A mask shared by the heads, given to each of them.
Tensor over_heads(const Tensor& mask, std::int64_t heads) {
  const Shape& shape = mask.shape();
  Tensor spread(mask.dtype(), {shape[0], heads, shape[2], shape[3]});
  const auto page = static_cast<std::size_t>(shape[2] * shape[3]) * size_of(mask.dtype());
  const std::byte* from = mask.bytes().data();
  std::byte* to = spread.bytes().data();
  for (std::int64_t b = 0; b < shape[0] && page > 0; ++b, from += page)
    for (std::int64_t h = 0; h < heads; ++h, to += page) std::memcpy(to, from, page);
  return spread;
}

}  // namespace

void make_repeatable(const Recipe& recipe, Case& c) {
  for (int index = 0; index < slot_count; ++index) {
    const auto slot = static_cast<Slot>(index);
    Tensor& tensor = c[slot];
    if (recipe.layouts[slot] != MemoryLayout::repeated || tensor.elements() == 0) continue;
    if (slot == Slot::mask && recipe.heads > 1 && tensor.shape()[1] == 1) {
      tensor = over_heads(tensor, recipe.heads);
      continue;
    }
    const Shape& shape = tensor.shape();
    const std::int64_t first = Stream(recipe.seed ^ static_cast<std::uint64_t>(index + 1)).below(shape.rank());
    for (int step = 0; step < shape.rank(); ++step) {
      const int axis = static_cast<int>((first + step) % shape.rank());
      if (shape[axis] < 2) continue;
      repeat_first_slice(tensor, axis);
      break;
    }
  }
}

}  // namespace attest
