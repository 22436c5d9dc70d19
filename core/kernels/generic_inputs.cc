#include <fmt/format.h>

#include <cmath>

#include "core/kernel/formal.h"

namespace attest {
namespace {

thread_local GenericInputs* innermost = nullptr;

}  // namespace

GenericInputs::GenericInputs(ProofBackEnd& back_end) : back_end_(back_end), doubles_(0x5eed), before_(innermost) {
  innermost = this;
}

GenericInputs::~GenericInputs() {
  innermost = before_;
}

bool GenericInputs::is_constant(double value) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  return std::ldexp(significand, 20) == std::trunc(std::ldexp(significand, 20));
}

bool GenericInputs::in_use() {
  return innermost != nullptr;
}

GenericInputs& GenericInputs::current() {
  if (innermost == nullptr) throw ProofError("a formal run needs inputs that stand for indeterminates");
  return *innermost;
}

void GenericInputs::declare(double value, const std::string& name, bool positive) {
  if (!std::isfinite(value) || value < 0 || is_constant(value))
    throw ProofError(fmt::format("{} cannot stand for the indeterminate {}", value, name));
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  const Known known{positive ? scope_.positive(name) : scope_.real(name), exponent};
  if (!known_.emplace(significand, known).second)
    throw ProofError(fmt::format("{} stands for another indeterminate than {} already", value, name));
}

Expression GenericInputs::at(double value) {
  if (value == -std::numeric_limits<double>::infinity()) return ScalarTraits<Expression>::minus_infinity();
  if (!std::isfinite(value)) return scope_.real(fmt::format("any{}", anything_++));
  if (is_constant(value)) {
    if (value != 0 && std::fabs(value) != 1) particular_.insert(value);
    return ScalarTraits<Expression>::from_double(value);
  }
  int exponent = 0;
  const double significand = std::frexp(std::fabs(value), &exponent);
  auto found = known_.find(significand);
  if (found == known_.end()) {
    const Known fresh{scope_.real(fmt::format("u{}", undeclared_++)), exponent};
    found = known_.emplace(significand, fresh).first;
  }
  const double factor = std::copysign(std::ldexp(1.0, exponent - found->second.exponent), value);
  return factor == 1 ? found->second.number : ScalarTraits<Expression>::from_double(factor) * found->second.number;
}

double GenericInputs::stand_for(const Expression& formula) {
  for (;;) {
    const double significand =
        std::ldexp(static_cast<double>((doubles_() >> 11U) | (std::uint64_t{1} << 52U) | 1U), -53);
    if (known_.emplace(significand, Known{formula, 0}).second) return significand;
  }
}

double GenericInputs::any(bool positive) {
  const std::string name = fmt::format("any{}", anything_++);
  return stand_for(positive ? scope_.positive(name) : scope_.real(name));
}

bool GenericInputs::identical(const Expression& a, const Expression& b) {
  proof::require_defined(a.kind()), proof::require_defined(b.kind());
  if (a.kind() != b.kind()) return false;
  if (a.kind() == ProofKind::number) {
    if (!back_end_.identical(scope_, a.node(), b.node())) return false;
    if (keeps_)
      if (auto shown = back_end_.certificate(scope_, a.node(), b.node())) certificates_.push_back(std::move(*shown));
  }
  ++comparisons_;
  return true;
}

bool GenericInputs::known_nonnegative(const Expression& x) {
  const bool known = back_end_.known_nonnegative(scope_, x.node());
  comparisons_ += known;
  return known;
}

bool GenericInputs::known_positive(const Expression& x) {
  const bool known = back_end_.known_positive(scope_, x.node());
  comparisons_ += known;
  return known;
}

std::string GenericInputs::difference(const Expression& a, const Expression& b) {
  return back_end_.difference(scope_, a.node(), b.node());
}

}  // namespace attest
