#include "core/kernels/backward/builtin_backward.h"

namespace attest {

BackwardTerms terms_of(const BackwardForm& form) {
  const bool stored = form.weights == WeightsFrom::stored;
  BackwardTerms terms;
  terms.dmask = terms.dsink = true;
  terms.uses_out = form.delta == DeltaFrom::out;
  terms.uses_lse = !stored;
  terms.d_lse = terms.own_dropout = true;
  terms.masked_row = MaskedGradient::zero;
  terms.weights = form.weights;
  terms.delta = form.delta;
  // An order drawn from what the inputs hold is another one for inputs that are bitwise alike in all that counts.
  if (form.drawn_order) return terms;
  terms.claims = {Claim::deterministic, Claim::batch_invariant, Claim::ignores_dead_values};
  // Where parts begin depends on N, and padding moves them.
  if (form.splits == 1) terms.claims.push_back(Claim::padding_invariant);
  return terms;
}

BackwardArithmetic arithmetic_of(const BackwardForm& form, DType dtype) {
  const bool stored = form.weights == WeightsFrom::stored;
  BackwardArithmetic a;
  a.output = dtype;
  a.dot = a.accumulate = dtype == DType::f64 ? DType::f64 : DType::f32;
  a.weights = a.of_scores = dtype;
  a.of_weights = stored ? dtype : a.dot;
  a.rounded_weights_in_scores = stored;
  a.delta_in_sum = form.delta_in_sum;
  a.scale_before_rounding = form.scale_first;
  if (form.rounded_heads) a.group_partials = dtype;
  return a;
}

int accept_backward(const attest_problem& forward, std::string& message) {
  constexpr std::uint32_t none = ATTEST_PAGED | ATTEST_APPEND | ATTEST_CACHE_INDEX | ATTEST_DESCALE;
  if ((forward.variants & none) == 0) return ATTEST_OK;
  message = "its backward pass has no caches and no factors";
  return ATTEST_UNSUPPORTED;
}

int run_backward(const BackwardForm& form, const attest_backward_problem& problem, attest_gradients& gradients,
                 std::string& message) {
  if (const int status = accept_backward(*problem.forward, message); status != ATTEST_OK) return status;
  switch (static_cast<DType>(problem.forward->q.dtype)) {
    case DType::f64:
      TiledBackward<F64>(form, problem, gradients).run();
      return ATTEST_OK;
    case DType::f32:
      TiledBackward<F32>(form, problem, gradients).run();
      return ATTEST_OK;
    case DType::f16:
      TiledBackward<F16>(form, problem, gradients).run();
      return ATTEST_OK;
    case DType::bf16:
      TiledBackward<BF16>(form, problem, gradients).run();
      return ATTEST_OK;
    default:
      message = "runs in f64, f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
  }
}

}  // namespace attest
