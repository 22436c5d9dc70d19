#include "properties/language/numbers.h"

#include <algorithm>
#include <cmath>

#include "core/support/infinity.h"

namespace attest {
namespace {

/// Of a sum or product in double, rounded up a little; underflow beside it.
constexpr double unit = 0x1.0001p-53, underflow = 0x1p-1074;

double middle(const WideInterval& x) {
  return static_cast<double>(Wide((x.lower + x.upper) / 2));
}

/// 0 times an interval that reaches to infinity: it may be anything.
WideInterval anything() {
  return {Wide(-infinity), Wide(infinity)};
}

WideInterval scaled_interval(const WideInterval& x, double c) {
  const Wide a = x.lower * c, b = x.upper * c;
  const bool number = !isnan(x.lower) && !isnan(x.upper) && !std::isnan(c);
  if (number && (isnan(a) || isnan(b))) return anything();
  return c < 0 ? WideInterval{b, a} : WideInterval{a, b};
}

/// What an error of one factor makes of a product. 0 times what has no bound has none either.
double error_of_product(double size, double error) {
  return error == 0 ? 0.0 : size * error;
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

Numbers::Numbers(const Result& result, ElementBound (Run::*bound_of)(std::int64_t) const) : shape_(result.shape()) {
  const Run& run = result.run();
  if (!run.is_formal()) of_ = std::make_shared<const Result>(result);
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    const std::int64_t at = result.origin(e);
    const ElementBound bound = (run.*bound_of)(at);
    if (run.is_formal()) {
      formal_.push_back(run.formal_out()[static_cast<std::size_t>(at)]);
      value_.push_back(0);
    } else if (run.is_wide()) {
      wide_.push_back(run.wide_out()[static_cast<std::size_t>(at)]);
      value_.push_back(middle(wide_.back()));
    } else {
      value_.push_back(run.out()[at]);
    }
    allowed_.push_back(bound.allowed);
    excuse_.push_back(bound.excuse);
    required_.push_back(bound.finite_required);
  }
}

Numbers::Numbers(const Shape& shape, std::span<const double> exact)
    : shape_(shape),
      value_(exact.begin(), exact.end()),
      allowed_(exact.size(), 0.0),
      excuse_(exact.size(), Excuse::none),
      required_(exact.size(), true) {}

double Numbers::value(std::int64_t e) const {
  if (is_formal()) throw NotTreated("looks at the value of a formula");
  return value_[static_cast<std::size_t>(e)];
}

Expression Numbers::formal(std::int64_t e) const {
  if (is_formal()) return formal_[static_cast<std::size_t>(e)];
  return GenericInputs::current().at(value_[static_cast<std::size_t>(e)]);
}

std::optional<ComparedElement> Numbers::compared(std::int64_t e) const {
  return of_ ? std::optional(of_->compared(e)) : std::nullopt;
}

Numbers Numbers::computed() const {
  Numbers out = *this;
  out.of_.reset();
  return out;
}

Numbers Numbers::formally(const std::function<Expression(std::int64_t)>& of) const {
  Numbers out = computed();
  out.formal_.clear();
  for (std::int64_t e = 0; e < elements(); ++e)
    out.formal_.push_back(out.excuse(e) == Excuse::none ? of(e) : Expression());
  return out;
}

Numbers Numbers::scaled(double c) const {
  if (is_formal()) {
    const Expression factor = GenericInputs::current().at(c);
    return formally([&](std::int64_t e) { return factor * formal(e); });
  }
  Numbers out = computed();
  for (std::size_t e = 0; e < value_.size(); ++e) {
    out.value_[e] = c * value_[e];
    out.allowed_[e] = std::fabs(c) * allowed_[e] * (1 + 4 * unit) + underflow;
    if (is_wide()) {
      out.wide_[e] = scaled_interval(wide_[e], c);
      if (allowed_[e] == 0) out.allowed_[e] = 0;
    } else {
      out.allowed_[e] += unit * std::fabs(out.value_[e]) + underflow;
    }
  }
  return out;
}

Numbers Numbers::joined_with(const Numbers& other) const {
  Numbers out = *this;
  for (std::size_t e = 0; e < excuse_.size(); ++e) out.excuse_[e] = joined(excuse_[e], other.excuse_[e]);
  return out;
}

Numbers Numbers::plus(const Numbers& other) const {
  if (is_formal() || other.is_formal())
    return joined_with(other).formally([&](std::int64_t e) { return formal(e) + other.formal(e); });
  Numbers out = computed();
  for (std::size_t e = 0; e < value_.size(); ++e) {
    out.value_[e] = value_[e] + other.value_[e];
    out.allowed_[e] = (allowed_[e] + other.allowed_[e]) * (1 + 2 * unit);
    out.excuse_[e] = joined(excuse_[e], other.excuse_[e]);
    out.required_[e] = required_[e] && other.required_[e];
    if (is_wide() || other.is_wide()) {
      const auto end = [e](const Numbers& n, bool upper) {
        return n.is_wide() ? (upper ? n.wide_[e].upper : n.wide_[e].lower) : Wide(n.value_[e]);
      };
      const WideInterval sum{end(*this, false) + end(other, false), end(*this, true) + end(other, true)};
      if (out.wide_.empty()) out.wide_.resize(value_.size());
      out.wide_[e] = sum;
    } else {
      out.allowed_[e] += unit * std::fabs(out.value_[e]);
    }
  }
  return out;
}

Numbers Numbers::times(const Numbers& other) const {
  if (is_formal() || other.is_formal())
    return joined_with(other).formally([&](std::int64_t e) { return formal(e) * other.formal(e); });
  Numbers out = computed();
  for (std::size_t e = 0; e < value_.size(); ++e) {
    const double x = value_[e], y = other.value_[e], a = allowed_[e], b = other.allowed_[e];
    out.value_[e] = x * y;
    // (x + a)(y + b) - xy for errors up to a and b.
    out.allowed_[e] = (error_of_product(std::fabs(x), b) + error_of_product(std::fabs(y), a) + error_of_product(a, b)) *
                      (1 + 4 * unit);
    out.excuse_[e] = joined(excuse_[e], other.excuse_[e]);
    out.required_[e] = required_[e] && other.required_[e];
    if (is_wide()) {
      const WideInterval &p = wide_[e], &q = other.wide_[e];
      const std::array<Wide, 4> corners{p.lower * q.lower, p.lower * q.upper, p.upper * q.lower, p.upper * q.upper};
      const auto [least, most] = std::minmax_element(corners.begin(), corners.end());
      out.wide_[e] = {*least, *most};
      const bool numbers = !isnan(p.lower) && !isnan(p.upper) && !isnan(q.lower) && !isnan(q.upper);
      if (numbers && std::any_of(corners.begin(), corners.end(), [](const Wide& corner) { return isnan(corner); }))
        out.wide_[e] = anything();
    } else {
      out.allowed_[e] += unit * std::fabs(out.value_[e]) + underflow;
    }
  }
  return out;
}

Numbers Numbers::times(std::span<const double> b, std::int64_t rows, std::int64_t columns) const {
  Numbers out;
  std::array<std::int64_t, 4> extents{};
  for (int a = 0; a < shape_.rank(); ++a) extents[static_cast<std::size_t>(a)] = shape_[a];
  extents[static_cast<std::size_t>(shape_.rank() - 1)] = columns;
  out.shape_ = Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(shape_.rank())));
  const std::int64_t lines = rows > 0 ? elements() / rows : 0;
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0, size = 0, allowed = 0;
      Excuse excuse = Excuse::none;
      bool required = true;
      WideInterval total;
      Expression formula;
      for (std::int64_t j = 0; j < rows; ++j) {
        const auto from = static_cast<std::size_t>(i * rows + j);
        const double factor = b[static_cast<std::size_t>(j * columns + c)];
        sum += value_[from] * factor;
        size += std::fabs(value_[from] * factor);
        allowed += allowed_[from] * std::fabs(factor);
        excuse = joined(excuse, excuse_[from]);
        required = required && required_[from];
        if (is_formal() && excuse == Excuse::none) {
          const Expression term = formal_[from] * GenericInputs::current().at(factor);
          formula = j == 0 ? term : formula + term;
        }
        if (is_wide()) {
          const WideInterval term = scaled_interval(wide_[from], factor);
          total.lower += term.lower;
          total.upper += term.upper;
        }
      }
      if (is_formal()) out.formal_.push_back(excuse == Excuse::none ? formula : Expression());
      const double n = static_cast<double>(rows);
      out.value_.push_back(sum);
      out.excuse_.push_back(excuse);
      out.required_.push_back(required);
      if (is_wide()) {
        out.wide_.push_back(total);
        out.allowed_.push_back(allowed * (1 + (n + 2) * unit));
      } else {
        out.allowed_.push_back((allowed + (n + 1) * unit * size) * (1 + 2 * (n + 2) * unit) + n * underflow);
      }
    }
  }
  return out;
}

Numbers Numbers::loosened(double error) const {
  Numbers out = *this;
  for (double& a : out.allowed_) a += error;
  return out;
}

Numbers Numbers::loosened(std::span<const double> errors) const {
  Numbers out = *this;
  for (std::size_t e = 0; e < out.allowed_.size(); ++e) out.allowed_[e] += errors[e];
  return out;
}

Numbers Numbers::exact_beside(const Run& run) const {
  if (run.is_formal()) return formally([&](std::int64_t e) { return formal(e); });
  Numbers out = *this;
  if (!run.is_wide()) return out;
  for (const double value : value_) out.wide_.push_back({Wide(value), Wide(value)});
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
  for (const std::int64_t element : elements) {
    const auto e = static_cast<std::size_t>(element);
    out.value_.push_back(value_[e]);
    out.allowed_.push_back(allowed_[e]);
    out.excuse_.push_back(excuse_[e]);
    out.required_.push_back(required_[e]);
    if (is_wide()) out.wide_.push_back(wide_[e]);
    if (is_formal()) out.formal_.push_back(formal_[e]);
  }
  return out;
}

}  // namespace attest
