// Proofs at larger shapes: symbolic ones of the whole catalogue, and in the finite field.
#include <gtest/gtest.h>

#include "properties/test/proofs/prove_everything.h"

namespace attest {
namespace {

TEST(ProveLong, EveryPropertyAtEightByEight) {
  prove_everything({{8, 8, 4, 4, 2}});
}
TEST(ProveLong, EveryPropertyAtTwentyFourKeys) {
  prove_everything({{24, 24, 2, 2, 1}});
}
TEST(ProveLong, EveryPropertyAtFourHeads) {
  prove_everything({{6, 6, 2, 2, 4}});
}

void expect_probable(std::string_view name, const ProofShape& shape) {
  const Proof proof =
      prove(*properties_matching(name).at(0), {.shapes = {shape}, .variants = 1, .back_end = BackEnd::finite_field});
  EXPECT_EQ(proof.evidence, Evidence::probabilistic) << name << ": " << proof.words;
  EXPECT_LE(proof.log2_error, largest_log2_error) << name;
}

TEST(ProveLong, AttentionOfSixtyFourInAFiniteField) {
  for (const char* const name :
       {"attention.permutation-equivariance", "attention.key-value-permutation", "attention.linear-in-values",
        "masked.key-value-deletion", "masked.row-shift", "causal.prefix", "softmax.rows-sum-to-one"})
    expect_probable(name, {64, 64, 16, 16, 2});
}

TEST(ProveLong, AttentionOfAHundredAndTwentyEightInAFiniteField) {
  expect_probable("attention.permutation-equivariance", {128, 128, 64, 64, 8});
}

}  // namespace
}  // namespace attest
