// Bit classes: which of the corners of a number format occur in a tensor. Read off the bits, a few instructions an
// entry, so that it can be asked of everything that a kernel is sent.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/support/words.h"
#include "core/value/tensor.h"

namespace attest {

/// Every bit pattern is in one class; what lies above half of the largest number is `largest`, whatever else it is.
enum class BitClass : std::uint8_t {
  zero,  ///< of either sign
  subnormal,
  power_of_two,         ///< +-2^e, normal
  beside_power_of_two,  ///< normal, an ulp above or below a power of two
  largest,              ///< above half of the largest finite number
  non_finite,           ///< NaN, Inf
  other,
  count
};
template <>
struct Words<BitClass> {
  static constexpr std::array<std::string_view, 7> names{"zero",    "subnormal",  "power-of-two", "beside-power-of-two",
                                                         "largest", "non-finite", "other"};
};

/// A set of classes: 1 << class for each.
using BitClasses = std::uint32_t;
[[nodiscard]] constexpr BitClasses set_of(BitClass one) noexcept {
  return BitClasses{1} << static_cast<unsigned>(one);
}

/// The classes that occur in a tensor of a floating dtype; none in one that is absent, empty or boolean.
[[nodiscard]] BitClasses bit_classes(const Tensor& tensor) noexcept;

}  // namespace attest
