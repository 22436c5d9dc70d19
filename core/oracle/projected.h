// XW + b of a multihead case in balls, and how far a kernel's own may lie from it (error-bounds.md 1.5).
#pragma once

#include <vector>

#include "core/oracle/oracle.h"
#include "core/oracle/rows/ball_row.h"

namespace attest::detail {

/// Roundings outside of attention itself.
struct ProjectionProfile {
  double u_g = 0, lam_g = 0;    ///< accumulation of the projections
  double u_st = 0, lam_st = 0;  ///< storage of Q, K, V in the input dtype
  double u_y = 0, lam_y = 0;    ///< rounding of the result
  double largest = 0, largest_y = 0;
};

[[nodiscard]] ProjectionProfile projection_profile(const Arithmetic& a, const Profile& p);

/// rows x columns exact numbers with, beside each, its midpoint and how far the kernel's own may be from it.
struct Projected {
  std::int64_t rows = 0, columns = 0;
  Balls exact;
  std::vector<double> middle, error;
  std::vector<double> size;  ///< (|X||W| + |b|)
  std::vector<bool> usable;  ///< per row: finite, and inside the range of the formats

  [[nodiscard]] arb_srcptr row(std::int64_t i) const { return exact[i * columns]; }
};

/// X W + b for the rows of X [first, first + rows), `extra` appended unprojected.
[[nodiscard]] Projected project_rows(const Tensor& x, std::int64_t first, std::int64_t rows, const Tensor& w,
                                     const Tensor& b, const double* extra, const ProjectionProfile& g, long bits);

}  // namespace attest::detail
