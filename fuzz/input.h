// Input: what a fuzz campaign mutates. It stands for a case: a recipe of the properties' generators, tensors given by
// their bits instead, and single elements set apart. Bytes are its file: any bytes are an input, and any input is a
// valid case, so that a mutator that knows nothing of attention cannot leave the domain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/problem/case.h"
#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"

namespace attest {

/// Sets one element of q, k or v after the fill, whatever filled it.
struct ElementChange {
  Slot slot = Slot::q;      ///< any other than q, k and v stands for one of them
  std::uint32_t index = 0;  ///< modulo the number of elements
  double value = 0.0;       ///< brought to a finite number of the dtype, NaN to 0
  [[nodiscard]] bool operator==(const ElementChange& other) const;  ///< of the bits, so that NaN equals itself
};

/// Changes that an input holds at most, and bytes of one tensor that it gives by its bits.
inline constexpr std::size_t most_changes = 32, most_raw_bytes = 8192;
/// Products of batch, heads, M, N and dk + dv that a case of an input has at most: about a millisecond of judging.
inline constexpr std::int64_t most_work = std::int64_t{1} << 20;
/// Multiplications of a multihead case's projections, which cost little beside judging but had no limit but memory's.
inline constexpr std::int64_t most_projections = 16 * most_work;

/// What a campaign takes for cheap: cases of up to eight of everything, about 20 microseconds of judging.
inline constexpr std::int64_t cheap_work = std::int64_t{1} << 12;

struct Input {
  /// The case is drawn as the property draws its own, with the recipe's seed; of the recipe nothing else counts.
  bool drawn = false;
  Recipe recipe;                ///< without overrides of its own
  std::optional<double> scale;  ///< in the place of the recipe's; brought into [2^-100, 2^100]
  /// By Slot, those up to the mask alone in an attention case: the bits in the place of what the recipe's kind says,
  /// row-major, over and over from the beginning where they are too few (zeros where there are none), made finite
  /// (mask: finite or -inf). Of self-attention those of q count for k and v. Tensors of a drawn case, and those that
  /// the recipe leaves out, keep their own; a mask comes to be.
  std::array<std::optional<std::vector<std::byte>>, slot_count> raw;
  std::vector<ElementChange> changes;
};

/// The first bytes of an input, which say everything but its changes and bits.
inline constexpr std::size_t input_header_bytes = 80;
/// More than the bytes of any input.
inline constexpr std::size_t most_input_bytes =
    input_header_bytes + most_changes * 13 + slot_count * (2 + most_raw_bytes) + 8 * later_count + 4;

/// Total: what is missing at the end is zero, what is left over is not looked at, what is out of range is brought into
/// it. The dtype and the operation are the campaign's.
[[nodiscard]] Input parse_input(std::span<const std::uint8_t> bytes, DType dtype, Operation operation);
/// parse_input of the result gives an input of the same case, and its bytes are these again.
[[nodiscard]] std::vector<std::uint8_t> bytes_of(const Input& input);

/// The product of batch, heads, M, N and dk + dv: of an attention case what most_work is about, of a multihead case
/// with c_q + d_o in the place of dk + dv.
[[nodiscard]] std::int64_t work_of(const Case& c);

/// The valid case of an input; `property` draws where input.drawn. Gradients by the output, where it is about a
/// backward pass, are of the recipe's seed.
[[nodiscard]] Case case_of(const Input& input, const Property& property);

/// An input whose case has these tensors bit by bit and this form, whatever the property: every tensor is given by its
/// bits. Nothing for what no input holds: multihead cases, tensors of more than most_raw_bytes, no finite numbers, a
/// scale beyond its limits, extents or work beyond the limits, additive masks in a dtype of their own. Metadata but
/// the strides is left behind.
[[nodiscard]] std::optional<Input> input_of(const Case& c);

}  // namespace attest
