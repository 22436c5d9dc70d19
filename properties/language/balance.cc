#include "properties/language/balance.h"

#include <fmt/format.h>

#include <cmath>

#include "core/kernel/formal.h"
#include "core/support/printed.h"
#include "properties/language/answer.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

bool is_judged(Excuse excuse) {
  return excuse == Excuse::none || excuse == Excuse::vacuous;
}

Verdict nothing_inside_the_domain() {
  return excused("no gradient lies inside the domain");
}

}  // namespace

void Balance::add(const Numbers& numbers, std::int64_t element, double factor, int sign) {
  const Excuse excuse = numbers.excuse(element);
  if (excuse == Excuse::fully_masked || excuse == Excuse::padding) return;
  if (!is_judged(excuse) || std::isinf(numbers.allowed(element))) {
    known_ = false;
    return;
  }
  if (GenericInputs::in_use()) return add_formula(GenericInputs::current().at(factor) * numbers.formal(element), sign);
  add_exact(static_cast<long double>(numbers.value(element)) * factor * sign);
  const long double allowed = numbers.allowed(element) * std::fabs(factor);
  allowed_ += allowed;
  if (excuse == Excuse::vacuous) vacuous_ += allowed;
}

void Balance::add_number(double number, double factor, int sign) {
  if (GenericInputs::in_use()) {
    GenericInputs& inputs = GenericInputs::current();
    return add_formula(inputs.at(number) * inputs.at(factor), sign);
  }
  add_exact(static_cast<long double>(number) * factor * sign);
}

void Balance::add_exact(long double term) {
  sum_ += term;
  sizes_ += std::fabs(term);
  ++terms_;
}

void Balance::add_formula(const Expression& term, int sign) {
  if (!formula_) formula_ = GenericInputs::current().at(0);
  formula_ = sign > 0 ? *formula_ + term : *formula_ - term;
}

bool Balance::vanishes() const {
  GenericInputs& inputs = GenericInputs::current();
  return !formula_ || inputs.identical(*formula_, inputs.at(0));
}

double Balance::error() const {
  return static_cast<double>(std::fabs(sum_));
}
double Balance::allowed() const {
  return static_cast<double>(allowed_ * (1 + 0x1p-20L) + static_cast<long double>(terms_ + 2) * 0x1p-63L * sizes_);
}

void WorstBalance::judge(const Balance& balance, const std::function<std::string()>& words) {
  if (!balance.known_) return;
  if (GenericInputs::in_use()) {
    any_ = true;
    if (!balance.vanishes() && worst_.outcome == Outcome::held)
      worst_ = violated(Violation::bound, fmt::format("{}: the two sides are not the same formula", words()));
    return;
  }
  const double error = balance.error(), allowed = balance.allowed();
  // A NaN among the terms fails the comparison.
  const bool within = error <= allowed;
  if (within && balance.is_vague()) return;
  any_ = true;
  if (within) {
    const double utilisation = error == 0 ? 0 : error / allowed;
    if (worst_.outcome == Outcome::held && utilisation > worst_.utilisation)
      worst_.utilisation = utilisation, worst_.error = error, worst_.allowed = allowed;
    return;
  }
  if (worst_.outcome == Outcome::violated) return;
  worst_ =
      violated(std::isfinite(error) ? Violation::bound : Violation::not_finite,
               fmt::format("{}: the two sides differ by {:.6g}; {:.6g} is allowed", words(), printed(error), allowed));
  worst_.error = error, worst_.allowed = allowed;
  if (std::isfinite(error) && allowed > 0) worst_.utilisation = error / allowed;
}

Verdict WorstBalance::verdict() const {
  return any_ ? worst_ : nothing_inside_the_domain();
}

void Zeros::look_at(const Result& result, std::string_view name) {
  asked_ = true;
  const Values& values = result.run().out();
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    const std::int64_t at = result.origin(e);
    if (const auto* const formulas = values.as<Expressions>()) {
      any_ = true;
      GenericInputs& inputs = GenericInputs::current();
      if (wrong_.empty() && !inputs.identical((*formulas)[at], inputs.at(0)))
        wrong_ =
            fmt::format("{} at flat index {} is not 0: {}", name, at, inputs.difference((*formulas)[at], inputs.at(0)));
      continue;
    }
    if (!is_judged(result.run().bound(at).excuse)) continue;
    any_ = true;
    if (values[at] != 0 && wrong_.empty())
      wrong_ = fmt::format("{} is {} at flat index {}, and must be 0", name, printed(values[at]), at);
  }
}

Verdict Zeros::verdict() const {
  if (!asked_) return skipped(std::string(no_such_gradient));
  if (!wrong_.empty()) return violated(Violation::bits, wrong_);
  return any_ ? Verdict{} : nothing_inside_the_domain();
}

}  // namespace attest
