// The whole catalogue at given shapes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "properties/proofs/prove.h"
#include "properties/proofs/unprovable.h"

namespace attest {

/// Expects every property that says something about real numbers to be proved by the symbolic back end at one of the
/// shapes at least, none to be contradicted, and every false one to be refuted. With one head alone the properties that
/// need more are not asked.
inline void prove_everything(const std::vector<ProofShape>& shapes, std::int64_t variants = 1) {
  std::int64_t most_heads = 1;
  for (const ProofShape& shape : shapes) most_heads = std::max(most_heads, shape.heads);
  for (const Property* const property : catalogue()) {
    if (!why_unprovable(property->name).empty()) continue;
    constexpr std::array of_heads{"attention.grouped-query", "multihead.head-permutation",
                                  "sink.per-head",           "alibi.heads",
                                  "backward.head-map",       "backward.grouped-query"};
    if (most_heads == 1 && std::ranges::count(of_heads, property->name) > 0) continue;
    const Proof proof = prove(*property, {.shapes = shapes, .variants = variants});
    const Evidence expected = property->is_counterexample() ? Evidence::refuted : Evidence::symbolic;
    EXPECT_EQ(proof.evidence, expected) << property->name << ": " << proof.words;
    EXPECT_TRUE(expected == Evidence::refuted || proof.equalities > 0) << property->name;
  }
}

}  // namespace attest
