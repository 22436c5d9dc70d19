// Weights and scores of a case: what properties of softmax and of attention's weights need beside the output.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/generators/recipe.h"
#include "properties/language/result.h"

namespace attest {

/// softmax(A) read from an attention kernel: the case with q = A as it is and K = I, V = I, so that its scores are
/// scale * A and its output is its weights. Mask, causal form, window and chunks go; every head gets keys of its own.
[[nodiscard]] Case with_identity_keys(Case c);

/// The weights alpha of a case as the kernel has them, through V = I: columns of the identity, in blocks as wide as the
/// kernel takes them. Block b holds the weights of keys b*width …, a column each; columns beyond N are 0. None where
/// N = 0.
struct WeightBlocks {
  std::int64_t width = 1;
  std::vector<Result> blocks;
};
[[nodiscard]] WeightBlocks read_weights(Kernel& kernel, const Case& c);
/// So few keys, and then rows, that reading them does not take minutes: it costs the square of the keys.
void few_to_read(Recipe& r);

/// The score of row i and key j of an attention case, in double: scale*q.k + b or scale*(q.k + b), or what a cap makes
/// of it, a slope's part in b, with a proved bound of its own error, and `size`, the sum of the absolute values of its
/// terms. Of a key that nothing hides.
struct Score {
  double value = 0, error = 0, size = 0;
};
/// The same of the scaled product alone, without a cap, a mask and a slope.
[[nodiscard]] Score scaled_product(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);
[[nodiscard]] Score score_of(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

}  // namespace attest
