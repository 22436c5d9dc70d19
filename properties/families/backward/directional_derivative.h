// How the loss of a case changes with its inputs, by the definition's forward pass on dual numbers: no formula of the
// backward pass is in it.
#pragma once

#include <array>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// A direction for each number of the arguments, by Gradient; those of a mask and of sinks may be left out.
using Direction = std::array<std::vector<double>, gradient_count>;

/// A number to within `error`: the sum of two doubles.
struct Derivative {
  double value = 0, rest = 0, error = 0;
};

/// The derivative of the sum of d_out times the output, over rows that see a key, where each input moves along its
/// direction.
[[nodiscard]] Derivative derivative_of_loss(const Case& c, const Direction& along);

}  // namespace attest
