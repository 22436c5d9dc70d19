// From the decisions on elements to the verdict on a case.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/bound/error_alarm.h"
#include "core/bound/error_bound.h"
#include "core/measure/verdict.h"
#include "core/problem/problem.h"
#include "core/value/tensor.h"

namespace attest::detail {

/// What was decided about one number.
struct Decision {
  Outcome outcome = Outcome::inconclusive;
  double error = 0;  ///< upper end
  double allowed = 0;
  int level = 1;
  double least = 0;    ///< lower end of error, where an alarm may ask for it
  std::string said{};  ///< for the verdict, of one that was not held, where doubles would not tell; empty: they do
};

/// Collects decisions in any order; the worst one is described in the verdict, of equals the first of the output.
/// Elements are flat indices into out, -1 - row the lse, which follows its row.
class CaseTally {
 public:
  explicit CaseTally(const Problem& c);
  /// Of a tensor of that shape and name, in the place of the output.
  CaseTally(const Problem& c, const Shape& shape, std::string name);
  void excuse(Excuse why, std::int64_t count) { excused_[static_cast<std::size_t>(why)] += count; }
  void not_finite(std::int64_t element, double found, double exact, double allowed, int level);
  void add(std::int64_t element, double found, double exact, const Decision& decision);
  /// The same where error and allowed are below the doubles.
  void add(std::int64_t element, double found, double exact, const Decision& decision, double utilisation);
  /// As many elements were held at that level, none of them by as much as worst_held().
  void hold(std::int64_t count, int level) { held_ += count, level_ = std::max(level_, level); }
  /// Largest utilisation that was held; -1: none was.
  [[nodiscard]] double worst_held() const { return worst_held_.utilisation; }
  [[nodiscard]] double worst_violated() const { return worst_violated_.utilisation; }
  /// Elements of which no alarm was evaluated.
  void uncovered(std::int64_t count) { alarm_->uncovered += count; }
  /// The alarm was asked for.
  void raise_alarms() { alarm_.emplace(); }
  /// An element whose error is at least `lower` and at most `upper`, to a relative 2^-20 of `bound`.
  void alarm(const ElementAlarm& bound, double lower, double upper);
  [[nodiscard]] Verdict verdict() const;

 private:
  struct Worst {
    double utilisation = -1;
    std::int64_t element = 0;
    double found = 0, exact = 0;
    Decision decision;
  };
  [[nodiscard]] std::string place_of(std::int64_t element) const;
  /// Does the first stand before the second in the output?
  [[nodiscard]] bool before(std::int64_t first, std::int64_t second) const;

  Shape shape_;
  std::string name_;
  Reach reach_;
  std::int64_t held_ = 0, violated_ = 0, inconclusive_ = 0;
  std::array<std::int64_t, 8> excused_{};
  int level_ = 0;
  std::optional<Alarm> alarm_;
  Worst worst_held_, worst_violated_, worst_inconclusive_;
};

}  // namespace attest::detail
