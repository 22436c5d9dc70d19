// The log-sum-exp of a row, as laws about variants read it.
#pragma once

#include <cstdint>

#include "core/support/infinity.h"
#include "properties/language/result.h"

namespace attest {

/// The log-sum-exp of a row of a result and how far it may be off: the kernel's, or the exact one where it returns
/// none.
struct Lse {
  double value = 0, error = 0;
  bool known = true;
  bool empty = false;  ///< the row has neither a key nor a sink: its policy says what it is
};
[[nodiscard]] inline Lse lse_of(const Result& result, std::int64_t row_of_result) {
  const std::int64_t row = result.origin(row_of_result * result.shape()[3]) / result.run().shape()[3];
  const RowBound& bound = result.run().row_bound(row);
  if (bound.excuse == Excuse::fully_masked) return {.value = -infinity, .empty = true};
  if (bound.excuse != Excuse::none || !(bound.lse_allowed < infinity)) return {.known = false};
  if (!result.run().lse().present()) return {bound.lse, bound.lse_certificate};
  return {result.run().lse()[row], bound.lse_allowed};
}

}  // namespace attest
