// The oracle on one row: exact values with their certificate and the bound, from the cheapest level that is sure.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/bound/row_alarm.h"
#include "core/oracle/rows/ball_row.h"
#include "core/oracle/rows/double_double_row.h"
#include "core/oracle/rows/head.h"

namespace attest::detail {

/// Relative uncertainty of an evaluated bound, by level; double-double judges by the bound of double or one as
/// uncertain.
inline constexpr double doubt_double = 0x1p-20;
inline constexpr double doubt_balls = 0x1p-24;

/// State and memory for one row after another. One per thread.
class RowOracle {
 public:
  /// Evaluates row `rows`[0] in double with its bound. Goes on by itself where that cannot certify the bound. The other
  /// rows are those that will be started next, and cost less if they are. Returns the excuse of the row as a whole.
  Excuse start(const Head& head, std::span<const std::int64_t> rows, const Profile& profile, bool ignores_dead_values,
               bool want_lse, long max_precision);
  /// The same of row i, before those that follow it.
  Excuse start(const Head& head, std::int64_t i, const Profile& profile, bool ignores_dead_values, bool want_lse,
               long max_precision);
  /// Back to the level at which the row was started, of which everything is as it was then. What the higher levels
  /// found out is kept until the next start.
  void begin_again();
  /// Exact values in double-double; the bound as it is where double was sure of it, else again. False where the numbers
  /// leave its range, or it is not sure of the bound either.
  bool evaluate_double_double();
  /// Exact values in balls of at least `bits`, and the bound again from them. False when more than max_precision would
  /// be needed to be sure of the weights. The same for all calls after one start.
  bool evaluate_balls(long bits, long max_precision);
  /// The probabilistic bounds of the row just started, of which the bound is certain; they stay when the level rises.
  void evaluate_alarm(double probability);
  [[nodiscard]] const ElementAlarm& alarm(std::int64_t k) const { return alarms_[static_cast<std::size_t>(k)]; }
  /// [lower, upper] of |exact - found| at the present level.
  void distance(std::int64_t k, double found, double& lower, double& upper) const;
  void lse_distance(double found, double& lower, double& upper) const;

  [[nodiscard]] int level() const { return level_; }  ///< 1 double, 2 double-double, 3 balls
  [[nodiscard]] long precision() const { return balls_.precision; }
  [[nodiscard]] bool certain() const { return certain_; }  ///< false: the bound could not be certified
  [[nodiscard]] double doubt() const { return level_ == 3 ? doubt_balls : doubt_double; }
  [[nodiscard]] double value(std::int64_t k) const;
  [[nodiscard]] double lse() const { return level_ == 2 ? pairs_.lse.high : row_.keys.lse; }
  /// Proved: |exact - value(k)| and |exact - lse()| at most this.
  [[nodiscard]] double certificate(std::int64_t k) const;
  [[nodiscard]] double lse_certificate() const;
  [[nodiscard]] const ElementTerms& element(std::int64_t k) const { return elements_[static_cast<std::size_t>(k)]; }
  [[nodiscard]] const KeyTerms& terms() const { return terms_; }
  [[nodiscard]] const BallRow& balls() const { return balls_; }
  [[nodiscard]] const Row& row() const { return row_; }
  [[nodiscard]] const BoundScratch& scratch() const { return scratch_; }
  [[nodiscard]] const Profile& profile() const { return *profile_; }
  /// Of every column, in double: what value() says while the level is 1.
  [[nodiscard]] const double* values() const { return gains() ? answer_.data() : row_.o.data(); }

 private:
  /// Are the values of the levels multiplied once more, by what dropout divides by 1 - p?
  [[nodiscard]] bool gains() const { return head_->gain.high != 1; }
  [[nodiscard]] DoubleDouble pair(std::int64_t k) const;
  /// Evaluates terms and elements from row_.keys; is the bound certified?
  bool bound_from(const double* o);
  /// Proved of the values at the present level, low parts included.
  [[nodiscard]] double radius(std::int64_t k) const;
  [[nodiscard]] double lse_radius() const;

  /// The double evaluation of a row that was just taken up, and its bound by whatever level is sure of it.
  Excuse evaluate(std::span<const std::int64_t> rows, bool ignores_dead_values, bool want_lse, long max_precision);

  const Head* head_ = nullptr;
  const Profile* profile_ = nullptr;
  int level_ = 0;
  /// Where the row was started, and what the levels found out: kept while one row after another is held against it.
  struct Known {
    int first_level = 1;
    long first_bits = 0, max_precision = 0;
    bool pairs = false, pairs_are_sure = false;  ///< double-double was evaluated; with success
    long bits = 0;                               ///< the balls are what these were asked for; 0: of nothing
    bool attached = false;                       ///< keys, values and bound are those of the balls
    RowKeys keys;                                ///< before that
    RowValues values;
  };
  Known known_;
  bool certain_ = true;
  bool bound_known_ = false;  ///< from the double evaluation, to within doubt_double
  Row row_;
  BallRow balls_;
  BoundScratch scratch_;
  KeyTerms terms_;
  std::vector<ElementTerms> elements_;
  DoubleDoubleRow pairs_;
  std::vector<double> radius_;  ///< of the values at level 2
  std::vector<double> answer_;  ///< row_.o times the gain, where it is not 1
  RowAlarm row_alarm_;
  std::vector<ElementAlarm> alarms_;
};

}  // namespace attest::detail
