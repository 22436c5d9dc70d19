// What a tolerance misses of the planted faults on ordinary inputs: the table, what is read off it, and a sample of it
// measured anew.
#include "reports/results/fault_margins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/support/infinity.h"

namespace attest {
namespace {

TEST(FaultMargins, AreMeasuredAsTheTableHasThem) {
  int found = 0;
  for (const FaultMargins& table : fault_margins()) {
    const bool sampled = (table.dtype == DType::f32 && (table.fault == "bf16-scale" || table.fault == "all-zeros")) ||
                         (table.dtype == DType::bf16 && table.fault == "output-truncated");
    if (!sampled) continue;
    ++found;
    const FaultMargins now = measured_margins(table.fault, table.dtype);
    EXPECT_EQ(now.wrong, table.wrong) << table.fault << ": fault_margins_long_test writes the table anew";
    for (std::size_t step = 0; step < relative_steps.size(); ++step)
      EXPECT_NEAR(now.median[step], table.median[step], 1) << table.fault;
  }
  EXPECT_EQ(found, 3);
}

TEST(FaultMargins, GrowSmallerWithTheRelativeTolerance) {
  for (const FaultMargins& one : fault_margins()) {
    EXPECT_GE(one.wrong, 5) << one.fault;
    EXPECT_GT(one.median[0], 0U) << one.fault << ": what is wrong is not exact";
    EXPECT_TRUE(std::ranges::is_sorted(one.median, std::greater<>())) << one.fault;
  }
}

TEST(Misses, GrowWithTheTolerance) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_TRUE(misses_of({0, 0}, dtype).faults.empty());
    const Misses everything = misses_of({infinity, 0}, dtype);
    for (const FaultMargins& one : fault_margins()) {
      if (one.dtype != dtype) continue;
      const bool missed = std::ranges::find(everything.faults, one.fault) != everything.faults.end();
      EXPECT_EQ(missed, one.median[0] != infinite_code) << one.fault << ": NaN never passes";
    }
    EXPECT_LT(static_cast<std::int64_t>(everything.faults.size()), everything.of);
    EXPECT_GT(everything.of, 40) << name_of(dtype);
    std::size_t last = 0;
    for (int e = -40; e < 10; ++e) {
      const std::size_t now = misses_of({std::ldexp(1.0, e), 0}, dtype).faults.size();
      EXPECT_GE(now, last);
      EXPECT_GE(misses_of({std::ldexp(1.0, e), 64 * format_of(dtype).unit}, dtype).faults.size(), now);
      last = now;
    }
  }
  const Misses of_torch = misses_of({1e-5, 1.6e-2}, DType::bf16);
  EXPECT_NE(std::ranges::find(of_torch.faults, "output-truncated"), of_torch.faults.end());
  EXPECT_EQ(std::ranges::find(of_torch.faults, "all-zeros"), of_torch.faults.end());
}

}  // namespace
}  // namespace attest
