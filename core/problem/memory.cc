#include "core/problem/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/support/names.h"

namespace attest {
namespace {

/// Elements between two rows, in units.
constexpr std::int64_t gap = 3;

/// Rank 0 to 4, the axes from the one whose neighbours lie closest in memory.
std::vector<int> innermost_first(MemoryLayout layout, int rank) {
  std::vector<int> axes;
  axes.reserve(4);
  for (int axis = rank - 1; axis >= 0; --axis) axes.push_back(axis);
  const bool by_token = layout == MemoryLayout::token_major || layout == MemoryLayout::packed;
  if (by_token && rank >= 3) std::swap(axes[1], axes[2]);
  if (layout == MemoryLayout::column_major && rank >= 2) std::swap(axes[0], axes[1]);
  if (layout == MemoryLayout::far_rows && rank >= 2) std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

/// The first of the axes, as they are placed, that is laid out far, and how many slices there are from it on; nothing
/// where there is but one.
struct FarAxes {
  int first = -1;
  std::int64_t slices = 1;
};
FarAxes far_axes(MemoryLayout layout, const attest_tensor& dense, const std::vector<int>& placed) {
  if (!is_far(layout) || dense.rank < (layout == MemoryLayout::far_rows ? 2 : 3)) return {};
  const std::size_t from = layout == MemoryLayout::far_rows ? placed.size() - 1 : 2;
  FarAxes axes{.first = placed[from]};
  for (std::size_t i = from; i < placed.size(); ++i) axes.slices *= dense.shape[placed[i]];
  return axes.slices > 1 ? axes : FarAxes();
}

/// Whether all slices along an axis are the same bits.
bool all_slices_equal(const attest_tensor& dense, int axis) {
  const std::size_t extent = static_cast<std::size_t>(dense.shape[axis]);
  std::size_t slice = size_of(static_cast<DType>(dense.dtype)), repeats = 1;
  for (int a = axis + 1; a < dense.rank; ++a) slice *= static_cast<std::size_t>(dense.shape[a]);
  for (int a = 0; a < axis; ++a) repeats *= static_cast<std::size_t>(dense.shape[a]);
  const auto* data = static_cast<const std::byte*>(dense.data);
  for (std::size_t r = 0; r < repeats; ++r, data += extent * slice) {
    for (std::size_t i = 1; i < extent; ++i)
      if (std::memcmp(data, data + i * slice, slice) != 0) return false;
  }
  return true;
}

/// The place in `layouts` of what a word names; null: nothing does.
MemoryLayout* find(Layouts& layouts, std::string_view tensor) {
  if (tensor == "out") return &layouts.out;
  if (tensor == "lse") return &layouts.lse;
  const std::optional<Slot> slot = named<Slot>(tensor);
  return slot ? &layouts[*slot] : nullptr;
}

std::vector<std::string_view> tensor_names() {
  std::vector<std::string_view> all(Words<Slot>::names.begin(), Words<Slot>::names.end());
  all.insert(all.end(), {"out", "lse"});
  return all;
}

[[noreturn]] void refuse(std::string_view word, const std::string& rule) {
  throw UsageError(fmt::format("metadata \"strides\" holds {}; {}", in_quotes(word), rule));
}

void read_word(std::string_view word, Layouts& layouts, std::vector<const MemoryLayout*>& stated) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) refuse(word, "each word is TENSOR=LAYOUT, as in k=padded-rows");
  const std::string_view tensor = word.substr(0, equals), name = word.substr(equals + 1);
  MemoryLayout* const place = find(layouts, tensor);
  if (place == nullptr) refuse(word, fmt::format("no tensor has that name{}", suggestion(tensor, tensor_names())));
  if (std::find(stated.begin(), stated.end(), place) != stated.end())
    refuse(word, fmt::format("{} is named before; state it once", tensor));
  stated.push_back(place);
  const std::optional<MemoryLayout> layout = named<MemoryLayout>(name);
  if (!layout) refuse(word, fmt::format("no layout has that name{}", suggestion(name, Words<MemoryLayout>::names)));
  if (!is_for_outputs(*layout) && (place == &layouts.out || place == &layouts.lse))
    refuse(word, fmt::format("an output is never {}: its elements must not overlap", name));
  *place = *layout;
}

}  // namespace

Layouts parse_layouts(std::string_view text) {
  Layouts layouts;
  if (text == name_of(MemoryLayout::row_major)) return layouts;
  std::vector<const MemoryLayout*> stated;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) read_word(text.substr(0, end), layouts, stated);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return layouts;
}

std::string to_string(const Layouts& layouts) {
  std::string text;
  const auto add = [&](std::string_view tensor, MemoryLayout layout) {
    if (layout == MemoryLayout::row_major) return;
    if (!text.empty()) text += ' ';
    text.append(tensor).append("=").append(name_of(layout));
  };
  for (int i = 0; i < slot_count; ++i) add(name_of(static_cast<Slot>(i)), layouts.inputs[static_cast<std::size_t>(i)]);
  add("out", layouts.out);
  add("lse", layouts.lse);
  return text;
}

Layouts layouts_of(const Case& c) {
  return parse_layouts(c.provenance.strides.value_or(""));
}

void set_layouts(Case& c, const Layouts& layouts) {
  if (layouts == Layouts()) {
    c.provenance.strides.reset();
  } else {
    c.provenance.strides = to_string(layouts);
  }
}

Placement place(MemoryLayout layout, const attest_tensor& dense, std::int64_t unit) {
  Placement p;
  const int rank = dense.rank;
  std::int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= dense.shape[axis];
  if (count == 0) layout = MemoryLayout::row_major;
  std::int64_t stride = layout == MemoryLayout::every_other ? 2 : 1;
  int placed = 0;
  std::vector<int> axes = innermost_first(layout, rank);
  const FarAxes far = far_axes(layout, dense, axes);
  if (is_far(layout) && far.first < 0) axes = innermost_first(MemoryLayout::row_major, rank);
  for (const int axis : axes) {
    if (axis == far.first)
      stride =
          std::max(stride, (far_elements / std::max<std::int64_t>(1, far.slices - 1) + 1 + unit - 1) / unit * unit);
    const bool repeats = layout == MemoryLayout::repeated && dense.data != nullptr && dense.shape[axis] > 1 &&
                         all_slices_equal(dense, axis);
    p.stride[static_cast<std::size_t>(axis)] = repeats ? 0 : stride;
    if (!repeats) stride *= dense.shape[axis];
    if (layout == MemoryLayout::padded_rows) stride += gap * unit;
    if (layout == MemoryLayout::packed && rank >= 3 && ++placed == 2) {
      p.start = (stride + unit - 1) / unit * unit;
      stride = 3 * p.start;
    }
  }
  if (layout == MemoryLayout::shifted) p.start = unit;
  p.elements = count == 0 ? 0 : p.start + 1;
  for (int axis = 0; axis < rank && count != 0; ++axis)
    p.elements += (dense.shape[axis] - 1) * p.stride[static_cast<std::size_t>(axis)];
  return p;
}

}  // namespace attest
