#include "any_number.h"

#include <cmath>

#include "attest/formal.h"

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

}  // namespace attest
