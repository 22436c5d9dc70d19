// Outputs of scalars that no dtype holds: multiprecision numbers and intervals.
#pragma once

#include <boost/multiprecision/mpfr.hpp>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// 160 decimal digits: holds every number of the core's scalars exactly, and what sums and products of a few of them
/// lose is far below any bound.
using Wide =
    boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<160>, boost::multiprecision::et_off>;

/// [lower, upper]; one number where the two are equal. NaN in both: undefined.
struct WideInterval {
  Wide lower = 0, upper = 0;
};

/// The output of a run on a wide scalar, row-major in the shape of Case::out_shape().
struct WideReply {
  CallStatus status = CallStatus::ok;
  std::string message;
  std::vector<WideInterval> out;
  /// Unit roundoff of the scalar's operations; 0: intervals, which enclose the exact value.
  double unit = 0;
};

}  // namespace attest
