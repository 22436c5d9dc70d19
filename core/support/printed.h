// Numbers in what is said of a kernel.
#pragma once

#include <cmath>
#include <limits>

namespace attest {

/// The number as it is to be formatted in a reason: a NaN without its sign, which says nothing of the kernel, differs
/// between processors and would read "-nan"; every other number as it is.
[[nodiscard]] inline double printed(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace attest
