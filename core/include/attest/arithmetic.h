// Arithmetic: what a kernel declares about how it computes (manifest key "arithmetic", kernel-interface.md section 3).
// The profile of error-bounds.md is derived from it, see error_bound.h.
#pragma once

#include <cstdint>
#include <optional>

#include "attest/dtype.h"

namespace attest {

enum class Rounding { nearest, toward_zero };
/// Reference point subtracted from the scores: the maximum so far, one that may lag by lazy_nats, or none.
enum class MaxPolicy { running, lazy, none };

/// Declared arithmetic for one input dtype. The defaults made by universal_arithmetic are the universal profile: sums in
/// the dtype itself, in f32 for 16- and 8-bit dtypes, everything else as loose as a legitimate kernel may be.
struct Arithmetic {
  DType input = DType::f32;        ///< dtype of q, k, v
  DType output = DType::f32;       ///< dtype of out
  DType score_sums = DType::f32;   ///< accumulator of q.k (u_s)
  DType accumulate = DType::f32;   ///< accumulator of the sums of weights and of weights times values (u_a)
  DType weights = DType::f32;      ///< format the weights are rounded to before they multiply V (u_p, lam_p)
  bool weights_in_denominator = false;  ///< the rounded weights are summed too (p_in_denom)
  std::optional<DType> stored_raw;      ///< q.k written to memory in this format
  std::optional<DType> stored_scaled;   ///< scale*q.k written to memory
  std::optional<DType> stored_biased;   ///< the score after mask and scale written to memory ("scores")
  std::optional<DType> prescaled_q;     ///< q*scale is rounded to this format before the product
  std::optional<DType> mask_format;     ///< the mask is converted to this format (lower than its own)
  Rounding rounding = Rounding::nearest;  ///< of the sums (toward_zero: truncating tensor cores)
  double exp_ulp = 0.0;                 ///< error of exp in ulp of the score format; 0: the universal 2^-22-like value
  MaxPolicy max = MaxPolicy::running;
  double lazy_nats = 0.0;               ///< threshold of max == lazy
  bool base2 = true;                    ///< scores may be multiplied by log2(e) and exponentiated by exp2
  bool folded_exp2 = true;              ///< exp2(fma(x, c, -fl(m c))): m*scale rounded apart (c_m)
  bool split_merge = true;              ///< partial results may be merged through their log-sum-exp
  bool normalise_first = true;          ///< weights may be divided by their sum before they multiply V
  bool flushes_subnormals = false;
  bool flushes_inputs = false;          ///< subnormal inputs are read as zero (DAZ)
  std::optional<std::int64_t> summation_depth;  ///< depth h of the accumulation tree where declared; else n, any order
  std::int64_t block = 16;              ///< smallest key block: at most ceil(N/block)+2 rescalings of a term

  [[nodiscard]] bool operator==(const Arithmetic&) const = default;
};

/// What is assumed of a kernel that declares nothing.
[[nodiscard]] Arithmetic universal_arithmetic(DType input, DType output);

}  // namespace attest
