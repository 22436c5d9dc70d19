// The regimes of inputs on which the bound is validated (error-bounds.md, section 3), and probes that sharpen it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem/case.h"

namespace attest::fleet {

enum class Regime {
  gauss_0_1,   ///< scores and values normal, scores of standard deviation 0.1
  gauss_1,     ///< … 1
  gauss_10,    ///< … 10
  heavy,       ///< Cauchy tails in q, k and v
  cancel_v,    ///< values in opposite pairs of nearly equal weight
  near_ties,   ///< scores that differ by a few roundings
  ties,        ///< keys and values of which there are few distinct ones
  dominant,    ///< one key far above the rest
  offset,      ///< all scores far from 0 and close to each other
  subnormal,   ///< weights at the underflow edge on huge values
  alibi_mask,  ///< a linear bias, with -inf at random, causal or as a prefix, or -1e4; both conventions
  ill_dot,     ///< q.k cancels
  offset_v,    ///< values far from 0
  one_hot_v,   ///< values that read single weights
  huge,        ///< scores up to 5e6 where the format has them: the whole score is rounding error
  sinks,       ///< finite masks as low as the format goes
  // Probes: where wrong kernels show best (error-bounds.md 3.4).
  low_weight,  ///< one-hot values on the keys of least weight
  leak,        ///< zero values on visible keys, large ones on hidden keys
  stagnation   ///< equal scores, values 1 on the second half of many keys: exactly 1/2
};
inline constexpr int listed_regimes = 14;     ///< those of error-bounds.md, the first ones
inline constexpr int validated_regimes = 16;  ///< the first ones, on which every kernel is validated
[[nodiscard]] std::string_view name_of(Regime regime);

struct Size {
  std::int64_t M, N, dk, dv;
};
/// One case of one batch entry and head; a function of its arguments alone. Stagnation takes N as given.
[[nodiscard]] Case draw(Regime regime, DType dtype, const Size& size, std::uint64_t seed);

}  // namespace attest::fleet
