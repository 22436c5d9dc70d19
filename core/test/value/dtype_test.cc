// Number formats: every bit pattern, and every rounding against MPFR with the format's precision and exponent range.
#include "core/value/dtype.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr DType narrow[] = {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
constexpr DType narrow_and_f32[] = {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

std::uint32_t patterns_of(DType dtype) {
  return 1U << (8 * size_of(dtype));
}

double value_of(DType dtype, std::uint32_t bits) {
  switch (dtype) {
    case DType::f16:
      return f16_value(static_cast<std::uint16_t>(bits));
    case DType::bf16:
      return bf16_value(static_cast<std::uint16_t>(bits));
    case DType::f8_e4m3:
      return f8_e4m3_value(static_cast<std::uint8_t>(bits));
    default:
      return f8_e5m2_value(static_cast<std::uint8_t>(bits));
  }
}

std::uint32_t bits_of(DType dtype, double value) {
  switch (dtype) {
    case DType::f16:
      return f16_bits(value);
    case DType::bf16:
      return bf16_bits(value);
    case DType::f8_e4m3:
      return f8_e4m3_bits(value);
    default:
      return f8_e5m2_bits(value);
  }
}

/// Equal with the sign of zero, NaN to NaN.
bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

/// Rounds by MPFR, which emulates a format with subnormals when its exponent range is set and mpfr_subnormalize called.
class MpfrFormat {
 public:
  explicit MpfrFormat(DType dtype) : dtype_(dtype), old_emin_(mpfr_get_emin()), old_emax_(mpfr_get_emax()) {
    const Format& format = format_of(dtype);
    mpfr_init2(number_, format.precision);
    // MPFR's significand is in [1/2, 1): its exponents are one more.
    mpfr_set_emin(format.min_exponent - format.precision + 2);
    mpfr_set_emax(std::ilogb(format.largest) + 1);
  }
  MpfrFormat(const MpfrFormat&) = delete;
  MpfrFormat& operator=(const MpfrFormat&) = delete;
  ~MpfrFormat() {
    mpfr_clear(number_);
    mpfr_set_emin(old_emin_);
    mpfr_set_emax(old_emax_);
  }
  double operator()(double value, mpfr_rnd_t direction) {
    int inexact = mpfr_set_d(number_, value, direction);
    inexact = mpfr_check_range(number_, inexact, direction);
    mpfr_subnormalize(number_, inexact, direction);
    const double result = mpfr_get_d(number_, MPFR_RNDN);
    if (dtype_ != DType::f8_e4m3 || std::isnan(value)) return result;
    // e4m3fn gives up its last pattern, 480, and infinity for one NaN.
    if (std::abs(result) <= format_of(dtype_).largest) return result;
    return direction == MPFR_RNDN || std::isinf(value) ? nan : std::copysign(format_of(dtype_).largest, value);
  }

 private:
  DType dtype_;
  mpfr_exp_t old_emin_, old_emax_;
  mpfr_t number_;
};

/// Where a rounding can go wrong: each value of the format, each midpoint, and their neighbours near and less near,
/// which rounding by way of another format mistakes for the midpoint itself.
std::vector<double> traps(DType dtype) {
  std::vector<double> values{0.0,
                             -0.0,
                             nan,
                             inf,
                             -inf,
                             0x1p-1074,
                             -0x1p-1074,
                             0x0.fffffffffffffp-1022,
                             0x1p-1022,
                             1e308,
                             -1e308,
                             0x1p1023,
                             0x1.fffffffffffffp1023};
  const auto around = [&](double x) {
    for (const double sign : {1.0, -1.0}) {
      values.push_back(sign * x);
      values.push_back(sign * std::nextafter(x, inf));
      values.push_back(sign * std::nextafter(x, 0.0));
      for (const double step : {0x1p-26, 0x1p-38, 0x1p-50}) {
        values.push_back(sign * x * (1 + step));
        values.push_back(sign * x * (1 - step));
      }
    }
  };
  if (dtype == DType::f32) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
      const auto low = std::bit_cast<float>(static_cast<std::uint32_t>(random() % 0x7f7fffff));
      const float high = std::nextafter(low, std::numeric_limits<float>::infinity());
      around(low);
      around((static_cast<double>(low) + static_cast<double>(high)) / 2);
    }
    around(0x1p128);
    around(static_cast<double>(std::numeric_limits<float>::max()));
    around((static_cast<double>(std::numeric_limits<float>::max()) + 0x1p128) / 2);
    around(0x1p-149);
    around(0x1p-150);
    return values;
  }
  const std::uint32_t positive = patterns_of(dtype) / 2;
  for (std::uint32_t bits = 0; bits + 1 < positive; ++bits) {
    const double low = value_of(dtype, bits);
    double high = value_of(dtype, bits + 1);
    if (!std::isfinite(low)) break;
    // The value that would follow the largest decides where overflow begins.
    if (!std::isfinite(high)) high = low + (low - value_of(dtype, bits - 1));
    around(low);
    around(low + (high - low) / 2);
  }
  around(2 * format_of(dtype).largest);
  return values;
}

