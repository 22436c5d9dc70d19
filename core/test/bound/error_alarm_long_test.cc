// The probabilistic bound against the fleet at length. Minutes.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/bound/error_alarm.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {
namespace {

class AlarmValidationLong : public testing::TestWithParam<Share> {};

TEST_P(AlarmValidationLong, NoCorrectKernelRaisesIt) {
  // Many small shapes, fewer large ones, where the probabilistic bound is far below the proved one.
  Ledger ledger = validate_bound(
      GetParam().dtype,
      {.first_seed = 2000, .seeds = 130, .max_keys = 512, .max_head_dim = 64, .alarm_probability = alarm_probability});
  ledger.merge(validate_bound(GetParam().dtype, {.first_seed = 6000,
                                                 .seeds = 24,
                                                 .max_keys = 4096,
                                                 .max_head_dim = 256,
                                                 .alarm_probability = alarm_probability}));
  std::fputs(ledger.alarm_table().c_str(), stdout);
  RecordProperty("elements", std::to_string(ledger.total().alarm.elements));
  EXPECT_GE(ledger.total().alarm.elements, GetParam().least);
  for (const auto& [kernel, regimes] : ledger.entries())
    for (const auto& [regime, entry] : regimes) EXPECT_EQ(entry.alarm.beyond, 0) << entry.first_alarm;
}

// Together more than 1e6 elements.
INSTANTIATE_TEST_SUITE_P(All, AlarmValidationLong,
                         testing::Values(Share{DType::f64, 180'000}, Share{DType::f32, 420'000},
                                         Share{DType::f16, 240'000}, Share{DType::bf16, 200'000}),
                         dtype_name);

}  // namespace
}  // namespace attest::fleet
