#include "core/measure/bit_classes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace attest {
namespace {

/// The class of a value, by arithmetic on the value where bit_classes looks at bits.
BitClass class_of(double value, DType dtype) {
  const Format& format = format_of(dtype);
  const double a = std::fabs(value);
  if (!std::isfinite(a)) return BitClass::non_finite;
  if (a == 0) return BitClass::zero;
  if (a < format.min_normal) return BitClass::subnormal;
  if (a > format.largest / 2) return BitClass::largest;
  int exponent = 0;
  const double significand = 2 * std::frexp(a, &exponent);
  const double ulp = std::ldexp(1.0, 1 - format.precision);
  if (significand == 1) return BitClass::power_of_two;
  if (significand == 1 + ulp || significand == 2 - ulp) return BitClass::beside_power_of_two;
  return BitClass::other;
}

template <class Bits>
Tensor of_bits(DType dtype, Bits bits) {
  Tensor tensor(dtype, {1});
  std::memcpy(tensor.bytes().data(), &bits, sizeof bits);
  return tensor;
}

TEST(BitClasses, PutEveryPatternOfTheNarrowFormatsInItsClass) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    const unsigned patterns = 1U << (8 * size_of(dtype));
    BitClasses seen = 0;
    for (unsigned bits = 0; bits < patterns; ++bits) {
      const Tensor tensor = size_of(dtype) == 1 ? of_bits(dtype, static_cast<std::uint8_t>(bits))
                                                : of_bits(dtype, static_cast<std::uint16_t>(bits));
      ASSERT_EQ(bit_classes(tensor), set_of(class_of(tensor[0], dtype)))
          << fmt::format("{} {:#x}", name_of(dtype), bits);
      seen |= bit_classes(tensor);
    }
    EXPECT_EQ(seen, (BitClasses{1} << static_cast<unsigned>(BitClass::count)) - 1) << name_of(dtype);
  }
}

TEST(BitClasses, PutTheEdgesOfTheWideFormatsInTheirClass) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Format& format = format_of(dtype);
    const double ulp = std::ldexp(1.0, 1 - format.precision);
    for (const double value :
         {0.0, -0.0, format.min_subnormal, format.min_normal - format.min_subnormal, format.min_normal,
          format.min_normal + format.min_subnormal, 1.0, -1.0, 1 + ulp, 1 + 2 * ulp, 1 - ulp / 2, 1.5, -3.25,
          format.largest / 2, format.largest / 2 * (1 + ulp), format.largest, std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
      const Tensor tensor(dtype, {1}, std::vector<double>{value});
      EXPECT_EQ(bit_classes(tensor), set_of(class_of(tensor[0], dtype))) << name_of(dtype) << " " << value;
      const Tensor negative(dtype, {1}, std::vector<double>{-value});
      EXPECT_EQ(bit_classes(negative), bit_classes(tensor)) << name_of(dtype) << " " << -value;
    }
  }
}

TEST(BitClasses, AreThoseOfAllEntries) {
  std::vector<double> values(101, 1.5);
  values[100] = 0.0;
  values[7] = 2.0;
  const Tensor tensor(DType::f32, {101}, values);
  EXPECT_EQ(bit_classes(tensor), set_of(BitClass::other) | set_of(BitClass::zero) | set_of(BitClass::power_of_two));
  EXPECT_EQ(bit_classes(Tensor()), 0U);
  EXPECT_EQ(bit_classes(Tensor(DType::f32, {0})), 0U);
  EXPECT_EQ(bit_classes(Tensor(DType::boolean, {3})), 0U);
}

}  // namespace
}  // namespace attest
