// Numbers: values of an expression over results (alpha V, a sum over heads), each with how far it may be from the
// expression's exact value. In double with its own rounding errors added; on wide scalars in Wide; formulas in a proof,
// where all operations are exact and errors are none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/proof/expression.h"
#include "core/scalars/wide.h"
#include "properties/language/result.h"

namespace attest {

class Numbers {
 public:
  Numbers() = default;
  /// The elements of a result with the bound of each.
  explicit Numbers(const Result& result);
  /// The elements of a result of an attention case, each with how far it may leave the range of the visible values.
  [[nodiscard]] static Numbers in_hull(const Result& result);
  /// Exactly given numbers.
  Numbers(const Shape& shape, std::span<const double> exact);
  /// The same where no double is one.
  Numbers(const Shape& shape, std::span<const Wide> exact);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t elements() const { return std::ssize(numbers_); }
  /// Throws NotTreated for formulas.
  [[nodiscard]] double value(std::int64_t e) const;
  [[nodiscard]] long double allowed(std::int64_t e) const { return numbers_[static_cast<std::size_t>(e)].allowed; }
  /// none and vacuous: judged; any other: there is nothing to hold the element to.
  [[nodiscard]] Excuse excuse(std::int64_t e) const { return numbers_[static_cast<std::size_t>(e)].excuse; }
  /// NaN or Inf there is a violation; false: it is excused.
  [[nodiscard]] bool finite_required(std::int64_t e) const {
    return numbers_[static_cast<std::size_t>(e)].finite_required;
  }
  /// The values themselves where they are enclosures or formulas; absent where they are doubles.
  [[nodiscard]] const Values& own() const { return own_; }
  /// Throws NotTreated for formulas.
  [[nodiscard]] WideInterval enclosure(std::int64_t e) const;
  /// The formula; of a double what the exact number stands for in the proof at hand.
  [[nodiscard]] Expression formal(std::int64_t e) const;

  /// Element e as what a kernel answered; nothing where it was computed from answers, is exact, or a formula.
  [[nodiscard]] std::optional<ComparedElement> compared(std::int64_t e) const;

  /// The same with formula of(e) where element e is not excused.
  [[nodiscard]] Numbers formally(const std::function<Expression(std::int64_t)>& of) const;

  /// c times each. c is exact.
  [[nodiscard]] Numbers scaled(double c) const;
  [[nodiscard]] Numbers plus(const Numbers& other) const;  ///< element by element; as many elements
  /// Element by element; as many elements.
  [[nodiscard]] Numbers times(const Numbers& other) const;
  /// For the last two axes as matrices: this [.., M, N] times the same exact b (rows x columns, row-major, rows = N)
  /// for every one. [.., M, columns].
  [[nodiscard]] Numbers times(std::span<const double> b, std::int64_t rows, std::int64_t columns) const;
  /// `error` more is allowed to every element, or errors[e] to element e.
  [[nodiscard]] Numbers loosened(double error) const;
  [[nodiscard]] Numbers loosened(std::span<const double> errors) const;
  [[nodiscard]] Numbers loosened(std::span<const long double> errors) const;
  /// Exact numbers in the form that the results of a run have, so that their sums and products stay exact beside them:
  /// wide ones, formulas; unchanged beside a dtype.
  [[nodiscard]] Numbers exact_beside(const Run& run) const;
  [[nodiscard]] Numbers reshaped(const Shape& shape) const;
  /// The chosen elements, in order.
  [[nodiscard]] Numbers at(const Shape& shape, const Indices& elements) const;

 private:
  /// The elements of a result with the bound that `bound` gives each.
  Numbers(const Result& result, AllowedError (Run::*bound)(std::int64_t) const);
  /// A copy that is no answer of a kernel any more.
  [[nodiscard]] Numbers computed() const;
  /// Such a copy with the excuses of both; where one of them has values of its own, operation(x, y) of every two of
  /// these.
  template <class Operation>
  [[nodiscard]] Numbers joined_with(const Numbers& other, Operation operation) const;
  /// enclosure(e) of every element e becomes the values themselves.
  void enclose(const std::function<WideInterval(std::int64_t)>& enclosure);

  struct Number {
    double value = 0;
    long double allowed = 0;
    Excuse excuse = Excuse::none;
    bool finite_required = true;
  };
  Shape shape_;
  std::shared_ptr<const Result> of_;  ///< whose elements these are, one for one
  std::vector<Number> numbers_;
  Values own_;
};

}  // namespace attest
