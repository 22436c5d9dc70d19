// What is lost where a result has no normal number.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/value/dtype.h"

namespace attest::detail {

/// Absolute error of an operation whose result is below the smallest normal number. Half the smallest subnormal of f64
/// is 0 in a double, and a bound of 0 can neither hold nor fail an answer that lies between two doubles: the whole one.
[[nodiscard]] inline double underflow_of(const Format& format, bool flushes, bool truncates) {
  if (flushes) return format.min_normal;
  return truncates ? format.min_subnormal : std::max(format.min_subnormal * 0.5, 0x1p-1074);
}

/// `count` smallest doubles, 2^-1074 each, for a count from 0 to 2^52; a product that is subnormal takes long to
/// compute.
[[nodiscard]] inline double subnormal(std::int64_t count) {
  return std::bit_cast<double>(count);
}

}  // namespace attest::detail
