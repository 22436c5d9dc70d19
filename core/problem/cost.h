// What a case costs, counted and never measured: every machine and every run counts the same.
#pragma once

#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// In double: whole numbers would overflow for the extents that are refused.
struct Cost {
  double numbers = 0;   ///< in a case, the answer's and the scores included
  double products = 0;  ///< multiplications that its definition asks for
};
[[nodiscard]] Cost cost_of(Operation operation, const Extents& e);

/// What a call of a case and its judgement cost, in multiplications: those that the definition asks for, 4 for each
/// number, and 2^15 whatever its size.
[[nodiscard]] double cost_of(const Case& c);

/// Floating-point operations that its definition asks for: a multiplication and an addition for each product.
[[nodiscard]] double flops_of(const Case& c);

}  // namespace attest
