#include "properties/language/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/kernel/formal.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

/// Of a sum or product in double, rounded up a little; underflow beside it.
constexpr double unit = 0x1.0001p-53, underflow = 0x1p-1074;

/// 0 times an interval that reaches to infinity: it may be anything.
WideInterval anything() {
  return {-infinity, infinity};
}

WideInterval scaled_interval(const WideInterval& x, double c) {
  const Wide a = x.lower * c, b = x.upper * c;
  const bool number = !is_nan(x) && !std::isnan(c);
  if (number && (isnan(a) || isnan(b))) return anything();
  return c < 0 ? WideInterval{b, a} : WideInterval{a, b};
}

WideInterval operator+(const WideInterval& x, const WideInterval& y) {
  return {x.lower + y.lower, x.upper + y.upper};
}

WideInterval operator*(const WideInterval& x, const WideInterval& y) {
  const std::array<Wide, 4> corners{x.lower * y.lower, x.lower * y.upper, x.upper * y.lower, x.upper * y.upper};
  const auto [least, most] = std::minmax_element(corners.begin(), corners.end());
  const bool numbers = !is_nan(x) && !is_nan(y);
  if (numbers && std::any_of(corners.begin(), corners.end(), [](const Wide& corner) { return isnan(corner); }))
    return anything();
  return {*least, *most};
}

/// What an error of one factor makes of a product. 0 times what has no bound has none either.
long double error_of_product(long double size, long double error) {
  return error == 0 ? 0 : size * error;
}

/// The worse of two reasons not to judge.
Excuse joined(Excuse a, Excuse b) {
  const auto free = [](Excuse e) { return e == Excuse::none; };
  if (free(a) || (a == Excuse::vacuous && !free(b))) return b;
  return a;
}

}  // namespace

Numbers::Numbers(const Result& result) : Numbers(result, &Run::bound) {}

Numbers Numbers::in_hull(const Result& result) {
  return {result, &Run::hull};
}

Numbers::Numbers(const Result& result, AllowedError (Run::*bound_of)(std::int64_t) const) : shape_(result.shape()) {
  const Run& run = result.run();
  if (!run.out().is<Tensor>()) own_ = run.out().gather(shape_, result.origins());
  const auto* const wide = own_.as<Enclosures>();
  const bool formal = own_.is<Expressions>();
  if (!formal) of_ = std::make_shared<const Result>(result);
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    const std::int64_t at = result.origin(e);
    const AllowedError bound = (run.*bound_of)(at);
    const double value = formal ? 0 : wide != nullptr ? middle_of((*wide)[e]) : run.out()[at];
    numbers_.push_back({value, bound.allowed, bound.excuse, bound.finite_required});
  }
}

Numbers::Numbers(const Shape& shape, std::span<const double> exact) : shape_(shape) {
  for (const double value : exact) numbers_.push_back({.value = value});
}

Numbers::Numbers(const Shape& shape, std::span<const Wide> exact) : shape_(shape) {
  std::vector<WideInterval> points;
  for (const Wide& value : exact) {
    numbers_.push_back({.value = static_cast<double>(value)});
    points.push_back({value, value});
  }
  own_ = Enclosures(shape_, std::move(points), WideRounding{});
}

double Numbers::value(std::int64_t e) const {
  if (own_.is<Expressions>()) throw NotTreated("looks at the value of a formula");
  return numbers_[static_cast<std::size_t>(e)].value;
}

WideInterval Numbers::enclosure(std::int64_t e) const {
  if (const auto* wide = own_.as<Enclosures>()) return (*wide)[e];
  return {Wide(value(e)), Wide(value(e))};
}

Expression Numbers::formal(std::int64_t e) const {
  if (const auto* formulas = own_.as<Expressions>()) return (*formulas)[e];
  return GenericInputs::current().at(value(e));
}

std::optional<ComparedElement> Numbers::compared(std::int64_t e) const {
  return of_ ? std::optional(of_->compared(e)) : std::nullopt;
}

Numbers Numbers::computed() const {
  Numbers out = *this;
  out.of_.reset();
  return out;
}

template <class Operation>
Numbers Numbers::joined_with(const Numbers& other, Operation operation) const {
  Numbers out = computed();
  for (std::size_t e = 0; e < numbers_.size(); ++e) {
    out.numbers_[e].excuse = joined(numbers_[e].excuse, other.numbers_[e].excuse);
    out.numbers_[e].finite_required = numbers_[e].finite_required && other.numbers_[e].finite_required;
  }
  if (own_.is<Expressions>() || other.own_.is<Expressions>())
    return out.formally([&](std::int64_t e) { return operation(formal(e), other.formal(e)); });
  if (own_.present() || other.own_.present())
    out.enclose([&](std::int64_t e) { return operation(enclosure(e), other.enclosure(e)); });
  return out;
}

void Numbers::enclose(const std::function<WideInterval(std::int64_t)>& enclosure) {
  std::vector<WideInterval> wide;
  for (std::int64_t e = 0; e < elements(); ++e) wide.push_back(enclosure(e));
  own_ = Enclosures(shape_, std::move(wide), WideRounding{});  // errors stand in `allowed`
}

Numbers Numbers::formally(const std::function<Expression(std::int64_t)>& of) const {
  Numbers out = computed();
  std::vector<Expression> formulas;
  for (std::int64_t e = 0; e < elements(); ++e) formulas.push_back(excuse(e) == Excuse::none ? of(e) : Expression());
  out.own_ = Expressions(shape_, std::move(formulas));
  return out;
}

