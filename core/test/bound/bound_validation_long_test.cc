// The bound against the fleet at length, and against a search for inputs that would break it. Tens of minutes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "core/test/fleet/climb.h"
#include "core/test/fleet/fleet.h"
#include "core/test/fleet/validation.h"

namespace attest::fleet {
namespace {

void expect_no_violation(const Ledger& ledger) {
  std::fputs(ledger.table().c_str(), stdout);
  testing::Test::RecordProperty("checks", std::to_string(ledger.total().checks));
  testing::Test::RecordProperty("worst", std::to_string(ledger.total().worst));
  for (const auto& [kernel, regimes] : ledger.entries()) {
    for (const auto& [regime, entry] : regimes) EXPECT_EQ(entry.violations, 0) << entry.first_violation;
  }
}

class BoundValidationLong : public testing::TestWithParam<Share> {};

TEST_P(BoundValidationLong, NoCorrectKernelExceedsIt) {
  // Many small shapes, fewer large ones.
  Ledger ledger =
      validate_bound(GetParam().dtype, {.first_seed = 1000, .seeds = 900, .max_keys = 256, .max_head_dim = 64});
  ledger.merge(
      validate_bound(GetParam().dtype, {.first_seed = 5000, .seeds = 60, .max_keys = 4096, .max_head_dim = 256}));
  expect_no_violation(ledger);
  EXPECT_GE(ledger.total().checks, GetParam().least);
}

TEST_P(BoundValidationLong, NoSearchFindsAnInputThatExceedsIt) {
  Ledger ledger;
  std::uint64_t seed = 1;
  for (const Emulation& kernel : correct_kernels()) {
    if (kernel.arithmetic.input == GetParam().dtype) climb(kernel, seed++, /*steps=*/40'000, ledger);
  }
  expect_no_violation(ledger);
}

TEST_P(BoundValidationLong, NoSearchFindsAnInputThatExceedsItWithAVariant) {
  for (const Added added : every_added) {
    SCOPED_TRACE(testing::PrintToString(added));
    Ledger ledger;
    std::uint64_t seed = 100;
    for (const Emulation& kernel : correct_kernels())
      if (kernel.arithmetic.input == GetParam().dtype) climb(kernel, seed++, /*steps=*/20'000, ledger, added);
    expect_no_violation(ledger);
  }
}

// For each of what may be added, in each format: 1e7 checks. Many small shapes, fewer large ones.
TEST_P(BoundValidationLong, NoCorrectKernelExceedsItWithAVariant) {
  for (const Added added : every_added) {
    SCOPED_TRACE(testing::PrintToString(added));
    Ledger ledger;
    for (std::uint64_t seed = 20'000; ledger.total().checks < 10'000'000; seed += 10'000) {
      ledger.merge(validate_bound(
          GetParam().dtype, {.first_seed = seed, .seeds = 900, .max_keys = 256, .max_head_dim = 64, .added = added}));
      ledger.merge(validate_bound(
          GetParam().dtype,
          {.first_seed = seed + 5'000, .seeds = 60, .max_keys = 4096, .max_head_dim = 256, .added = added}));
    }
    expect_no_violation(ledger);
  }
}

// Together more than 1e7 checks.
INSTANTIATE_TEST_SUITE_P(All, BoundValidationLong,
                         testing::Values(Share{DType::f64, 1'800'000}, Share{DType::f32, 4'000'000},
                                         Share{DType::f16, 2'300'000}, Share{DType::bf16, 2'200'000}),
                         dtype_name);

}  // namespace
}  // namespace attest::fleet
