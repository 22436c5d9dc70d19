#include "core/measure/bit_classes.h"

#include <array>
#include <cmath>
#include <cstring>

namespace attest {
namespace {

/// Where the classes begin and end among the bits without the sign, which grow with the number.
template <class Bits>
struct Borders {
  Bits magnitude;      ///< all bits but the sign
  Bits significand;    ///< the stored bits of the significand
  Bits least_normal;   ///< of the smallest normal number
  Bits half_largest;   ///< the largest number that is not above half of the largest finite one
  Bits least_special;  ///< the first pattern after the largest finite number
};

template <class Bits>
BitClasses classes_in(const std::byte* data, std::int64_t elements, const Borders<Bits>& is) {
  // One flag per class and no branch, so that compilers can make vectors of it.
  unsigned zero = 0, subnormal = 0, power = 0, beside = 0, largest = 0, special = 0, other = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    Bits bits;
    std::memcpy(&bits, data + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
    const auto a = static_cast<Bits>(bits & is.magnitude);
    const auto stored = static_cast<Bits>(a & is.significand);
    const unsigned plain = static_cast<unsigned>(a >= is.least_normal) & static_cast<unsigned>(a <= is.half_largest);
    const unsigned is_power = static_cast<unsigned>(stored == 0);
    const unsigned is_beside = static_cast<unsigned>(stored == 1) | static_cast<unsigned>(stored == is.significand);
    zero |= static_cast<unsigned>(a == 0);
    subnormal |= static_cast<unsigned>(a != 0) & static_cast<unsigned>(a < is.least_normal);
    power |= plain & is_power;
    beside |= plain & is_beside;
    other |= plain & (1U ^ (is_power | is_beside));
    largest |= static_cast<unsigned>(a > is.half_largest) & static_cast<unsigned>(a < is.least_special);
    special |= static_cast<unsigned>(a >= is.least_special);
  }
  return zero * set_of(BitClass::zero) | subnormal * set_of(BitClass::subnormal) |
         power * set_of(BitClass::power_of_two) | beside * set_of(BitClass::beside_power_of_two) |
         largest * set_of(BitClass::largest) | special * set_of(BitClass::non_finite) | other * set_of(BitClass::other);
}

template <class Bits>
BitClasses classes_of(const Tensor& tensor) {
  const Format& format = format_of(tensor.dtype());
  const auto bits_of = [&](double value) {
    std::array<std::byte, sizeof(Bits)> stored{};
    store_element(stored.data(), tensor.dtype(), 0, value);
    Bits bits;
    std::memcpy(&bits, stored.data(), sizeof(Bits));
    return bits;
  };
  const Borders<Bits> borders{.magnitude = static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1))),
                              .significand = static_cast<Bits>((Bits{1} << (format.precision - 1)) - 1),
                              .least_normal = bits_of(format.min_normal),
                              .half_largest = bits_of(format.largest / 2),
                              .least_special = static_cast<Bits>(bits_of(format.largest) + 1)};
  return classes_in<Bits>(tensor.bytes().data(), tensor.elements(), borders);
}

}  // namespace

BitClasses bit_classes(const Tensor& tensor) noexcept {
  if (tensor.elements() == 0) return 0;
  switch (tensor.dtype()) {
    case DType::f64:
      return classes_of<std::uint64_t>(tensor);
    case DType::f32:
      return classes_of<std::uint32_t>(tensor);
    case DType::f16:
    case DType::bf16:
      return classes_of<std::uint16_t>(tensor);
    case DType::f8_e4m3:
    case DType::f8_e5m2:
      return classes_of<std::uint8_t>(tensor);
    case DType::boolean:
    case DType::i32:
    case DType::i8:
      break;
  }
  return 0;
}

}  // namespace attest
