// Where a bound comes from: its parts add up to it, and each stage's share grows with what the stage is declared to do.
#include "core/bound/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "core/measure/error_statistics.h"
#include "core/oracle/oracle.h"
#include "core/oracle/rows/row_oracle.h"
#include "core/test/cases.h"

namespace attest::detail {
namespace {

Case drawn(double q_size, double v_size, std::uint64_t seed, std::int64_t keys) {
  std::mt19937_64 random(seed);
  Case c = test::attention_of({.queries = 2, .keys = keys, .dk = 4, .dv = 3}, [&](Slot slot, const Shape& shape) {
    const double size = slot == Slot::q ? q_size : slot == Slot::v ? v_size : 1;
    return test::filled(DType::f32, shape, [&] { return size * (static_cast<double>(random() % 4001) - 2000) / 1024; });
  });
  c.scale = 0.5;
  return c;
}

/// Calls use(oracle, k) for every element.
void for_each_element(const Case& c, const Arithmetic& arithmetic, bool want_lse, int level,
                      const std::function<void(const RowOracle&, std::int64_t)>& use) {
  Head head;
  RowOracle oracle;
  head.load(c, sequence_of(c, 0), 0, false);
  const Profile profile =
      profile_of(arithmetic, {.keys = head.keys, .dk = head.dk, .scale = head.scale, .bias = head.bias});
  for (std::int64_t i = 0; i < head.queries; ++i) {
    ASSERT_EQ(oracle.start(head, i, profile, false, want_lse, 4096), Excuse::none);
    const bool raised = level == 1 || (level == 2 ? oracle.evaluate_double_double() : oracle.evaluate_balls(128, 4096));
    ASSERT_TRUE(raised);
    for (std::int64_t k = 0; k < head.dv; ++k) use(oracle, k);
  }
}

std::array<double, stage_count> parts_of(const RowOracle& oracle, std::int64_t k) {
  return budget_parts(oracle.profile(), oracle.row().keys, oracle.terms(), oracle.row().values, oracle.element(k), k,
                      oracle.value(k), oracle.scratch());
}

TEST(Budget, PartsAddUpToTheBound) {
  std::vector<Arithmetic> all{universal_arithmetic(DType::f32, DType::f32),
                              universal_arithmetic(DType::f32, DType::f16),
                              universal_arithmetic(DType::bf16, DType::bf16)};
  all.push_back(all[0]), all.back().weights = DType::bf16, all.back().weights_in_denominator = true;
  all.push_back(all[0]), all.back().split_merge = true;
  all.push_back(all[0]), all.back().flushes_subnormals = true;
  // Where a weight may lose half of the smallest f16, underflow shows in the sum of the weights as well.
  all.push_back(universal_arithmetic(DType::f16, DType::f16));
  all.back().score_sums = all.back().accumulate = DType::f16;
  std::int64_t elements = 0;
  for (const Arithmetic& arithmetic : all) {
    for (const double q_size : {0.1, 1.0, 60.0}) {
      for (const double v_size : {1.0, 1e-38, 1e30}) {
        for (const std::int64_t keys : {1, 7, 80}) {
          const Case c = drawn(q_size, v_size, 7, keys);
          for (const int level : {1, 2, 3}) {
            for (const bool want_lse : {false, true}) {
              for_each_element(c, arithmetic, want_lse, level, [&](const RowOracle& oracle, std::int64_t k) {
                const double allowed = oracle.element(k).allowed;
                if (!std::isfinite(allowed)) return;
                const auto parts = parts_of(oracle, k);
                ++elements;
                EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0) / allowed, 1, 0x1p-18)
                    << "q " << q_size << ", v " << v_size << ", " << keys << " keys, level " << level;
                for (const double part : parts) EXPECT_GE(part, 0);
              });
            }
          }
        }
      }
    }
  }
  EXPECT_GT(elements, 1000);
}

/// The stage with the largest share in most elements.
Stage largest(const Arithmetic& arithmetic) {
  std::array<double, stage_count> sum{};
  for_each_element(drawn(1, 1, 11, 12), arithmetic, true, 1, [&](const RowOracle& oracle, std::int64_t k) {
    const Budget budget = budget_of(parts_of(oracle, k));
    for (std::size_t i = 0; i < stage_count; ++i) sum[i] += budget[i];
  });
  return static_cast<Stage>(std::max_element(sum.begin(), sum.end()) - sum.begin());
}

TEST(Budget, NamesTheStageThatIsDeclaredCoarse) {
  Arithmetic fine = universal_arithmetic(DType::f32, DType::f32);
  Arithmetic a = fine;
  a.exp_ulp = 1e5;
  EXPECT_EQ(largest(a), Stage::exponentials);
  a = fine, a.stored_biased = DType::bf16;
  EXPECT_EQ(largest(a), Stage::scores);
  a = fine, a.prescaled_q = DType::bf16;
  EXPECT_EQ(largest(a), Stage::scores);
  a = fine, a.weights = DType::bf16;
  EXPECT_EQ(largest(a), Stage::weights);
  a = fine, a.accumulate = DType::bf16;
  EXPECT_EQ(largest(a), Stage::sums);
  a = fine, a.output = DType::bf16;
  EXPECT_EQ(largest(a), Stage::output);
}

}  // namespace
}  // namespace attest::detail
