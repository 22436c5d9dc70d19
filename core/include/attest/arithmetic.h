// Arithmetic: what a kernel declares about how it computes (manifest key "arithmetic", kernel-interface.md section 3).
// The profile of error-bounds.md is derived from it, see error_bound.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "attest/dtype.h"

namespace attest {

enum class Rounding { nearest, toward_zero };
/// Reference point subtracted from the scores: the maximum so far, one that may lag by lazy_nats, or none.
enum class MaxPolicy { running, lazy, none };

/// A sum over keys in blocks: each block is summed in any way of at most `depth` additions of a term, then the blocks
/// are merged one after another, or in a balanced tree.
struct BlockedSums {
  std::int64_t block = 1;  ///< keys per block, >= 1
  std::int64_t depth = 1;  ///< additions that a term passes inside its block, >= 1
  bool pairwise = false;   ///< the blocks are merged in a balanced tree
  [[nodiscard]] bool operator==(const BlockedSums&) const = default;
};

/// Declared arithmetic for one input dtype. The defaults made by universal_arithmetic are the universal profile: sums
/// in the dtype itself, in f32 for 16- and 8-bit dtypes, everything else as loose as a legitimate kernel may be.
struct Arithmetic {
  DType input = DType::f32;               ///< dtype of q, k, v
  DType output = DType::f32;              ///< dtype of out
  DType score_sums = DType::f32;          ///< accumulator of q.k (u_s)
  DType accumulate = DType::f32;          ///< accumulator of the sums of weights and of weights times values (u_a)
  DType weights = DType::f32;             ///< format the weights are rounded to before they multiply V (u_p, lam_p)
  bool weights_in_denominator = false;    ///< the rounded weights are summed too (p_in_denom)
  std::optional<DType> stored_raw;        ///< q.k written to memory in this format
  std::optional<DType> stored_scaled;     ///< scale*q.k written to memory
  std::optional<DType> stored_biased;     ///< the score after mask and scale written to memory ("scores")
  std::optional<DType> prescaled_q;       ///< q*scale is rounded to this format before the product
  std::optional<DType> mask_format;       ///< the mask is converted to this format (lower than its own)
  Rounding rounding = Rounding::nearest;  ///< of the sums (toward_zero: truncating tensor cores)
  double exp_ulp = 0.0;  ///< error of exp in ulp of the score format; 0: the universal 2^-22-like value
  MaxPolicy max = MaxPolicy::running;
  double lazy_nats = 0.0;       ///< threshold of max == lazy
  bool base2 = true;            ///< scores may be multiplied by log2(e) and exponentiated by exp2
  bool folded_exp2 = true;      ///< exp2(fma(x, c, -fl(m c))): m*scale rounded apart (c_m)
  bool split_merge = true;      ///< partial results may be merged through their log-sum-exp
  bool normalise_first = true;  ///< weights may be divided by their sum before they multiply V
  bool flushes_subnormals = false;
  bool flushes_inputs = false;                  ///< subnormal inputs are read as zero (DAZ)
  std::optional<std::int64_t> summation_depth;  ///< depth h of the accumulation tree where declared; else n, any order
  std::optional<BlockedSums> blocked_sums;      ///< the depth as a function of n; at most one of the two is declared
  std::int64_t block = 16;                      ///< smallest key block: at most ceil(N/block)+2 rescalings of a term

  [[nodiscard]] bool operator==(const Arithmetic&) const = default;
};

/// Depth h of the accumulation over a row of `keys` keys of which `visible` are unmasked, merges included: the most
/// additions that round a term. `visible` (any order) where none is declared, and never more: adding the exact 0 of a
/// masked key rounds nothing, but masked keys do fill blocks, so that blocks are counted over all keys.
[[nodiscard]] inline std::int64_t accumulation_depth(const Arithmetic& a, std::int64_t keys, std::int64_t visible) {
  std::int64_t depth = visible;
  if (a.summation_depth) depth = *a.summation_depth;
  if (a.blocked_sums) {
    const BlockedSums& sums = *a.blocked_sums;
    const std::int64_t blocks = keys / sums.block + (keys % sums.block != 0 ? 1 : 0);
    // A balanced tree over `blocks` leaves is ceil(log2(blocks)) deep.
    const bool tree = sums.pairwise && blocks > 0;
    const std::int64_t merges = tree ? std::bit_width(static_cast<std::uint64_t>(blocks - 1)) : blocks;
    // min(depth + merges, visible) without a sum that could overflow.
    const std::int64_t merged = std::min(merges, visible);
    depth = merged + std::min(sums.depth, visible - merged);
  }
  return std::min(depth, visible);
}

/// What is assumed of a kernel that declares nothing.
[[nodiscard]] Arithmetic universal_arithmetic(DType input, DType output);

}  // namespace attest
