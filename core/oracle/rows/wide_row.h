// One row of attention on a scalar wider than every dtype: its exact answer in balls, and how far the core's own may be
// from it (error-bounds.md, 1.8, whose symbols these are).
#pragma once

#include <limits>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/oracle/rows/ball_row.h"
#include "core/oracle/rows/mag.h"
#include "core/scalars/precision.h"

namespace attest::detail {

/// WideRounding in upper bounds.
struct WideUnits {
  explicit WideUnits(const WideRounding& rounding);
  /// (1+u)^m - 1 where m u <= 1/2, else infinite.
  [[nodiscard]] Mag chain(double m) const;
  /// What a number of this size errs by when it is converted.
  [[nodiscard]] Mag converted(const Mag& size) const;

  Mag u, lambda, range;    ///< range: a quarter of what no number may exceed
  double conversions = 0;  ///< roundings of a double on its way into the scalar
  double exp_units = 0, exp_growth = 0, tanh_units = 0;
  double log_lambda = 0;  ///< log of lambda, rounded down
  bool encloses = false;  ///< intervals: they have no error
};

/// rows x columns exact numbers, and how far the core's own are from them.
struct WideMatrix {
  WideMatrix() = default;
  WideMatrix(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), exact(r * c), finite(static_cast<std::size_t>(r), true) {}
  [[nodiscard]] std::size_t at(std::int64_t i, std::int64_t c) const {
    return static_cast<std::size_t>(i * columns + c);
  }
  /// Writes a number of the problem; NaN and Inf make the row not finite.
  void set(std::int64_t i, std::int64_t c, double value, const WideUnits& units);

  std::int64_t rows = 0, columns = 0;
  Balls exact;
  Mags error;                ///< empty: none
  std::vector<bool> finite;  ///< per row
};

/// A row of q, and the keys that it sees. The columns of a head begin where `of_q`, `of_k` and `of_v` say.
struct WideProblem {
  const WideMatrix *q = nullptr, *k = nullptr, *v = nullptr;
  std::int64_t i = 0, of_q = 0, of_k = 0, of_v = 0, dk = 0, dv = 0;
  double scale = 1;
  MaskConvention convention = MaskConvention::post_scale;
  std::vector<std::int64_t> visible{};
  std::vector<double> bias{};  ///< of these; empty: no mask adds anything
  double slope = 0;
  std::vector<double> away{};  ///< of these, how far they are from the row; empty: it has no slope
  /// The score of the last one of them, which is no key but the sink; its row of k and v is 0. -inf: there is none.
  double sink = -std::numeric_limits<double>::infinity();
  double softcap = 0;
  /// Of these, the rows of v: one of zeros where the weight is dropped; empty: none is.
  std::vector<std::int64_t> values{};
  double dropout_p = 0;

  [[nodiscard]] std::int64_t value_at(std::size_t j) const { return values.empty() ? visible[j] : values[j]; }
};

class WideRow {
 public:
  /// With `bits` of precision and as many more as the scores are large. Returns why nothing is said of the row; none or
  /// infinite: `exact` is there.
  Excuse evaluate(const WideProblem& problem, const WideUnits& units, long bits);
  [[nodiscard]] arb_srcptr exact(std::int64_t k) const { return balls_.o[k]; }

  Mags allowed, hull;          ///< [dv]
  std::vector<Excuse> excuse;  ///< [dv]: none, vacuous or infinite

 private:
  /// X_j, and what the errors of the inputs make of q.k_j.
  void sizes_of_products(const WideProblem& p);
  /// a_j, the error of each score.
  void score_errors(const WideProblem& p, const WideUnits& units);
  /// What a capped product errs by, where the product, of this size, does by `error`.
  [[nodiscard]] static Mag capped_error(const Mag& error, const Mag& size, const WideUnits& units, double cap);
  /// E_j and what follows from it for all columns; false: there is no bound.
  bool weight_errors(const WideProblem& p, const WideUnits& units);
  void column(const WideProblem& p, const WideUnits& units, std::int64_t k);
  /// Answers and bounds times 1/(1 - p).
  void multiply(const WideProblem& p);

  BallRow balls_;
  Mags size_, input_, a_, grown_, moved_;  ///< X_j; a_j; alpha_j e^E_j; alpha_j (e^E_j - 1)
  Mag all_grown_, factor_;                 ///< their sum; 1/S_min
};

}  // namespace attest::detail
