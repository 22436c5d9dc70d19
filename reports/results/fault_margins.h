// What a tolerance that is suggested for ordinary inputs would miss: the planted faults, measured once on such inputs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/error_statistics.h"
#include "reports/results/tolerance.h"

namespace attest {

/// A planted fault in a dtype on ordinary cases (is_ordinary) of the properties that catch it.
struct FaultMargins {
  DType dtype;
  std::string_view fault;
  std::int64_t wrong;  ///< cases with an element beyond its bound
  /// By relative_steps: the least absolute tolerance that accepts every such element in half of these cases;
  /// infinite_code where they are NaN or Inf.
  std::array<LogCode, relative_steps.size()> median;
};

/// Of every fault in every dtype that is wrong on a few ordinary cases at least; from fault_margins.inc, which
/// fault_margins_long_test writes and holds against what it measures anew.
[[nodiscard]] std::span<const FaultMargins> fault_margins();

/// What is measured, on the first cases of seed 1: up to `enough` wrong ones of at most `cases`.
[[nodiscard]] FaultMargins measured_margins(std::string_view fault, DType dtype, std::int64_t cases = 6000,
                                            std::int64_t enough = 25);

/// The faults that the tolerance misses on half of the ordinary cases that show them, or more; in the order of the
/// catalogue. Its relative part counts as the next smaller of relative_steps, so there may be more.
struct Misses {
  std::vector<std::string_view> faults;
  std::int64_t of = 0;  ///< faults that are measured in the dtype
};
[[nodiscard]] Misses misses_of(const Tolerance& tolerance, DType dtype);

}  // namespace attest
