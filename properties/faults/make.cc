#include "properties/faults/make.h"

namespace attest {

Arithmetic arithmetic_of(const Make& make, DType dtype) {
  const DType real = dtype == DType::f64 ? DType::f64 : DType::f32;
  Arithmetic a;
  a.input = dtype;
  a.output = dtype;
  a.score_sums = real;
  a.accumulate = real;
  a.weights = make.bf16_weights ? DType::bf16 : make.narrow_weights ? dtype : real;
  a.weights_in_denominator = make.narrow_denominator;
  if (make.narrow_scores) a.stored_biased = dtype;
  if (make.prescaled_q) a.prescaled_q = dtype;
  a.rounding = make.truncates ? Rounding::toward_zero : Rounding::nearest;
  // glibc's manual: exp, exp2 and log err by at most one ulp on every machine it knows.
  a.exp_ulp = 1.0;
  // Its tanh errs by 2.2 ulp of f64 and of f32 at the most that anyone has seen (Zimmermann and others 2024).
  a.tanh = {TanhMeasure::ulp, 2.5};
  // Weights that are normalised are multiplied before they are rounded, and those that are not with the output.
  a.dropout = make.normalise_first ? DropoutPlace::weights : DropoutPlace::output;
  // Rows are multiplied by their factors as they are loaded.
  a.descale = DescalePlace::sums;
  if (make.lazy_nats > 0) {
    a.max = MaxPolicy::lazy;
    a.lazy_nats = make.lazy_nats;
  }
  a.base2 = make.folded_exp2;
  a.folded_exp2 = make.folded_exp2;
  a.split_merge = make.splits > 1 || make.split_tiles > 0;
  a.normalise_first = make.normalise_first;
  a.block = make.block;
  a.bias_in_sum = false;
  a.division_roundings = make.reciprocal ? 2 : 1;
  return a;
}

}  // namespace attest
