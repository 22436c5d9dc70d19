#include "core/kernel/values.h"

#include <cmath>
#include <stdexcept>

#include "core/kernel/formal.h"
#include "core/scalars/wide.h"

namespace attest {
namespace {

bool same_number(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

bool same_number(const WideInterval& a, const WideInterval& b) {
  const auto same_end = [](const Wide& x, const Wide& y) {
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return x == y && signbit(x) == signbit(y);
  };
  return same_end(a.lower, b.lower) && same_end(a.upper, b.upper);
}

bool same_number(const Expression& a, const Expression& b) {
  const bool defined = a.kind() != ProofKind::undefined, other = b.kind() != ProofKind::undefined;
  return defined == other && (!defined || GenericInputs::current().identical(a, b));
}

template <class Kind>
bool same_numbers(const Kind* a, const Kind* b) {
  if (a == nullptr || b == nullptr) return false;
  for (std::int64_t e = 0; e < a->elements(); ++e)
    if (!same_number((*a)[e], (*b)[e])) return false;
  return true;
}

template <class Number>
std::vector<Number> chosen(const SharedNumbers<Number>& from, std::span<const std::int64_t> elements) {
  std::vector<Number> numbers;
  numbers.reserve(elements.size());
  for (const std::int64_t e : elements) numbers.push_back(from[e]);
  return numbers;
}

}  // namespace

Enclosures::Enclosures(const Shape& shape, std::vector<WideInterval> numbers, const WideRounding& rounding)
    : SharedNumbers(shape, std::move(numbers)), rounding_(rounding) {}

const Tensor& Values::no_tensor() const {
  if (is<Expressions>()) throw NotTreated("looks at rounded numbers, and a proof has none");
  throw std::logic_error("the kernel's own numbers are no tensor: ask for a dtype");
}

bool Values::present() const {
  const auto* const tensor = as<Tensor>();
  return tensor == nullptr || tensor->present();
}

const Shape& Values::shape() const {
  return std::visit([](const auto& of) -> const Shape& { return of.shape(); }, kind_);
}

std::int64_t Values::elements() const {
  return std::visit([](const auto& of) { return of.elements(); }, kind_);
}

double Values::lower(std::int64_t e) const {
  const auto* const wide = as<Enclosures>();
  return wide != nullptr ? static_cast<double>((*wide)[e].lower) : no_tensor()[e];
}

WideInterval Values::enclosure(std::int64_t e) const {
  if (const auto* wide = as<Enclosures>()) return (*wide)[e];
  const double number = tensor()[e];
  return {Wide(number), Wide(number)};
}

Values Values::gather(const Shape& shape, std::span<const std::int64_t> elements) const {
  if (const auto* wide = as<Enclosures>()) return Enclosures(shape, chosen(*wide, elements), wide->rounding());
  if (const auto* formulas = as<Expressions>()) return Expressions(shape, chosen(*formulas, elements));
  if (!present()) return {};
  Tensor part(tensor().dtype(), shape);
  for (std::int64_t e = 0; e < part.elements(); ++e) part.set(e, tensor()[elements[static_cast<std::size_t>(e)]]);
  return part;
}

Tensor Values::rounded(DType dtype) const {
  Tensor numbers(dtype, shape());
  for (std::int64_t e = 0; e < numbers.elements(); ++e) {
    const auto* const wide = as<Enclosures>();
    numbers.set(e, wide != nullptr ? middle_of((*wide)[e]) : tensor()[e]);
  }
  return numbers;
}

bool same_bits(const Values& a, const Values& b) {
  if (a.shape() != b.shape()) return false;
  return same_numbers(a.as<Tensor>(), b.as<Tensor>()) || same_numbers(a.as<Enclosures>(), b.as<Enclosures>()) ||
         same_numbers(a.as<Expressions>(), b.as<Expressions>());
}

Values transposed(const Values& a) {
  const Shape& shape = a.shape();
  const int last = shape.rank() - 1;
  const std::int64_t rows = shape[last - 1], columns = shape[last];
  std::vector<std::int64_t> from;
  for (std::int64_t e = 0; e < a.elements(); ++e) {
    const std::int64_t page = e / (rows * columns), in_page = e % (rows * columns);
    from.push_back(page * rows * columns + in_page % rows * columns + in_page / rows);
  }
  return a.gather(shape.with(last, rows).with(last - 1, columns), from);
}

Tensor transposed(const Tensor& a) {
  return transposed(Values(a)).tensor();
}

}  // namespace attest
