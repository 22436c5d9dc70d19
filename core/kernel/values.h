// Values: the numbers of an answer as the kernel computes them: of a dtype, of a scalar wider than every dtype, or
// formulas of a proof.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/scalars/precision.h"
#include "core/value/tensor.h"

namespace attest {

struct WideInterval;  // core/scalars/wide.h
class Expression;     // core/proof/expression.h

/// Row-major numbers of a kind that no tensor holds. Copies share them, and nobody changes them.
template <class Number>
class SharedNumbers {
 public:
  SharedNumbers(const Shape& shape, std::vector<Number> numbers)
      : shape_(shape), numbers_(std::make_shared<const std::vector<Number>>(std::move(numbers))) {}
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t elements() const { return shape_.elements(); }
  [[nodiscard]] const Number& operator[](std::int64_t e) const { return (*numbers_)[static_cast<std::size_t>(e)]; }

 private:
  Shape shape_;
  std::shared_ptr<const std::vector<Number>> numbers_;
};

/// Numbers of a scalar wider than every dtype.
class Enclosures : public SharedNumbers<WideInterval> {
 public:
  Enclosures(const Shape& shape, std::vector<WideInterval> numbers, const WideRounding& rounding);
  [[nodiscard]] const WideRounding& rounding() const { return rounding_; }
  [[nodiscard]] long double unit() const { return rounding_.unit; }

 private:
  WideRounding rounding_;
};

/// Formulas of a proof.
using Expressions = SharedNumbers<Expression>;

/// One of the three. Default-constructed it is absent, as a tensor is. A tensor is values, and values that were asked
/// for in a dtype are a tensor: each passes for the other.
class Values {
 public:
  Values() = default;
  Values(Tensor numbers) : kind_(std::move(numbers)) {}
  Values(Enclosures numbers) : kind_(std::move(numbers)) {}
  Values(Expressions formulas) : kind_(std::move(formulas)) {}
  operator const Tensor&() const { return tensor(); }

  /// Throws NotTreated for formulas, and std::logic_error for enclosures: a dtype was to be asked for.
  [[nodiscard]] const Tensor& tensor() const {
    const auto* const tensor = as<Tensor>();
    return tensor != nullptr ? *tensor : no_tensor();
  }
  [[nodiscard]] Tensor& tensor() { return const_cast<Tensor&>(std::as_const(*this).tensor()); }
  /// Those of that kind (Tensor, Enclosures, Expressions), else null.
  template <class Kind>
  [[nodiscard]] const Kind* as() const {
    return std::get_if<Kind>(&kind_);
  }
  template <class Kind>
  [[nodiscard]] bool is() const {
    return as<Kind>() != nullptr;
  }
  [[nodiscard]] bool present() const;
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] std::int64_t elements() const;  ///< 0 when absent
  /// Element at a flat row-major index, exact; of an enclosure its lower end, rounded. Throws NotTreated for formulas.
  [[nodiscard]] double operator[](std::int64_t e) const {
    const auto* const tensor = as<Tensor>();
    return tensor != nullptr ? (*tensor)[e] : lower(e);
  }
  /// The same with both ends. Throws NotTreated for formulas.
  [[nodiscard]] WideInterval enclosure(std::int64_t e) const;
  /// Writes an element of a tensor, rounded once to its dtype.
  void set(std::int64_t e, double value) { tensor().set(e, value); }

  /// The chosen elements, in order, of the same kind; absent where these are.
  [[nodiscard]] Values gather(const Shape& shape, std::span<const std::int64_t> elements) const;
  /// Each rounded to the dtype; of an enclosure its middle, by way of double. Throws NotTreated for formulas.
  [[nodiscard]] Tensor rounded(DType dtype) const;

  /// Of tensors: same dtype, shape and bits.
  friend bool operator==(const Values& a, const Values& b) { return a.tensor() == b.tensor(); }
  friend bool operator==(const Values& a, const Tensor& b) { return a.tensor() == b; }

 private:
  [[noreturn]] const Tensor& no_tensor() const;
  [[nodiscard]] double lower(std::int64_t e) const;

  std::variant<Tensor, Enclosures, Expressions> kind_;
};

/// Same kind and shape, and the same numbers bit by bit (+0 is not -0; any NaN is any NaN); of intervals, the same
/// ends; identical formulas, or undefined ones. Both of one scalar.
[[nodiscard]] bool same_bits(const Values& a, const Values& b);
/// The last two axes exchanged; of rank 2 or more.
[[nodiscard]] Values transposed(const Values& a);
[[nodiscard]] Tensor transposed(const Tensor& a);

}  // namespace attest