std::vector<double> random_doubles(DType dtype) {
  std::mt19937_64 random(11);
  const Format& format = format_of(dtype);
  const int lowest = format.min_exponent - format.precision - 4;
  const auto exponents = static_cast<std::uint64_t>(std::ilogb(format.largest) + 3 - lowest);
  std::vector<double> values;
  for (int i = 0; i < 200000; ++i) {
    const double significand = static_cast<double>(random() >> 11) * 0x1p-53 + 1;
    const int exponent = lowest + static_cast<int>(random() % exponents);
    values.push_back(std::ldexp((random() & 1) != 0 ? significand : -significand, exponent));
  }
  return values;
}

TEST(DType, NamesGoBothWays) {
  std::set<std::string_view> seen;
  for (int i = 0; i < 7; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(named<DType>(name_of(dtype)), dtype);
    EXPECT_EQ(dtype_safetensors_named(safetensors_name_of(dtype)), dtype);
    EXPECT_TRUE(seen.insert(name_of(dtype)).second);
    EXPECT_TRUE(seen.insert(safetensors_name_of(dtype)).second);
  }
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(safetensors_name_of(DType::f8_e4m3), "F8_E4M3");
  EXPECT_EQ(named<DType>("F32"), std::nullopt);
  EXPECT_EQ(dtype_safetensors_named("I64"), std::nullopt);
}

TEST(DType, FormatsAgreeWithTheirPatterns) {
  for (const DType dtype : narrow) {
    const Format& format = format_of(dtype);
    double smallest = inf;
    double largest = 0;
    for (std::uint32_t bits = 0; bits < patterns_of(dtype); ++bits) {
      const double value = std::abs(value_of(dtype, bits));
      if (value > 0 && value < smallest) smallest = value;
      if (std::isfinite(value) && value > largest) largest = value;
    }
    EXPECT_EQ(smallest, format.min_subnormal) << name_of(dtype);
    EXPECT_EQ(largest, format.largest) << name_of(dtype);
  }
  for (int i = 0; i < 6; ++i) {
    const Format& format = format_of(static_cast<DType>(i));
    EXPECT_EQ(format.unit, std::ldexp(1.0, -format.precision));
    EXPECT_EQ(format.min_normal, std::ldexp(1.0, format.min_exponent));
    EXPECT_EQ(format.min_subnormal, std::ldexp(1.0, format.min_exponent - format.precision + 1));
  }
  EXPECT_EQ(format_of(DType::f64).largest, std::numeric_limits<double>::max());
  EXPECT_EQ(format_of(DType::f32).largest, std::numeric_limits<float>::max());
}

TEST(Decode, GivesTheValuesOfTheStandards) {
  EXPECT_EQ(f16_value(0x3c00), 1.0);
  EXPECT_EQ(f16_value(0xfbff), -65504.0);
  EXPECT_EQ(f16_value(0x0001), 0x1p-24);
  EXPECT_EQ(f16_value(0x7c00), inf);
  EXPECT_EQ(f16_value(0xfc00), -inf);
  EXPECT_EQ(f8_e5m2_value(0x3c), 1.0);
  EXPECT_EQ(f8_e5m2_value(0x7c), inf);
  EXPECT_EQ(f8_e4m3_value(0x38), 1.0);
  EXPECT_EQ(f8_e4m3_value(0x7e), 448.0);
  EXPECT_EQ(f8_e4m3_value(0x01), 0x1p-9);
  EXPECT_TRUE(std::isnan(f8_e4m3_value(0x7f)));
  EXPECT_TRUE(std::isnan(f8_e4m3_value(0xff)));
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    // bf16 is the upper half of f32.
    const auto expected = static_cast<double>(std::bit_cast<float>(bits << 16));
    ASSERT_TRUE(same(bf16_value(static_cast<std::uint16_t>(bits)), expected)) << bits;
    // f16, from its definition.
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const auto fraction = static_cast<double>(bits & 1023);
    double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) magnitude = fraction == 0 ? inf : nan;
    ASSERT_TRUE(same(f16_value(static_cast<std::uint16_t>(bits)), (bits & 0x8000) != 0 ? -magnitude : magnitude))
        << bits;
  }
}

