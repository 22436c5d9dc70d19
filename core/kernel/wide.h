// Numbers of scalars that no dtype holds: multiprecision numbers and intervals.
#pragma once

#include <boost/multiprecision/mpfr.hpp>

#include "core/kernel/values.h"

namespace attest {

/// 160 decimal digits: holds every number of the core's scalars exactly, and what sums and products of a few of them
/// lose is far below any bound.
using Wide =
    boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<160>, boost::multiprecision::et_off>;

/// [lower, upper]; one number where the two are equal. NaN in both: undefined.
struct WideInterval {
  Wide lower = 0, upper = 0;
};

[[nodiscard]] inline double middle_of(const WideInterval& x) {
  return static_cast<double>(Wide((x.lower + x.upper) / 2));
}
[[nodiscard]] inline bool is_nan(const WideInterval& x) {
  return isnan(x.lower) || isnan(x.upper);
}

}  // namespace attest
