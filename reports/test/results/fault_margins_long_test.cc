// fault_margins.inc is what is measured: all of it. ATTEST_WRITE_MARGINS=FILE writes it anew.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "properties/faults/faults.h"
#include "properties/road/jobs.h"
#include "reports/results/fault_margins.h"

namespace attest {
namespace {

/// Of fewer cases a median says nothing.
constexpr std::int64_t fewest = 5;

TEST(FaultMargins, AreThoseOfTheTable) {
  std::vector<std::pair<std::string_view, DType>> which;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const PlantedFault& fault : planted_faults()) {
      const bool has = std::ranges::find(fault.dtypes, dtype) != fault.dtypes.end();
      // Outputs of a kernel whose backward pass alone is wrong are right.
      if (has && !fault.caught_by.empty() && !fault.backward) which.emplace_back(fault.name, dtype);
    }
  }
  std::vector<FaultMargins> measured(which.size());
  in_parallel(which.size(), static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
              [&](std::size_t n) { measured[n] = measured_margins(which[n].first, which[n].second); });
  std::erase_if(measured, [](const FaultMargins& one) { return one.wrong < fewest; });
  if (const char* const file = std::getenv("ATTEST_WRITE_MARGINS")) {
    std::ofstream out(file);
    for (const FaultMargins& one : measured)
      out << fmt::format("{{DType::{}, \"{}\", {}, {{{}}}}},\n", name_of(one.dtype), one.fault, one.wrong,
                         fmt::join(one.median, ", "));
    GTEST_SKIP() << "written: " << file;
  }
  ASSERT_EQ(measured.size(), fault_margins().size());
  for (std::size_t n = 0; n < measured.size(); ++n) {
    const FaultMargins &now = measured[n], &table = fault_margins()[n];
    EXPECT_EQ(now.fault, table.fault);
    EXPECT_EQ(now.dtype, table.dtype);
    EXPECT_EQ(now.wrong, table.wrong) << now.fault;
    // Another library's exp may round a code to the next.
    for (std::size_t step = 0; step < relative_steps.size(); ++step)
      EXPECT_NEAR(now.median[step], table.median[step], 1) << now.fault << " " << name_of(now.dtype);
  }
}

}  // namespace
}  // namespace attest
