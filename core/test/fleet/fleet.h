// The fleet: legitimate kernels of many arithmetics that must stay within their bounds, and broken ones that must not.
#pragma once

#include <vector>

#include "core/test/fleet/emulator.h"
#include "core/test/fleet/regimes.h"

namespace attest::fleet {

/// Correct kernels; what each declares is what it does.
[[nodiscard]] std::vector<Emulation> correct_kernels();

/// A kernel that does something else than it declares, and the case that shows it best.
struct Broken {
  Emulation does;  ///< named after the mistake
  Arithmetic declares;
  Regime probe;
  Size size;
  /// Share of cases of the probe that must be flagged, from error-bounds.md 3.4.
  double flagged;
};
[[nodiscard]] std::vector<Broken> broken_kernels();

/// Arithmetic in which nothing is left open: sums in f32 (f64 for f64) to nearest, exp of one ulp, subtract first,
/// divide last, no blocks. The members of the fleet depart from it.
[[nodiscard]] Arithmetic plain(DType input);

}  // namespace attest::fleet
