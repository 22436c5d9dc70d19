// Sums that vanish, of numbers that are each known to within what is allowed to them, and numbers that are 0.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/measure/verdict.h"
#include "core/proof/expression.h"
#include "properties/language/numbers.h"
#include "properties/language/result.h"

namespace attest {

/// A sum that is to be 0, whose terms are known to within what is allowed to each: it differs from 0 by no more. In a
/// proof it is a formula.
class Balance {
 public:
  /// sign times factor, a number of the case, times an element; one of a row without a key, or of padding,
  /// counts for nothing.
  void add(const Numbers& numbers, std::int64_t element, double factor, int sign = 1);
  /// sign times number times factor, both of the case.
  void add_number(double number, double factor, int sign);
  /// So much more is allowed.
  void allow(double error) { allowed_ += error; }

 private:
  friend class WorstBalance;
  void add_exact(long double term);
  void add_formula(const Expression& term, int sign);
  /// Is the formula 0 for all reals?
  [[nodiscard]] bool vanishes() const;
  [[nodiscard]] double error() const;
  /// Most of what is allowed is no less than what the terms are made of.
  [[nodiscard]] bool is_vague() const { return 2 * vacuous_ > allowed_; }
  /// With what this sum loses itself.
  [[nodiscard]] double allowed() const;

  bool known_ = true;  ///< something is said of every term
  std::optional<Expression> formula_;
  long double sum_ = 0, sizes_ = 0, allowed_ = 0, vacuous_ = 0;
  std::int64_t terms_ = 0;
};

/// The worst of some balances.
class WorstBalance {
 public:
  void judge(const Balance& balance, const std::function<std::string()>& words);
  /// Excused where nothing was said of a term of each. A sum with a term of a vacuous bound may be violated; it does
  /// not count as held.
  [[nodiscard]] Verdict verdict() const;

 private:
  bool any_ = false;
  Verdict worst_{};
};

/// Elements that must be 0, of either sign.
class Zeros {
 public:
  /// Those inside the domain.
  void look_at(const Result& result, std::string_view name);
  /// Skipped where nothing was looked at: the kernel has none of the gradients.
  [[nodiscard]] Verdict verdict() const;

 private:
  bool asked_ = false, any_ = false;
  std::string wrong_;
};

}  // namespace attest
