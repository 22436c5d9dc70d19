// The bound of gradients (gradient-bounds.md): of one row what each of its keys adds to the error of dq, dk and
// dv, and of one element what becomes of the sums of these.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/bound/backward_profile.h"

namespace attest::detail {

/// A row of the backward pass, from above: no number of the exact one is larger than what stands here for its size.
/// Arrays of n, the visible keys.
struct RowSizes {
  std::int64_t n = 0;
  std::int64_t dv = 0;
  const double* weight = nullptr;       ///< P
  const double* la = nullptr;           ///< its logarithm
  const double* of_weight = nullptr;    ///< |dP|
  const double* size = nullptr;         ///< sum_c |g_c v_jc|
  const unsigned char* kept = nullptr;  ///< 0: the weight is dropped, and has neither of the two; nullptr: all are kept
  const double* apart = nullptr;        ///< |dP - D + c|
  const double* slope = nullptr;        ///< 1 - y^2, what a cap leaves of dS; nullptr: 1
  const double* of_slope = nullptr;     ///< its error
  const double* v1 = nullptr;           ///< sum_c |v_jc|; nullptr: not needed
  const double* E = nullptr;            ///< error of a weight's exponent beyond what is common to the row
  double common = 0;                    ///< Ec
  double delta = 0;                     ///< |D - c|
  double of_lse = 0;                    ///< |c|
  double g_out = 0;                     ///< sum_c |g_c out_c| of the output that D is formed from
  double g_error = 0;                   ///< sum_c |g_c| times the error of that output
  double g1 = 0, out1 = 0;              ///< sums of |g_c| and |out_c|
};

/// What a row makes of errors, per key, in units of what multiplies |k_j|, |q_i| and |g_i|.
struct RowErrors {
  std::vector<double> of_k;           ///< error of dS_j in dq, where D's and the row's common part are centred
  std::vector<double> of_q;           ///< the same in dk, where nothing is
  std::vector<double> scores;         ///< |dS_j|, from above
  std::vector<double> of_g, weights;  ///< of P_j in dv, and |P_j| there
  double common = 0;                  ///< e^Ec - 1
  double delta = 0;                   ///< eD, the error of D - c
  double of_delta = 0;                ///< e^Ec times that
  double constant = 0;                ///< of a sum over the row's keys, by underflow
  double of_inputs = 0;               ///< what inputs that are read as 0 add to it
  bool in_domain = true;              ///< nothing overflows on its way
};

/// eD, the error of D - c; does not ask for `apart`.
[[nodiscard]] double delta_error(const BackwardProfile& p, const RowSizes& row);
void row_errors(const BackwardProfile& p, const RowSizes& row, RowErrors& out);

/// e^x - 1 of x >= 0, from above: below 2^-6 by the first terms of its series, the last of them half as large again as
/// it is, which is more than all that follow.
[[nodiscard]] inline double expm1_above(double x) {
  return (x < 0x1p-6 ? x * (1 + x * (0.5 + x * 0.25)) : std::expm1(x)) * (1 + 0x1p-50);
}

/// Sums that make up one element of a gradient, from above, before its scale.
struct ElementSums {
  double exact = 0;  ///< |the sum|
  double error = 0;  ///< what terms err by, and the accumulation of them
  double parts = 0;  ///< sum over the heads of a group of |their sum| with its error; |the sum| where there is one
  std::int64_t heads = 1;
};
/// B of an element of dq or dk (`scale` is tau), or of dv (1/(1 - p)).
[[nodiscard]] double gradient_bound(const BackwardProfile& p, const ElementSums& sums, double scale, double phi,
                                    bool grouped);

}  // namespace attest::detail