TEST(Encode, ReturnsEveryPatternToItself) {
  for (const DType dtype : narrow) {
    int nans = 0;
    for (std::uint32_t bits = 0; bits < patterns_of(dtype); ++bits) {
      const double value = value_of(dtype, bits);
      if (std::isnan(value)) {
        ++nans;
        EXPECT_TRUE(std::isnan(value_of(dtype, bits_of(dtype, value)))) << name_of(dtype) << " " << bits;
        continue;
      }
      ASSERT_EQ(bits_of(dtype, value), bits) << name_of(dtype);
    }
    EXPECT_EQ(nans, dtype == DType::f16 ? 2046 : dtype == DType::bf16 ? 254 : dtype == DType::f8_e4m3 ? 2 : 6);
  }
}

TEST(Encode, GivesQuietNansWithTheirSign) {
  EXPECT_EQ(f16_bits(nan), 0x7e00);
  EXPECT_EQ(f16_bits(-nan), 0xfe00);
  EXPECT_EQ(bf16_bits(nan), 0x7fc0);
  EXPECT_EQ(f8_e4m3_bits(nan), 0x7f);
  EXPECT_EQ(f8_e5m2_bits(nan), 0x7e);
  // A payload in the low bits only, which cutting off would turn into infinity.
  const auto low_payload = std::bit_cast<double>(std::uint64_t{0x7ff0000000000001});
  for (const DType dtype : narrow) EXPECT_TRUE(std::isnan(value_of(dtype, bits_of(dtype, low_payload))));
}

TEST(Encode, OverflowsAsTheStandardsSay) {
  EXPECT_EQ(round_to(DType::f16, 65519.999999999), 65504.0);
  EXPECT_EQ(round_to(DType::f16, 65520.0), inf);
  EXPECT_EQ(round_to(DType::f8_e4m3, 464.0), 448.0);
  EXPECT_TRUE(std::isnan(round_to(DType::f8_e4m3, std::nextafter(464.0, inf))));
  EXPECT_TRUE(std::isnan(round_to(DType::f8_e4m3, -inf)));
  EXPECT_EQ(round_to(DType::f8_e5m2, -61440.0), -inf);
  EXPECT_EQ(round_to(DType::bf16, -1e300), -inf);
  for (const DType dtype : narrow_and_f32) {
    EXPECT_EQ(truncate_to(dtype, 1e300), format_of(dtype).largest) << name_of(dtype);
    EXPECT_EQ(truncate_to(dtype, -1e300), -format_of(dtype).largest) << name_of(dtype);
    if (dtype == DType::f8_e4m3) {
      EXPECT_TRUE(std::isnan(truncate_to(dtype, inf)));
    } else {
      EXPECT_EQ(truncate_to(dtype, -inf), -inf) << name_of(dtype);
    }
  }
}

TEST(Rounding, AgreesWithMpfr) {
  for (const DType dtype : narrow_and_f32) {
    MpfrFormat mpfr(dtype);
    for (const std::vector<double>& values : {traps(dtype), random_doubles(dtype)}) {
      ASSERT_GT(values.size(), 1000U);
      for (const double value : values) {
        ASSERT_TRUE(same(round_to(dtype, value), mpfr(value, MPFR_RNDN)))
            << name_of(dtype) << " nearest of " << std::hexfloat << value;
        ASSERT_TRUE(same(truncate_to(dtype, value), mpfr(value, MPFR_RNDZ)))
            << name_of(dtype) << " toward zero of " << std::hexfloat << value;
        if (dtype == DType::f32) continue;
        ASSERT_TRUE(same(value_of(dtype, bits_of(dtype, value)), round_to(dtype, value)));
      }
    }
  }
}

TEST(Rounding, TheTrapsCatchRoundingTwice) {
  for (const DType dtype : narrow) {
    int caught = 0;
    for (const double value : traps(dtype)) {
      caught += same(round_to(dtype, round_to(DType::f32, value)), round_to(dtype, value)) ? 0 : 1;
    }
    EXPECT_GT(caught, 100) << name_of(dtype);
  }
  // Just above the middle of 1 and 1 + 2^-10: through f32 it becomes the middle and then even.
  EXPECT_EQ(round_to(DType::f16, 0x1.002000001p0), 0x1.004p0);
}

