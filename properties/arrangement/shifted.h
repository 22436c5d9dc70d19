// Numbers of a case moved by a constant or multiplied by a power of two, in such a way that nothing is rounded.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/problem/case.h"

namespace attest {

/// A case without something and the same with it.
struct TwoCases {
  Case before, after;
};

/// Rows x_j of k or v and x_j + c with one c, both representable: per column a power of two c near the largest entry,
/// x_j what is left of x_j + c once it is rounded and c taken away again; c = 0 in a column where that is not exact for
/// every row.
[[nodiscard]] TwoCases translated(const Case& c, Slot slot);

/// The mask, additive, on a grid, and with one number added to what it adds to row i.
[[nodiscard]] TwoCases with_row_shifted(const Case& c, std::int64_t i);

/// Every x of the tensor times its factor, factor(e); the factors are powers of two. False where one of them is not
/// exact.
template <class Factor>
[[nodiscard]] bool multiply(Tensor& t, Factor factor) {
  for (std::int64_t e = 0; e < t.elements(); ++e) {
    const double x = t[e], wanted = x * factor(e);
    t.set(e, wanted);
    if (t[e] != wanted || !std::isfinite(wanted) || wanted / factor(e) != x) return false;
  }
  return true;
}

}  // namespace attest
