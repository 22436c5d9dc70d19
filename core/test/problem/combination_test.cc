#include "core/problem/combination.h"

#include <gtest/gtest.h>

#include "core/problem/sight.h"

namespace attest {
namespace {

/// Four heads on so many, two queries and three keys, with a left end.
Problem windowed(std::int64_t kv_heads) {
  Problem c;
  c[Slot::q] = Tensor(DType::f32, {1, 4, 2, 2});
  c[Slot::k] = c[Slot::v] = Tensor(DType::f32, {1, kv_heads, 3, 2});
  c.window_left = 1;
  settle_alignment(c);
  return c;
}

TEST(Combination, IsWhatAProblemHasBesideItsVariant) {
  Problem c = windowed(4);
  EXPECT_EQ(kind_of(combination_of(c).value()), "combination:window/aligned-top-left/not-grouped/no-mask");
  c.alignment = Causal::bottom_right;
  EXPECT_EQ(kind_of(combination_of(c).value()), "combination:window/aligned-bottom-right/not-grouped/no-mask");
  c = windowed(2);
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 3});
  c.causal = Causal::bottom_right;
  settle_alignment(c);
  EXPECT_EQ(kind_of(combination_of(c).value()), "combination:window/causal-bottom-right/grouped/bool-mask");
  c.causal = Causal::top_left;
  c[Slot::mask] = Tensor(DType::f32, {1, 1, 2, 3});
  settle_alignment(c);
  EXPECT_EQ(kind_of(combination_of(c).value()), "combination:window/causal-top-left/grouped/additive-mask");
  c.window_left = -1;
  settle_alignment(c);
  EXPECT_FALSE(combination_of(c).has_value()) << "without a variant there is nothing to count";
}

TEST(Combination, IsReadAsItIsWritten) {
  for (std::size_t placing = 0; placing < Words<Placing>::names.size(); ++placing)
    for (const bool grouped : {false, true})
      for (const Masking masking : {Masking::none, Masking::boolean, Masking::additive}) {
        const Combination one{"window+lengths", static_cast<Placing>(placing), grouped, masking};
        EXPECT_EQ(combination_of_kind(kind_of(one)), one);
        EXPECT_TRUE(one.has_variant("lengths"));
        EXPECT_FALSE(one.has_variant("length"));
      }
  for (const char* const other :
       {"", "mask:none", "combination:", "combination:window", "combination:/not-causal/grouped/no-mask",
        "combination:window/not-causal/grouped/no-mask/more", "combination:window/causal/grouped/no-mask",
        "combination:window/not-causal/pooled/no-mask", "combination:window/not-causal/grouped/masked"})
    EXPECT_FALSE(combination_of_kind(other).has_value()) << other;
}

}  // namespace
}  // namespace attest
