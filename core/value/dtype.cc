#include "core/value/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace attest {
namespace {

/// Layout of a format narrower than f64: fields of a bit pattern without its sign.
template <int MantissaBits, int MinExponent, std::uint32_t MaxFinite, std::uint32_t Overflow, std::uint32_t QuietNan,
          std::uint32_t Sign>
struct Layout {
  static constexpr int mantissa_bits = MantissaBits;      ///< stored ones
  static constexpr int min_exponent = MinExponent;        ///< smallest normal number 2^min_exponent
  static constexpr std::uint32_t max_finite = MaxFinite;  ///< pattern of the largest finite value
  static constexpr std::uint32_t overflow = Overflow;     ///< pattern an infinity becomes
  static constexpr std::uint32_t quiet_nan = QuietNan;
  static constexpr std::uint32_t sign = Sign;  ///< sign bit
};
using F32 = Layout<23, -126, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x80000000>;
using F16 = Layout<10, -14, 0x7bff, 0x7c00, 0x7e00, 0x8000>;
using BF16 = Layout<7, -126, 0x7f7f, 0x7f80, 0x7fc0, 0x8000>;
using E4M3 = Layout<3, -6, 0x7e, 0x7f, 0x7f, 0x80>;  // no infinity: what overflows is NaN
using E5M2 = Layout<2, -14, 0x7b, 0x7c, 0x7e, 0x80>;

constexpr std::uint64_t f64_sign = 0x8000000000000000U;
constexpr std::uint64_t f64_infinity = 0x7ff0000000000000U;
constexpr std::uint64_t f64_implicit = 0x0010000000000000U;

enum class Direction { nearest_even, toward_zero };

/// One rounding of a double to a narrower layout, on integers: the f64 significand is shifted to the spacing of the
/// target at that magnitude (never finer than its subnormals) and what falls off decides. A carry out of the
/// significand moves on into the exponent field by itself, because patterns without sign are ordered like values.
template <class L, Direction direction>
std::uint32_t encode(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = (bits & f64_sign) != 0 ? L::sign : 0;
  const std::uint64_t magnitude = bits & ~f64_sign;
  if (magnitude > f64_infinity) return sign | L::quiet_nan;
  if (magnitude == f64_infinity) return sign | L::overflow;
  const int field = static_cast<int>(magnitude >> 52);
  // An f64 subnormal has no implicit bit; it is far below every target's smallest, so its exponent hardly matters.
  const std::uint64_t significand = (magnitude & (f64_implicit - 1)) | (field != 0 ? f64_implicit : 0);
  const int exponent = field - 1023;
  const int below = exponent < L::min_exponent ? L::min_exponent - exponent : 0;
  // From 54 on nothing is left and half a unit exceeds every significand, so a larger shift says the same.
  const int shift = std::min(52 - L::mantissa_bits + below, 54);
  std::uint64_t kept = significand >> shift;
  if constexpr (direction == Direction::nearest_even) {
    const std::uint64_t fallen = significand & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    if (fallen > half || (fallen == half && (kept & 1) != 0)) ++kept;
  }
  const auto normal_exponent = static_cast<std::uint64_t>(exponent + below - L::min_exponent);
  const std::uint64_t pattern = (normal_exponent << L::mantissa_bits) + kept;
  if (pattern > L::max_finite) return sign | (direction == Direction::nearest_even ? L::overflow : L::max_finite);
  return sign | static_cast<std::uint32_t>(pattern);
}

/// Exact.
template <class L>
double decode(std::uint32_t pattern) noexcept {
  const std::uint64_t sign = (pattern & L::sign) != 0 ? f64_sign : 0;
  const std::uint64_t magnitude = pattern & (L::sign - 1);
  if (magnitude > L::max_finite) {
    const bool infinite = L::overflow != L::quiet_nan && magnitude == L::overflow;
    return std::bit_cast<double>(sign | (infinite ? f64_infinity : std::uint64_t{0x7ff8000000000000U}));
  }
  const std::uint64_t field = magnitude >> L::mantissa_bits;
  if (field == 0) {
    const double unit =
        std::bit_cast<double>(static_cast<std::uint64_t>(L::min_exponent - L::mantissa_bits + 1023) << 52);
    const double value = static_cast<double>(magnitude) * unit;
    return sign != 0 ? -value : value;
  }
  const std::uint64_t rebias = static_cast<std::uint64_t>(1023 + L::min_exponent - 1) << 52;
  return std::bit_cast<double>(sign | ((magnitude << (52 - L::mantissa_bits)) + rebias));
}

template <class T>
T read(const void* data, std::int64_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, std::int64_t index, T value) noexcept {
  std::memcpy(static_cast<unsigned char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

/// By DType.
constexpr std::array<std::string_view, 9> safetensors_names{"F64",     "F32",  "F16", "BF16", "F8_E4M3",
                                                            "F8_E5M2", "BOOL", "I32", "I8"};
constexpr std::array<std::size_t, 9> sizes{8, 4, 2, 2, 1, 1, 1, 4, 1};

/// NaN gives 0.
double whole_of(double value, double least = -0x1p31, double most = 0x1p31 - 1) noexcept {
  if (!(value == value)) return 0;
  return std::nearbyint(std::clamp(value, least, most));
}
double byte_of(double value) noexcept {
  return whole_of(value, -128, 127);
}

constexpr std::array<Format, 9> formats{{
    {53, -1022, 0x1p-53, 0x1p-1022, 0x1p-1074, std::numeric_limits<double>::max()},
    {24, -126, 0x1p-24, 0x1p-126, 0x1p-149, static_cast<double>(std::numeric_limits<float>::max())},
    {11, -14, 0x1p-11, 0x1p-14, 0x1p-24, 65504.0},
    {8, -126, 0x1p-8, 0x1p-126, 0x1p-133, 0x1.fep127},
    {4, -6, 0x1p-4, 0x1p-6, 0x1p-9, 448.0},
    {3, -14, 0x1p-3, 0x1p-14, 0x1p-16, 57344.0},
    {},
    {},
    {7, 0, 0x1p-7, 1, 1, 127.0},
}};

}  // namespace

std::size_t size_of(DType dtype) noexcept {
  return sizes[static_cast<std::size_t>(dtype)];
}
std::string_view safetensors_name_of(DType dtype) noexcept {
  return safetensors_names[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_safetensors_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < safetensors_names.size(); ++i)
    if (safetensors_names[i] == name) return static_cast<DType>(i);
  return std::nullopt;
}

const Format& format_of(DType dtype) noexcept {
  return formats[static_cast<std::size_t>(dtype)];
}

std::uint16_t f16_bits(double value) noexcept {
  return static_cast<std::uint16_t>(encode<F16, Direction::nearest_even>(value));
}
std::uint16_t bf16_bits(double value) noexcept {
  return static_cast<std::uint16_t>(encode<BF16, Direction::nearest_even>(value));
}
std::uint8_t f8_e4m3_bits(double value) noexcept {
  return static_cast<std::uint8_t>(encode<E4M3, Direction::nearest_even>(value));
}
std::uint8_t f8_e5m2_bits(double value) noexcept {
  return static_cast<std::uint8_t>(encode<E5M2, Direction::nearest_even>(value));
}

double f16_value(std::uint16_t bits) noexcept {
  return decode<F16>(bits);
}
double bf16_value(std::uint16_t bits) noexcept {
  return decode<BF16>(bits);
}
double f8_e4m3_value(std::uint8_t bits) noexcept {
  return decode<E4M3>(bits);
}
double f8_e5m2_value(std::uint8_t bits) noexcept {
  return decode<E5M2>(bits);
}

double round_to(DType dtype, double value) noexcept {
  switch (dtype) {
    case DType::f64:
      return value;
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::f16:
      return f16_value(f16_bits(value));
    case DType::bf16:
      return bf16_value(bf16_bits(value));
    case DType::f8_e4m3:
      return f8_e4m3_value(f8_e4m3_bits(value));
    case DType::f8_e5m2:
      return f8_e5m2_value(f8_e5m2_bits(value));
    case DType::boolean:
      return value != 0 ? 1.0 : 0.0;
    case DType::i32:
      return whole_of(value);
    case DType::i8:
      return byte_of(value);
  }
  return value;
}

double truncate_to(DType dtype, double value) noexcept {
  switch (dtype) {
    case DType::f64:
      return value;
    case DType::f32:
      return decode<F32>(encode<F32, Direction::toward_zero>(value));
    case DType::f16:
      return decode<F16>(encode<F16, Direction::toward_zero>(value));
    case DType::bf16:
      return decode<BF16>(encode<BF16, Direction::toward_zero>(value));
    case DType::f8_e4m3:
      return decode<E4M3>(encode<E4M3, Direction::toward_zero>(value));
    case DType::f8_e5m2:
      return decode<E5M2>(encode<E5M2, Direction::toward_zero>(value));
    case DType::boolean:
      return value != 0 ? 1.0 : 0.0;
    case DType::i32:
      return whole_of(value);
    case DType::i8:
      return byte_of(value);
  }
  return value;
}

double load_element(const void* data, DType dtype, std::int64_t index) noexcept {
  switch (dtype) {
    case DType::f64:
      return read<double>(data, index);
    case DType::f32:
      return static_cast<double>(read<float>(data, index));
    case DType::f16:
      return f16_value(read<std::uint16_t>(data, index));
    case DType::bf16:
      return bf16_value(read<std::uint16_t>(data, index));
    case DType::f8_e4m3:
      return f8_e4m3_value(read<std::uint8_t>(data, index));
    case DType::f8_e5m2:
      return f8_e5m2_value(read<std::uint8_t>(data, index));
    case DType::boolean:
      return read<std::uint8_t>(data, index) != 0 ? 1.0 : 0.0;
    case DType::i32:
      return static_cast<double>(read<std::int32_t>(data, index));
    case DType::i8:
      return static_cast<double>(read<std::int8_t>(data, index));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void store_element(void* data, DType dtype, std::int64_t index, double value) noexcept {
  switch (dtype) {
    case DType::f64:
      write(data, index, value);
      return;
    case DType::f32:
      write(data, index, static_cast<float>(value));
      return;
    case DType::f16:
      write(data, index, f16_bits(value));
      return;
    case DType::bf16:
      write(data, index, bf16_bits(value));
      return;
    case DType::f8_e4m3:
      write(data, index, f8_e4m3_bits(value));
      return;
    case DType::f8_e5m2:
      write(data, index, f8_e5m2_bits(value));
      return;
    case DType::boolean:
      write(data, index, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
      return;
    case DType::i32:
      write(data, index, static_cast<std::int32_t>(whole_of(value)));
      return;
    case DType::i8:
      write(data, index, static_cast<std::int8_t>(byte_of(value)));
      return;
  }
}

// What is stored in 16 bits is decoded without a branch, so that compilers make vectors of it.
template <class Real>
void load_range(const void* data, DType dtype, std::int64_t first, std::int64_t count, Real* to) noexcept {
  switch (dtype) {
    case DType::f64:
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Real>(read<double>(data, first + i));
      return;
    case DType::f32:
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Real>(read<float>(data, first + i));
      return;
    case DType::bf16:
      for (std::int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint32_t>(read<std::uint16_t>(data, first + i));
        to[i] = static_cast<Real>(std::bit_cast<float>(bits << 16));
      }
      return;
    case DType::f16:
      for (std::int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<std::uint32_t>(read<std::uint16_t>(data, first + i));
        // Shifted into an f32 the exponent is 112 too small, subnormals included; Inf and NaN take the largest one.
        const std::uint32_t size = bits & 0x7fffu;
        const float value = std::bit_cast<float>(size << 13) * 0x1p112f;
        const std::uint32_t special = size >= 0x7c00u ? 0x7f800000u : 0u;
        const std::uint32_t sign = (bits & 0x8000u) << 16;
        to[i] = static_cast<Real>(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | special | sign));
      }
      return;
    default:
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Real>(load_element(data, dtype, first + i));
  }
}
template void load_range(const void*, DType, std::int64_t, std::int64_t, float*) noexcept;
template void load_range(const void*, DType, std::int64_t, std::int64_t, double*) noexcept;

template <class Real>
void store_range(void* data, DType dtype, std::int64_t first, std::int64_t count, const Real* values) noexcept {
  switch (dtype) {
    case DType::f64:
      for (std::int64_t i = 0; i < count; ++i) write(data, first + i, static_cast<double>(values[i]));
      return;
    case DType::f32:
      for (std::int64_t i = 0; i < count; ++i) write(data, first + i, static_cast<float>(values[i]));
      return;
    case DType::f16:
      for (std::int64_t i = 0; i < count; ++i) write(data, first + i, f16_bits(static_cast<double>(values[i])));
      return;
    case DType::bf16:
      for (std::int64_t i = 0; i < count; ++i) write(data, first + i, bf16_bits(static_cast<double>(values[i])));
      return;
    default:
      for (std::int64_t i = 0; i < count; ++i) store_element(data, dtype, first + i, static_cast<double>(values[i]));
  }
}
template void store_range(void*, DType, std::int64_t, std::int64_t, const float*) noexcept;
template void store_range(void*, DType, std::int64_t, std::int64_t, const double*) noexcept;

}  // namespace attest
