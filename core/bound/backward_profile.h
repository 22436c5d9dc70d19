// The symbols of gradient-bounds.md: which roundings a backward pass makes, how many, how large.
#pragma once

#include "core/bound/error_bound.h"
#include "core/kernel/backward_arithmetic.h"

namespace attest {

/// Roundoffs are relative, lam_* absolute (underflow), H_* ranges. Scores and exponentials are those of `scores`.
struct BackwardProfile {
  Profile scores;
  BackwardArithmetic declared;
  double u = 0, lam = 0;      ///< of a single operation
  double u_s = 0, lam_s = 0;  ///< sums over the columns of v
  double u_a = 0, lam_a = 0;  ///< sums over keys and rows
  double lam_in = 0;          ///< subnormal inputs read as zero
  double u_p = 0, lam_p = 0, u_dp = 0, lam_dp = 0, u_ds = 0, lam_ds = 0;
  double exponent = 0;        ///< thE: roundings of the exponent, relative to its size
  double of_exp = 0;          ///< relative error of exp, as part of its exponent
  double lam_e = 0;           ///< absolute error of exp where it underflows
  double th_lse = 0;          ///< roundings of the log-sum-exp in the exponent's units
  double gain = 1;            ///< r: 1/(1 - p), from above
  double th_gain = 0;         ///< roundings that it brings in, each time it multiplies
  double phi = 0, phi_v = 0;  ///< roundings of a sum by its scale, and of dv's
  double cap_range = 1;       ///< max(C, 1/C) of a cap: dS may be multiplied by C and divided by it again
  double u_o = 0, lam_o = 0;  ///< of the gradients
  bool grouped = false;       ///< heads are rounded before they are added up
  double u_group = 0, lam_group = 0;
  double H_dot = 0, H_p = 0, H_ds = 0, H_a = 0, H_o = 0;
  double tau = 1;
};

/// The profile of a kernel that declares `backward`, and of its forward pass the arithmetic that `scores` is of.
[[nodiscard]] BackwardProfile backward_profile(const Profile& scores, const BackwardArithmetic& backward);
/// What a weight may lose in the loops that compute them in double.
inline constexpr double lost_weight = 0x1p-1020;
/// That of the evaluation of gradients in double, weights and D from sums of its own.
[[nodiscard]] BackwardProfile profile_of_evaluation(const Profile& scores);

}  // namespace attest
