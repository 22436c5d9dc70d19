#include <fmt/format.h>

#include <cmath>

#include "attest/formal.h"

namespace attest {
namespace {

thread_local GenericInputs* innermost = nullptr;

}  // namespace

GenericInputs::GenericInputs(std::size_t room) : scope_(room), doubles_(0x5eed), before_(innermost) {
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

Symbolic GenericInputs::at(double value) {
  if (value == -std::numeric_limits<double>::infinity()) return ScalarTraits<Symbolic>::minus_infinity();
  if (!std::isfinite(value)) return scope_.real(fmt::format("any{}", anything_++));
  if (is_constant(value)) {
    if (value != 0 && std::fabs(value) != 1) particular_.insert(value);
    return ScalarTraits<Symbolic>::from_double(value);
  }
  int exponent = 0;
  const double significand = std::frexp(std::fabs(value), &exponent);
  auto found = known_.find(significand);
  if (found == known_.end()) {
    const Known fresh{scope_.real(fmt::format("u{}", undeclared_++)), exponent};
    found = known_.emplace(significand, fresh).first;
  }
  const double factor = std::copysign(std::ldexp(1.0, exponent - found->second.exponent), value);
  return factor == 1 ? found->second.number : ScalarTraits<Symbolic>::from_double(factor) * found->second.number;
}

double GenericInputs::stand_for(const Symbolic& formula) {
  for (;;) {
    const double significand =
        std::ldexp(static_cast<double>((doubles_() >> 11U) | (std::uint64_t{1} << 52U) | 1U), -53);
    if (known_.emplace(significand, Known{formula, 0}).second) return significand;
  }
}

double GenericInputs::any() {
  return stand_for(scope_.real(fmt::format("any{}", anything_++)));
}

void GenericInputs::compared(const Symbolic& left, const Symbolic& right) {
  ++comparisons_;
  if (keeps_) certificates_.push_back(certificate(left, right));
}

}  // namespace attest
