#include "core/kernel/arithmetic.h"

namespace attest {

Arithmetic universal_arithmetic(DType input, DType output) {
  Arithmetic a;
  const bool narrow = size_of(input) < size_of(DType::f32);
  const DType sums = narrow ? DType::f32 : input;
  a.input = input;
  a.output = output;
  a.score_sums = sums;
  a.accumulate = sums;
  a.weights = input;
  a.weights_in_denominator = narrow;
  a.prescaled_q = sums;
  a.max = MaxPolicy::unstated;
  return a;
}

}  // namespace attest