Numbers Numbers::scaled(double c) const {
  if (own_.is<Expressions>()) {
    const Expression factor = GenericInputs::current().at(c);
    return formally([&](std::int64_t e) { return factor * formal(e); });
  }
  Numbers out = computed();
  const bool wide = own_.present();
  for (Number& x : out.numbers_) {
    const bool exact = wide && x.allowed == 0;
    x.value = c * x.value;
    x.allowed = std::fabs(c) * x.allowed * (1 + 4 * unit) + underflow;
    if (!wide) x.allowed += unit * std::fabs(x.value) + underflow;
    if (exact) x.allowed = 0;
  }
  if (wide) out.enclose([&](std::int64_t e) { return scaled_interval(enclosure(e), c); });
  return out;
}

Numbers Numbers::plus(const Numbers& other) const {
  Numbers out = joined_with(other, [](const auto& x, const auto& y) { return x + y; });
  const bool rounded = !out.own_.present();
  for (std::size_t e = 0; e < numbers_.size(); ++e) {
    Number& x = out.numbers_[e];
    x.value += other.numbers_[e].value;
    x.allowed = (x.allowed + other.numbers_[e].allowed) * (1 + 2 * unit);
    if (rounded) x.allowed += unit * std::fabs(x.value);
  }
  return out;
}

Numbers Numbers::times(const Numbers& other) const {
  Numbers out = joined_with(other, [](const auto& x, const auto& y) { return x * y; });
  const bool rounded = !out.own_.present();
  for (std::size_t e = 0; e < numbers_.size(); ++e) {
    const Number &p = numbers_[e], &q = other.numbers_[e];
    Number& x = out.numbers_[e];
    x.value = p.value * q.value;
    // (p + a)(q + b) - pq for errors up to a and b.
    x.allowed = (error_of_product(std::fabs(p.value), q.allowed) + error_of_product(std::fabs(q.value), p.allowed) +
                 error_of_product(p.allowed, q.allowed)) *
                (1 + 4 * unit);
    if (rounded) x.allowed += unit * std::fabs(x.value) + underflow;
  }
  return out;
}

Numbers Numbers::times(std::span<const double> b, std::int64_t rows, std::int64_t columns) const {
  const auto* const wide = own_.as<Enclosures>();
  const auto* const formulas = own_.as<Expressions>();
  const std::int64_t lines = rows > 0 ? elements() / rows : 0;
  std::vector<WideInterval> totals;
  std::vector<Expression> sums;
  Numbers out;
  out.shape_ = shape_.with(shape_.rank() - 1, columns);
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t c = 0; c < columns; ++c) {
      Number x;
      double size = 0;
      WideInterval total;
      Expression formula;
      for (std::int64_t j = 0; j < rows; ++j) {
        const Number& from = numbers_[static_cast<std::size_t>(i * rows + j)];
        const double factor = b[static_cast<std::size_t>(j * columns + c)];
        x.value += from.value * factor;
        size += std::fabs(from.value * factor);
        x.allowed += from.allowed * std::fabs(factor);
        x.excuse = joined(x.excuse, from.excuse);
        x.finite_required = x.finite_required && from.finite_required;
        if (formulas != nullptr && x.excuse == Excuse::none) {
          const Expression term = (*formulas)[i * rows + j] * GenericInputs::current().at(factor);
          formula = j == 0 ? term : formula + term;
        }
        if (wide != nullptr) total = total + scaled_interval((*wide)[i * rows + j], factor);
      }
      const double n = static_cast<double>(rows);
      x.allowed = wide != nullptr ? x.allowed * (1 + (n + 2) * unit)
                                  : (x.allowed + (n + 1) * unit * size) * (1 + 2 * (n + 2) * unit) + n * underflow;
      out.numbers_.push_back(x);
      if (wide != nullptr) totals.push_back(std::move(total));
      if (formulas != nullptr) sums.push_back(x.excuse == Excuse::none ? formula : Expression());
    }
  }
  if (wide != nullptr) out.own_ = Enclosures(out.shape_, std::move(totals), WideRounding{});
  if (formulas != nullptr) out.own_ = Expressions(out.shape_, std::move(sums));
  return out;
}

Numbers Numbers::loosened(double error) const {
  return loosened(std::vector<long double>(numbers_.size(), error));
}

Numbers Numbers::loosened(std::span<const double> errors) const {
  return loosened(std::vector<long double>(errors.begin(), errors.end()));
}

Numbers Numbers::loosened(std::span<const long double> errors) const {
  Numbers out = *this;
  for (std::size_t e = 0; e < out.numbers_.size(); ++e) out.numbers_[e].allowed += errors[e];
  return out;
}

Numbers Numbers::exact_beside(const Run& run) const {
  if (run.out().is<Expressions>()) return formally([&](std::int64_t e) { return formal(e); });
  Numbers out = *this;
  if (run.out().is<Enclosures>()) out.enclose([&](std::int64_t e) { return enclosure(e); });
  return out;
}

Numbers Numbers::reshaped(const Shape& shape) const {
  Numbers same = *this;
  same.shape_ = shape;
  return same;
}

Numbers Numbers::at(const Shape& shape, const Indices& elements) const {
  Numbers out;
  out.shape_ = shape;
  for (const std::int64_t e : elements) out.numbers_.push_back(numbers_[static_cast<std::size_t>(e)]);
  out.own_ = own_.gather(shape, elements);
  return out;
}

}  // namespace attest
