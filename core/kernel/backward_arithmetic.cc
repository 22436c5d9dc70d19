#include "core/kernel/backward_arithmetic.h"

namespace attest {

BackwardArithmetic universal_backward_arithmetic(const Arithmetic& forward) {
  BackwardArithmetic a;
  a.output = forward.output;
  a.dot = forward.score_sums;
  a.accumulate = forward.accumulate;
  a.weights = a.of_weights = a.of_scores = forward.input;
  a.rounded_weights_in_scores = true;
  a.delta_in_sum = a.scale_before_rounding = true;
  a.late_dropout = true;
  a.group_partials = forward.input;
  return a;
}

}  // namespace attest
