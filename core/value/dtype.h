// The number formats of tensors: names, sizes, constants, and conversions that round once.
#pragma once

#include <attest/kernel.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/support/words.h"

namespace attest {

/// Element format of a tensor; the values are those of kernel.h. f8_e4m3 is OCP e4m3fn (no infinity), boolean one byte.
/// i32 is for lengths and starts, which are no numbers to compute with. i8 is for keys and values in a cache that have
/// a factor apart (Slot::k_descale).
enum class DType : std::int32_t {
  f64 = ATTEST_F64,
  f32 = ATTEST_F32,
  f16 = ATTEST_F16,
  bf16 = ATTEST_BF16,
  f8_e4m3 = ATTEST_F8_E4M3,
  f8_e5m2 = ATTEST_F8_E5M2,
  boolean = ATTEST_BOOL,
  i32 = ATTEST_I32,
  i8 = ATTEST_I8
};

/// The words of the command line and the manifest.
template <>
struct Words<DType> {
  static constexpr std::array<std::string_view, 9> names{"f64",     "f32",  "f16", "bf16", "f8_e4m3",
                                                         "f8_e5m2", "bool", "i32", "i8"};
};

/// A format of floating-point numbers.
[[nodiscard]] constexpr bool is_floating(DType dtype) noexcept {
  return dtype != DType::boolean && dtype != DType::i32 && dtype != DType::i8;
}
/// A format of keys and values.
[[nodiscard]] constexpr bool is_of_keys(DType dtype) noexcept {
  return is_floating(dtype) || dtype == DType::i8;
}

/// Bytes per element: 8, 4, 2, 2, 1, 1, 1, 4, 1.
[[nodiscard]] std::size_t size_of(DType dtype) noexcept;
/// safetensors' word: "F64" "F32" "F16" "BF16" "F8_E4M3" "F8_E5M2" "BOOL" "I32" "I8".
[[nodiscard]] std::string_view safetensors_name_of(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> dtype_safetensors_named(std::string_view name) noexcept;

/// Constants of a binary floating-point format (error-bounds.md, table of section 0).
struct Format {
  int precision;         ///< significant bits p, the implicit one included
  int min_exponent;      ///< the smallest normal number is 2^min_exponent
  double unit;           ///< unit roundoff u = 2^-p, round to nearest
  double min_normal;     ///< 2^min_exponent
  double min_subnormal;  ///< 2^(min_exponent - p + 1)
  double largest;        ///< largest finite value
};
/// The format of a floating dtype, or i8, whose whole numbers are as those of 7 bits from 1 on. Undefined for others.
[[nodiscard]] const Format& format_of(DType dtype) noexcept;

/// Round to nearest, ties to even, in one rounding from double (Eigen's conversion from double rounds twice). Overflow
/// gives infinity (e4m3fn: NaN), NaN gives a quiet NaN, -0 is kept. Returns the bit pattern.
[[nodiscard]] std::uint16_t f16_bits(double value) noexcept;
[[nodiscard]] std::uint16_t bf16_bits(double value) noexcept;
[[nodiscard]] std::uint8_t f8_e4m3_bits(double value) noexcept;
[[nodiscard]] std::uint8_t f8_e5m2_bits(double value) noexcept;
/// Exact decoding of a bit pattern.
[[nodiscard]] double f16_value(std::uint16_t bits) noexcept;
[[nodiscard]] double bf16_value(std::uint16_t bits) noexcept;
[[nodiscard]] double f8_e4m3_value(std::uint8_t bits) noexcept;
[[nodiscard]] double f8_e5m2_value(std::uint8_t bits) noexcept;

/// `value` rounded once to `dtype` (nearest, ties to even) and back. Identity for f64.
[[nodiscard]] double round_to(DType dtype, double value) noexcept;
/// `value` rounded toward zero to `dtype`: a finite value never becomes infinite.
[[nodiscard]] double truncate_to(DType dtype, double value) noexcept;

/// Reads element `index` of an array of `dtype`; exact. boolean gives 0 or 1.
[[nodiscard]] double load_element(const void* data, DType dtype, std::int64_t index) noexcept;
/// The same of elements [first, first + count), as Real: float, which a wider element is rounded to, or double.
template <class Real>
void load_range(const void* data, DType dtype, std::int64_t first, std::int64_t count, Real* to) noexcept;
/// Writes `value` rounded once. boolean stores value != 0, i32 and i8 the nearest whole number
/// that they hold.
void store_element(void* data, DType dtype, std::int64_t index, double value) noexcept;
/// The same of elements [first, first + count), from float or double.
template <class Real>
void store_range(void* data, DType dtype, std::int64_t first, std::int64_t count, const Real* values) noexcept;

}  // namespace attest
