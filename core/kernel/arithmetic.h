// Arithmetic: what a kernel declares about how it computes (manifest key "arithmetic", kernel-interface.md section 3).
// The profile of error-bounds.md is derived from it, see error_bound.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/support/words.h"
#include "core/value/dtype.h"

namespace attest {

enum class Rounding { nearest, toward_zero };
template <>
struct Words<Rounding> {
  static constexpr std::array<std::string_view, 2> names{"nearest", "toward-zero"};
};

/// Reference point subtracted from the scores: the maximum so far, one that may lag by lazy_nats, none, or not stated
/// (the bound then covers all but lazy, and a finite answer is required as of a kernel that takes the maximum).
enum class MaxPolicy { running, lazy, none, unstated };
/// Not stated, it has none.
template <>
struct Words<MaxPolicy> {
  static constexpr std::array<std::string_view, 3> names{"running", "lazy", "none"};
};

/// What an error of tanh is measured in: ulp of its result in the score format, that result, or 1. Not stated, it is 4u
/// of the result and 4u of 1, as of one that is made of exponentials.
enum class TanhMeasure { ulp, relative, absolute, unstated };
template <>
struct Words<TanhMeasure> {
  static constexpr std::array<std::string_view, 3> names{"ulp", "relative", "absolute"};
};
/// How far tanh may be off, of any argument.
struct TanhError {
  TanhMeasure measure = TanhMeasure::unstated;
  double value = 0;  ///< > 0, where one is stated
  [[nodiscard]] bool operator==(const TanhError&) const = default;
};

/// Where the weights that dropout keeps are divided by 1 - p: on the output, on the weights before they are rounded to
/// their format, or on V in its own format, as where a mask of zeros goes over the weights. Not stated: one of the
/// first two.
enum class DropoutPlace { output, weights, values, unstated };
template <>
struct Words<DropoutPlace> {
  static constexpr std::array<std::string_view, 3> names{"output", "weights", "values"};
};

/// What a slope m adds to the score of key j in a row at position p: -m|p - j|; under a causal form m*j, which is the
/// same but for one shift of all of a row's scores; or that over the scale, or a cap, to the product before it is
/// multiplied by it. Without a causal form it is the first.
enum class SlopeForm { distance, column, column_divided };
template <>
struct Words<SlopeForm> {
  static constexpr std::array<std::string_view, 3> names{"distance", "column", "column-divided"};
};

/// Where the factors of q, k and v act: those of q and k on their products, and v's on the weights or on their sum with
/// the values; or each on its own tensor, whose numbers then are rounded to q's format, where that has 16 bits or more
/// (else to one of 16), or to that of the sums alone. Not stated: one of the first two.
enum class DescalePlace { products, inputs, sums, unstated };
template <>
struct Words<DescalePlace> {
  static constexpr std::array<std::string_view, 3> names{"products", "inputs", "sums"};
};

/// A sum over keys in blocks: each block is summed in any way of at most `depth` additions of a term, then the blocks
/// are merged one after another, or in a balanced tree.
struct BlockedSums {
  std::int64_t block = 1;  ///< keys per block, >= 1
  std::int64_t depth = 1;  ///< additions that a term passes inside its block, >= 1
  bool pairwise = false;   ///< the blocks are merged in a balanced tree
  [[nodiscard]] bool operator==(const BlockedSums&) const = default;
};

/// Declared arithmetic for one input dtype. universal_arithmetic is the loosest a legitimate kernel may be; every field
/// that is declared tighter narrows the bound, so a kernel must declare only what is true of it. "u" is the unit
/// roundoff of the score format, score_sums: scores, their maximum, the exponent and exp are kept in it.
struct Arithmetic {
  DType input = DType::f32;   ///< dtype of q, k, v
  DType output = DType::f32;  ///< dtype of out; rounded to once, unless it is no coarser than `accumulate`
  /// Accumulator of q.k, in any order, each term at most dk roundings (u_s, n_s); the score format.
  DType score_sums = DType::f32;
  /// Accumulator of the sum of weights and of weights times values (u_a). One more rounding per term is allowed where
  /// it is coarser than the score format.
  DType accumulate = DType::f32;
  /// Format the weights are rounded to before they multiply V (u_p, lam_p); no coarser than score_sums: not rounded.
  DType weights = DType::f32;
  bool weights_in_denominator = false;  ///< the rounded weights are summed too (p_in_denom)
  std::optional<DType> stored_raw;      ///< q.k written to memory in this format
  std::optional<DType> stored_scaled;   ///< scale*q.k written to memory
  std::optional<DType>
      stored_capped;  ///< of a cap c: scale*q.k/c, its tanh, and c times that written to memory, or some
  std::optional<DType> stored_biased;  ///< the score after mask and scale written to memory ("scores")
  /// q*scale is rounded to this format before the product, and the scale itself may be; absent: q is not scaled first.
  std::optional<DType> prescaled_q;
  std::optional<DType> mask_format;  ///< the mask is converted to this format first; what overflows counts as -inf
  Rounding rounding =
      Rounding::nearest;  ///< of the sums q.k and of weights times values (toward_zero: 2u, no refinement)
  /// Error of exp in ulp of the score format (glibc: 1), also where its result is subnormal, and 0 below that. 0: not
  /// stated; relative error 4u on normal results, and below the smallest normal anything up to it (flushed or clamped).
  double exp_ulp = 0.0;
  TanhError tanh;  ///< of capped scores (glibc: 2.5 ulp)
  MaxPolicy max = MaxPolicy::running;
  double lazy_nats = 0.0;  ///< threshold of max == lazy, >= 0
  /// Scores may be multiplied by log2(e) (folded into the scale or not, the bias on its own) and exponentiated by exp2:
  /// one more rounding of the scaled product, one after the bias, two in the exponent, errors of both constants. false:
  /// one rounding each for scale, bias, subtraction, and constants are exact where the scale is a power of two.
  bool base2 = true;
  /// exp2(fma(x, c, -fl(m c))): m*scale is rounded apart from x*scale (c_m), so the domain ends where u|s| is large
  /// (D2).
  bool folded_exp2 = true;
  bool split_merge = true;  ///< partial results may be merged through their log-sum-exp: two more rescalings, lse terms
  bool normalise_first = true;      ///< weights may be divided by their sum before they multiply V
  bool flushes_subnormals = false;  ///< results below the smallest normal become 0
  bool flushes_inputs = false;      ///< subnormal inputs are read as zero (DAZ)
  /// Additions the longest-lived term passes in the sums over keys, merges of blocks and splits included (h); absent:
  /// any order, so as many as there are keys.
  std::optional<std::int64_t> summation_depth;
  std::optional<BlockedSums> blocked_sums;  ///< the depth as a function of n; at most one of the two is declared
  /// Smallest key block: a term passes at most ceil(N/block) rescalings by exp(m_old - m_new), two more with
  /// split_merge. 1: online per key. 0: weights are formed from the row's final maximum and never rescaled.
  std::int64_t block = 16;
  /// The reference point of the exponents is no less than a row's sink; false: that of the keys alone, and e^(sink -
  /// it) may overflow. Stated with the variant (manifest key "variants"."sink"."in_max").
  bool sink_in_max = true;
  /// Stated with the variant (manifest key "variants"."dropout"."applied").
  DropoutPlace dropout = DropoutPlace::unstated;
  /// Stated with the variant (manifest key "variants"."alibi"."form").
  SlopeForm slopes = SlopeForm::distance;
  bool lse_of_columns = false;    ///< LseConvention::of_columns
  bool lse_without_sink = false;  ///< stated with the variant (manifest key "variants"."sink"."lse")
  /// Stated with the variant (manifest key "variants"."descale"."applied").
  DescalePlace descale = DescalePlace::unstated;
  bool bias_in_sum = true;  ///< the bias may be the initial value of the accumulator of q.k
  /// Of the normalisation (c_div): 1 a division, 2 a reciprocal times, 3 an approximate one
  std::int64_t division_roundings = 3;

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
    const auto levels = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(blocks - 1)));
    const std::int64_t merges = tree ? levels : blocks;
    // min(depth + merges, visible) without a sum that could overflow.
    const std::int64_t merged = std::min(merges, visible);
    depth = merged + std::min(sums.depth, visible - merged);
  }
  return std::min(depth, visible);
}

/// What is assumed of a kernel that declares nothing: sums in the dtype itself, in f32 for 16- and 8-bit dtypes, whose
/// weights may be rounded to the dtype and summed so; q may be scaled first (in the format of the sums); scores are not
/// written to memory in a narrower format; everything else as loose as the fields' comments allow.
[[nodiscard]] Arithmetic universal_arithmetic(DType input, DType output);

}  // namespace attest