TEST(Rounding, LeavesF64Alone) {
  for (const double value : {0.0, -0.0, 1.0, 0x1p-1074, inf, std::numeric_limits<double>::max()}) {
    EXPECT_TRUE(same(round_to(DType::f64, value), value));
    EXPECT_TRUE(same(truncate_to(DType::f64, value), value));
  }
}

TEST(Elements, AreLoadedAndStoredByIndex) {
  for (int i = 0; i < 7; ++i) {
    const auto dtype = static_cast<DType>(i);
    std::vector<unsigned char> bytes(5 * size_of(dtype), 0xaa);
    store_element(bytes.data(), dtype, 3, -1.25);
    const double expected = dtype == DType::boolean ? 1.0 : -1.25;
    EXPECT_EQ(load_element(bytes.data(), dtype, 3), expected) << name_of(dtype);
    const auto untouched = [&](std::size_t from, std::size_t to) {
      for (std::size_t at = from * size_of(dtype); at < to * size_of(dtype); ++at) EXPECT_EQ(bytes[at], 0xaa);
    };
    untouched(0, 3);
    untouched(4, 5);
    store_element(bytes.data(), dtype, 0, 0.0);
    EXPECT_TRUE(same(load_element(bytes.data(), dtype, 0), 0.0));
    if (dtype == DType::boolean) continue;
    store_element(bytes.data(), dtype, 4, -0.0);
    EXPECT_TRUE(same(load_element(bytes.data(), dtype, 4), -0.0));
  }
  unsigned char flag = 2;
  EXPECT_EQ(load_element(&flag, DType::boolean, 0), 1.0);
  store_element(&flag, DType::boolean, 0, nan);
  EXPECT_EQ(flag, 1) << "NaN is not 0";
}

// From any element on, and no further than is asked for; of formats of 16 bits every pattern.
TEST(Elements, AreLoadedInRangesAsOneByOne) {
  std::mt19937_64 random(7);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2,
                            DType::boolean, DType::i32, DType::i8}) {
    constexpr std::int64_t elements = 1 << 16;
    std::vector<std::uint8_t> bytes(elements * size_of(dtype));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = size_of(dtype) == 2 ? static_cast<std::uint8_t>(i % 2 == 0 ? i / 2 : i / 512)
                                     : static_cast<std::uint8_t>(random());
    for (const std::int64_t first : {0, 1, 77}) {
      const std::int64_t count = elements - 2 * first;
      std::vector<double> wide(static_cast<std::size_t>(count) + 1, 42);
      std::vector<float> single(static_cast<std::size_t>(count) + 1, 42);
      load_range(bytes.data(), dtype, first, count, wide.data());
      load_range(bytes.data(), dtype, first, count, single.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double element = load_element(bytes.data(), dtype, first + i);
        const auto at = static_cast<std::size_t>(i);
        EXPECT_TRUE(same(wide[at], element)) << name_of(dtype) << " at " << first + i;
        EXPECT_TRUE(same(static_cast<double>(single[at]), static_cast<double>(static_cast<float>(element))))
            << name_of(dtype) << " at " << first + i;
      }
      EXPECT_EQ(wide.back(), 42);
      EXPECT_EQ(single.back(), 42);
    }
  }
}

TEST(Elements, AreStoredInRangesAsOneByOne) {
  std::mt19937_64 random(8);
  std::vector<double> values{0.0, -0.0, inf, -inf, nan, -nan, 0x1p-149, 0x1p-1074, 65504, 65520, 448, 1e300, -1.5};
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 400) - 260));
  const auto count = static_cast<std::int64_t>(values.size());
  const std::vector<float> singles = [&] {
    std::vector<float> all;
    all.reserve(values.size());
    for (const double value : values) all.push_back(static_cast<float>(value));
    return all;
  }();
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2,
                            DType::boolean, DType::i32, DType::i8}) {
    for (const std::int64_t first : {0, 3}) {
      const auto check = [&](const auto& from) {
        std::vector<std::uint8_t> one_by_one(static_cast<std::size_t>(count + first + 1) * size_of(dtype), 0xa5);
        std::vector<std::uint8_t> at_once = one_by_one;
        for (std::int64_t i = 0; i < count; ++i)
          store_element(one_by_one.data(), dtype, first + i, static_cast<double>(from[static_cast<std::size_t>(i)]));
        store_range(at_once.data(), dtype, first, count, from.data());
        EXPECT_EQ(at_once, one_by_one) << name_of(dtype) << " from " << first;
      };
      check(values), check(singles);
    }
  }
}

}  // namespace
}  // namespace attest
