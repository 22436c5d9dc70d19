#include "properties/arrangement/any_number.h"

#include <cmath>

#include "core/kernel/formal.h"

namespace attest {

bool in_a_proof() {
  return GenericInputs::in_use();
}

double any_number(double drawn) {
  return in_a_proof() ? GenericInputs::current().any() : drawn;
}

double sum_of(double a, double b) {
  if (!in_a_proof() || !std::isfinite(a) || !std::isfinite(b)) return a + b;
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(inputs.at(a) + inputs.at(b));
}

double product_of(double a, double b) {
  if (!in_a_proof() || !std::isfinite(a) || !std::isfinite(b)) return a * b;
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(inputs.at(a) * inputs.at(b));
}

double inverse_of(double a) {
  if (!in_a_proof()) return 1 / a;
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(ScalarTraits<Expression>::from_double(1) / inputs.at(a));
}

double count_of(std::int64_t n) {
  const auto number = static_cast<double>(n);
  return in_a_proof() ? GenericInputs::current().stand_for(ScalarTraits<Expression>::from_double(number)) : number;
}

double any_positive_number() {
  return GenericInputs::current().any(/*positive=*/true);
}

double exponential_of(double a) {
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(ScalarTraits<Expression>::exp(inputs.at(a)));
}

double tangent_of(double a) {
  if (!in_a_proof()) return std::tanh(a);
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(ScalarTraits<Expression>::tanh(inputs.at(a)));
}

double logarithm_of(double a) {
  GenericInputs& inputs = GenericInputs::current();
  return inputs.stand_for(ScalarTraits<Expression>::log(inputs.at(a)));
}

}  // namespace attest
