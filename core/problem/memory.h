// How the tensors of a case lie in memory: the same values under other strides, for kernels whose manifest says
// "strides": true (kernel-interface.md). The case itself stays row-major; its provenance names the layouts, as
// in "k=padded-rows v=every-other out=token-major", and whoever calls the kernel lays the memory out so.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/problem/case.h"
#include "core/support/words.h"

namespace attest {

/// Axes are counted from the end: columns, rows (tokens), heads (in a tensor of three axes: batch). A layout that needs
/// an axis the tensor lacks is row-major, and so is every layout of a tensor without elements.
enum class MemoryLayout : std::uint8_t {
  row_major,
  token_major,   ///< [batch, tokens, heads, width] in memory: heads and rows change places
  packed,        ///< token-major, as the middle one of three tensors that lie side by side in every token
  padded_rows,   ///< a gap behind every row, and one more behind every head and every batch entry
  every_other,   ///< the stride of the last axis is 2
  column_major,  ///< [batch, heads, width, tokens] in memory: rows and columns change places
  shifted,       ///< row-major from the least aligned address that the kernel allows
  repeated,      ///< stride 0 along each axis whose slices are equal bit by bit; never of an output
  far_rows,      ///< rows so far apart that the last begins beyond far_elements; heads and batch entries inside a row
  far_heads,     ///< row-major, the heads of all batch entries so far apart
  aliased,       ///< row-major, in the memory of a row-major input before it that has the same bits; never of an output
  count
};
template <>
struct Words<MemoryLayout> {
  static constexpr std::array<std::string_view, 11> names{"row-major",   "token-major",  "packed",  "padded-rows",
                                                          "every-other", "column-major", "shifted", "repeated",
                                                          "far-rows",    "far-heads",    "aliased"};
};
/// Whether an output may have it: its elements lie apart, from one another and from every input.
[[nodiscard]] constexpr bool is_for_outputs(MemoryLayout layout) {
  return layout != MemoryLayout::repeated && layout != MemoryLayout::aliased;
}
/// Layouts in memory of which next to nothing is used: an offset that is kept in 32 bits reads elsewhere.
[[nodiscard]] constexpr bool is_far(MemoryLayout layout) {
  return layout == MemoryLayout::far_rows || layout == MemoryLayout::far_heads;
}
/// Beyond 2^32 elements, whatever their size; so are their bytes. The address sanitizer keeps a byte for every eight,
/// and its programs are given less.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::int64_t far_elements = std::int64_t{1} << 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr std::int64_t far_elements = std::int64_t{1} << 20;
#else
inline constexpr std::int64_t far_elements = std::int64_t{1} << 32;
#endif
#else
inline constexpr std::int64_t far_elements = std::int64_t{1} << 32;
#endif

/// The layouts of a call.
struct Layouts {
  std::array<MemoryLayout, slot_count> inputs{};  ///< by Slot; of an absent tensor without effect
  MemoryLayout out = MemoryLayout::row_major;
  MemoryLayout lse = MemoryLayout::row_major;

  [[nodiscard]] MemoryLayout operator[](Slot slot) const { return inputs[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] MemoryLayout& operator[](Slot slot) { return inputs[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] bool operator==(const Layouts&) const = default;
};

/// Words TENSOR=LAYOUT with a space between them, each tensor at most once; what is not named is row-major, and so is
/// everything in "" and "row-major". Throws UsageError: one line with the word and the rule.
[[nodiscard]] Layouts parse_layouts(std::string_view text);
/// The words, in the order q, k, v, mask, …, out, lse, of what is not row-major; "" where everything is.
[[nodiscard]] std::string to_string(const Layouts& layouts);

/// What the provenance says; row-major where it says nothing. Throws as parse_layouts, which a valid case never does.
[[nodiscard]] Layouts layouts_of(const Case& c);
/// States them in the provenance, or nothing where everything is row-major.
void set_layouts(Case& c, const Layouts& layouts);

/// Where the elements of a tensor lie, counted in elements.
struct Placement {
  std::array<std::int64_t, 4> stride{};  ///< as in attest_tensor; entries beyond the rank are 0
  std::int64_t start = 0;                ///< from the beginning of the memory to the tensor's first element
  std::int64_t elements = 0;             ///< of the memory, gaps included: up to the last element

  [[nodiscard]] bool operator==(const Placement&) const = default;
};
/// `dense` is row-major; its data is read for `repeated` only, which without data is row-major. `unit`, at least 1, is
/// the alignment in elements that the kernel asks for: gaps are multiples of it, so that rows are aligned as well as
/// they are in row-major memory, and so is `start`.
[[nodiscard]] Placement place(MemoryLayout layout, const attest_tensor& dense, std::int64_t unit = 1);

}  // namespace attest
