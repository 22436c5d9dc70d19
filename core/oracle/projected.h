// XW + b of a multihead case, and how far a kernel's own may lie from it (error-bounds.md 1.5): in double-double, or in
// balls.
#pragma once

#include <optional>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/oracle/rows/ball_row.h"
#include "core/oracle/rows/enclosed_row.h"

namespace attest::detail {

/// Roundings outside of attention itself.
struct ProjectionProfile {
  double u_g = 0, lam_g = 0;    ///< accumulation of the projections
  double u_st = 0, lam_st = 0;  ///< storage of Q, K, V in the input dtype
  double u_y = 0, lam_y = 0;    ///< rounding of the result
  double largest = 0, largest_y = 0;
};

[[nodiscard]] ProjectionProfile projection_profile(const Arithmetic& a, const Profile& p);

/// W and b of a projection, or of the output, as doubles, exactly.
struct Weights {
  /// Both may be absent.
  Weights(const Tensor& w, const Tensor& b);
  std::int64_t inner = 0, columns = 0;
  std::vector<double> of;      ///< column after column: [columns][inner]
  std::vector<double> panels;  ///< the columns as keys (inner_loops.h)
  std::vector<double> sums;    ///< of the sizes of each of them
  std::vector<double> bias;    ///< empty: none

  [[nodiscard]] const double* column(std::int64_t c) const { return of.data() + c * inner; }
};

/// Numbers in double-double: each is within its radius of high + low. Not finite: nothing is known.
struct Pairs {
  std::vector<double> high, low, radius;
};
/// xW + b, of x known to within `x_radius`; x_low may be nullptr. Into `size` (|x||W| + |b|), from above. Of a W that
/// is there, and has a row.
void weigh_in_pairs(const double* x_high, const double* x_low, double x_radius, const Weights& w, Pairs& sums,
                    std::vector<double>& size);

/// rows x columns exact numbers with, beside each, its midpoint and how far the kernel's own may be from it.
struct Projected {
  std::int64_t rows = 0, columns = 0;
  Balls exact;  ///< empty where `low` and `radius` say what they are
  std::vector<double> middle, error;
  std::vector<double> low, radius;  ///< middle + low is within radius of the exact number
  std::vector<double> size;         ///< (|X||W| + |b|)
  std::vector<bool> usable;         ///< per row: finite, and inside the range of the formats

  [[nodiscard]] arb_srcptr row(std::int64_t i) const { return exact[i * columns]; }
  [[nodiscard]] EnclosedMatrix enclosed() const { return {columns, middle.data(), low.data(), radius.data()}; }
};

/// Rows of an input, with one appended that is not projected (nullptr: none).
struct InputRows {
  const Tensor& x;
  std::int64_t first, rows;
  const double* appended;
};

/// X W + b in balls.
[[nodiscard]] Projected project_rows(const InputRows& input, const Weights& w, const ProjectionProfile& g, long bits);
/// The same in double-double; nothing where a number leaves its range.
[[nodiscard]] std::optional<Projected> project_rows_in_pairs(const InputRows& input, const Weights& w,
                                                             const ProjectionProfile& g);

}  // namespace attest::detail
