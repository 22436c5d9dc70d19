// What beside its mistake a kernel does right, and which properties it was not asked about, and why not.
#pragma once

#include <cstdint>
#include <string>

#include "reports/results/summary.h"

namespace attest {

/// Cases of violated kernels that held.
struct OtherwiseRight {
  std::int64_t cases = 0;
  /// No error of them is a larger share of what is allowed, but for one in a hundred; from the bins of
  /// Tally::histogram, so up to 19 % above the true one. 0 where all are: statistical properties do not count.
  double share = 0;
};
[[nodiscard]] OtherwiseRight otherwise_right(const Summary& summary);

/// "35 of 54 properties (13 need a mask, 2 a causal form, 4 hardly tested)": judged ones of those that are about what
/// the kernels of the run do, and why the others were not. Empty where there is none.
[[nodiscard]] std::string properties_text(const Summary& summary);

/// "of other properties 13 need a mask, 2 a causal form": those that no case was judged of, by what the manifests rule
/// out. Empty where there is none.
[[nodiscard]] std::string needs_text(const Summary& summary);

}  // namespace attest
