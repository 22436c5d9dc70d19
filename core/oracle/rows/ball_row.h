// Level 3 of the oracle: a row in Arb's ball arithmetic, at any precision. Every number is an enclosure by
// construction.
#pragma once

#include <vector>

#include "core/oracle/rows/head.h"
#include "core/scalars/arb_header.h"
#include "core/support/flint_caches.h"

namespace attest::detail {

/// One ball with the lifetime of a scope.
class Ball {
 public:
  Ball() { arb_init(x_); }
  ~Ball() { arb_clear(x_); }
  Ball(const Ball&) = delete;
  Ball& operator=(const Ball&) = delete;
  operator arb_ptr() { return x_; }
  arb_ptr operator->() { return x_; }

 private:
  arb_t x_;
};

/// A vector of balls.
class Balls {
 public:
  Balls() = default;
  explicit Balls(std::int64_t n) : n_(n), at_(n > 0 ? _arb_vec_init(n) : nullptr) {}
  Balls(Balls&& other) noexcept : n_(other.n_), at_(other.at_) { other.n_ = 0, other.at_ = nullptr; }
  Balls& operator=(Balls&& other) noexcept {
    std::swap(n_, other.n_);
    std::swap(at_, other.at_);
    return *this;
  }
  Balls(const Balls&) = delete;
  Balls& operator=(const Balls&) = delete;
  ~Balls() {
    if (at_) _arb_vec_clear(at_, n_);
  }
  [[nodiscard]] arb_ptr operator[](std::int64_t i) const { return at_ + i; }
  [[nodiscard]] std::int64_t size() const { return n_; }

 private:
  std::int64_t n_ = 0;
  arb_ptr at_ = nullptr;
};

/// Ends of a ball, and of its absolute value, as doubles rounded outward.
[[nodiscard]] double lower_end(const arb_t x);
[[nodiscard]] double upper_end(const arb_t x);
[[nodiscard]] double upper_size(const arb_t x);
[[nodiscard]] double lower_size(const arb_t x);
/// Nearest double to the midpoint.
[[nodiscard]] double middle(const arb_t x);
/// Upper bound of the distance from the exact number to middle(x).
[[nodiscard]] double middle_error(const arb_t x);

/// A row whose inputs are balls: n visible keys, bias compacted or nullptr.
struct BallProblem {
  std::int64_t n = 0, dk = 0, dv = 0, stride = 0;
  double scale = 1;
  MaskConvention convention = MaskConvention::post_scale;
  arb_srcptr q = nullptr;
  const double* bias = nullptr;
  const double* sink = nullptr;  ///< its score: the last one is it, and no key
  double softcap = 0;
  const double* slopes = nullptr;  ///< what slopes add to the scores, exact
};

/// Everything a row's bound and verdict need, from balls. Arrays as in RowKeys.
struct BallRow {
  Balls o;                   ///< dv exact values, before what dropout multiplies them by
  Balls lse;                 ///< one ball
  Balls score, weight;       ///< per key: above a reference, which is one of the largest scores; alpha
  std::int64_t largest = 0;  ///< that key
  long precision = 0;
  bool settled = false;  ///< weights are known to 2^-30; else more bits are needed
  std::vector<double> s, t, capped, la, alpha, value, radius, apart;

  /// Evaluates the visible keys of `row` (see visible_keys; row.b is not read) with `bits` of precision.
  void evaluate(const Head& head, const Row& row, long bits);
  /// The same from balls, keys[j][c] and values[j][k].
  void evaluate(const BallProblem& problem, const arb_srcptr* keys, const arb_srcptr* values, long bits);
  /// Points `keys` and `values` at these arrays.
  void attach(RowKeys& keys, RowValues& values) const;
  /// The exact answer.
  [[nodiscard]] arb_ptr answer(std::int64_t k) const { return gained_.size() > 0 ? gained_[k] : o[k]; }
  /// [lower, upper] of |found - the answer|.
  void distance(std::int64_t k, double found, double& lower, double& upper) const;
  /// [lower, upper] of |found - lse|.
  void lse_distance(double found, double& lower, double& upper) const;

 private:
  template <class KeyAt, class ValueAt>
  void run(const BallProblem& problem, KeyAt&& key_at, ValueAt&& value_at, long bits);

  Balls gained_;  ///< what dropout makes of `o`; empty: nothing
};

/// 1/(1 - p).
void gain_of(double dropout_p, arb_ptr gain, long bits);

/// Bits to start with: 128, and 60 more than it takes to tell scores of this size apart (C29).
[[nodiscard]] long first_precision(double largest_score);

}  // namespace attest::detail
