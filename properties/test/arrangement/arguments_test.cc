#include "properties/arrangement/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace attest {
namespace {

Case numbered(int k) {
  Case c;
  c.provenance.property = "attention.query-deletion";
  c.provenance.seed = "1";
  c.provenance.k = std::to_string(k);
  return c;
}

TEST(Arguments, AreInRangeAndFunctionsOfTheCase) {
  std::set<std::int64_t> seen;
  for (int k = 0; k < 200; ++k) {
    const std::int64_t i = argument(numbered(k), "i", 5);
    ASSERT_GE(i, 0);
    ASSERT_LT(i, 5);
    EXPECT_EQ(i, argument(numbered(k), "i", 5));
    seen.insert(i);
  }
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_NE(seed_argument(numbered(0), "i"), seed_argument(numbered(1), "i"));
  EXPECT_NE(seed_argument(numbered(0), "i"), seed_argument(numbered(0), "s"));
}

TEST(Arguments, MayBeStatedByTheCase) {
  Case c = numbered(3);
  c.provenance.arguments = "i=2 is=4 s=x";
  EXPECT_EQ(argument(c, "i", 9), 2);
  EXPECT_EQ(argument(c, "is", 9), 4);
  EXPECT_EQ(argument(c, "i", 2), 0) << "taken modulo the extent, so that a smaller case is still one";
  EXPECT_EQ(argument(c, "s", 9), argument(numbered(3), "s", 9)) << "what is not a number is not stated";
}

TEST(Arguments, PermutationsArePermutationsAndNeverTheIdentity) {
  for (int k = 0; k < 200; ++k) {
    for (const std::int64_t n : {0, 1, 2, 3, 8}) {
      Indices order = permutation_argument(numbered(k), "pi", n);
      if (n >= 2) {
        EXPECT_NE(order, all_of(n));
      }
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, all_of(n));
    }
  }
}

}  // namespace
}  // namespace attest
