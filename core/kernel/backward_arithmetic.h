// BackwardArithmetic: what a kernel declares about how it computes gradients, beside the Arithmetic by which it forms
// scores and exponentials again. The profile of gradient-bounds.md is derived from both, see
// core/bound/backward_profile.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/kernel/arithmetic.h"

namespace attest {

/// What the weights of a backward pass are: e^(score - log-sum-exp) of the log-sum-exp that the forward pass returned,
/// or the normalised weights that it had stored.
enum class WeightsFrom { lse, stored };
template <>
struct Words<WeightsFrom> {
  static constexpr std::array<std::string_view, 2> names{"lse", "stored"};
};

/// What D is the sum of: the gradient by the output times the output that was returned, or weights times their own
/// gradients. Not stated: one of the two.
enum class DeltaFrom { out, weights, unstated };
template <>
struct Words<DeltaFrom> {
  static constexpr std::array<std::string_view, 2> names{"out", "weights"};
};

/// As Arithmetic: universal_backward_arithmetic is the loosest a legitimate kernel may be.
struct BackwardArithmetic {
  DType output = DType::f32;  ///< dtype of the gradients; rounded to once
  WeightsFrom weights_from = WeightsFrom::lse;
  DeltaFrom delta = DeltaFrom::unstated;
  DType dot = DType::f32;         ///< accumulator of the sums over columns, g.v and g.out, and format of P (dP - D)
  DType accumulate = DType::f32;  ///< accumulator of the sums over keys and rows, in any order
  DType weights = DType::f32;     ///< format of P where it multiplies g; no coarser than `dot`: not rounded
  DType of_weights = DType::f32;  ///< the same of dP where it is stored
  DType of_scores = DType::f32;   ///< the same of dS where it multiplies k and q
  bool rounded_weights_in_scores = false;  ///< dS is formed from the rounded P
  bool delta_in_sum = false;               ///< -D is the initial value of the accumulator of g.v
  bool scale_before_rounding = false;      ///< dS is multiplied by the scale before it is rounded
  bool late_dropout = false;               ///< sums are divided by 1 - p at the end, instead of their terms
  /// Format in which each head's dk and dv are rounded before they are added up over its group; absent: they are one
  /// sum.
  std::optional<DType> group_partials;
  /// Format in which the terms of a sink's gradient, one for each row, are rounded before they are added up; absent:
  /// they are not.
  std::optional<DType> sink_terms;
  [[nodiscard]] bool operator==(const BackwardArithmetic&) const = default;
};

/// What is assumed of a kernel that declares nothing of its backward pass: sums as its forward pass has them, P, dP, dS
/// and the heads' parts of a group rounded to the inputs' dtype, the scale before or after that.
[[nodiscard]] BackwardArithmetic universal_backward_arithmetic(const Arithmetic& forward);

}  // namespace attest
