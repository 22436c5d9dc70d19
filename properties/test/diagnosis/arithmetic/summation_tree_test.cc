// Orders of sums: their trees, how they are found from outside, and how deep they are declared.
#include "properties/diagnosis/arithmetic/summation_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

namespace attest {
namespace {

using Within = SummationOrder::Within;

std::vector<std::int64_t> first(int terms) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(terms));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

/// Sizes as a sum of that tree shows them: of the smallest node that holds both, all terms where none does.
NodeSizes shown_by(const SummationTree& tree, int terms, int* rounds = nullptr) {
  return [tree, terms, rounds](const auto& pairs) -> std::optional<std::vector<int>> {
    if (rounds != nullptr) ++*rounds;
    std::vector<int> sizes;
    for (const auto& [i, j] : pairs) {
      int least = terms;
      for (const std::uint64_t node : tree)
        if ((node >> i & 1U) != 0 && (node >> j & 1U) != 0) least = std::min(least, std::popcount(node));
      sizes.push_back(least);
    }
    return sizes;
  };
}

TEST(SummationTree, IsFoundOfEveryKnownOrder) {
  for (const int terms : {2, 3, 13, 64}) {
    for (const SummationOrder& order : known_orders()) {
      const SummationTree tree = tree_of(order, terms, first(terms));
      int rounds = 0;
      EXPECT_EQ(find_summation_tree(terms, shown_by(tree, terms, &rounds)), tree) << words_of(order) << ' ' << terms;
      EXPECT_LE(rounds, 14) << words_of(order);
    }
  }
}

TEST(SummationTree, HasNodesOfMoreThanTwoBranches) {
  // (a + b + c + d rounded at once) + e
  const SummationTree tree{0b01111, 0b11111};
  EXPECT_EQ(find_summation_tree(5, shown_by(tree, 5)), tree);
}

TEST(SummationTree, IsNoneOfSizesThatContradictEachOther) {
  // 0 lies with 1 in a node of two, 1 with 2 in one of two, and all three pairs in none of three.
  EXPECT_EQ(find_summation_tree(3, [](const auto& pairs) { return std::optional(std::vector<int>(pairs.size(), 2)); }),
            std::nullopt);
  EXPECT_EQ(find_summation_tree(4, [](const auto&) { return std::optional<std::vector<int>>(); }), std::nullopt);
}

TEST(SummationTree, OfSomeTermsShowsThese) {
  const std::vector<std::int64_t> seen{0, 1, 64, 65};
  // Blocks of 64: the two of a block first.
  EXPECT_EQ(tree_of({.block = 64}, 128, seen), (SummationTree{0b0011, 0b1100, 0b1111}));
  EXPECT_EQ(tree_of({}, 128, seen), (SummationTree{0b0011, 0b0111, 0b1111}));
}

TEST(SummationTree, DepthIsThatOfTheLongestLivedTerm) {
  EXPECT_EQ(depth_of({}, 100), 99);
  EXPECT_EQ(depth_of({.within = Within::backwards}, 100), 99);
  EXPECT_EQ(depth_of({.within = Within::adjacent}, 64), 6);
  EXPECT_EQ(depth_of({.within = Within::lanes, .lanes = 8, .lanes_merged = Within::adjacent}, 64), 7 + 3);
  EXPECT_EQ(depth_of({.block = 16}, 64), 15 + 3);
  EXPECT_EQ(depth_of({.parts = 4}, 64), 15 + 3);
}

TEST(SummationTree, SumsRoundEveryAddition) {
  const std::vector<double> terms{0x1p53, 1, 1, 1};
  const auto round = [](double x) { return x; };  // a double rounds already
  EXPECT_EQ(sum_in({}, terms, round), 0x1p53);
  EXPECT_EQ(sum_in({.within = Within::backwards}, terms, round), 0x1p53 + 4);  // 2^53 + 3 is a tie
  EXPECT_EQ(sum_in({.within = Within::adjacent}, terms, round), 0x1p53 + 2);
}

TEST(SummationTree, DeclaredDepthIsNoLessThanTheOrders) {
  for (const SummationOrder& order : known_orders()) {
    const std::optional<BlockedSums> declared = declared_depth(order);
    if (!declared) continue;
    Arithmetic a;
    a.blocked_sums = *declared;
    for (const std::int64_t n : {1, 2, 5, 16, 63, 64, 65, 127, 1000, 4097})
      EXPECT_GE(accumulation_depth(a, n, n), std::min(n, depth_of(order, n))) << words_of(order) << ' ' << n;
  }
  EXPECT_EQ(declared_depth({}), std::nullopt) << "one after another is as deep as there are keys";
}

}  // namespace
}  // namespace attest
