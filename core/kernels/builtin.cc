#include "core/kernels/builtin.h"

#include <string>
#include <utility>

#include "core/kernel/lse_convention.h"
#include "core/problem/fields.h"

namespace attest {
namespace {

constexpr DType formats[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

Manifest manifest_of(const BuiltinKernel& kernel) {
  Manifest manifest;
  manifest.name = std::string(kernel.name);
  manifest.version = "1";
  manifest.dtypes.assign(std::begin(formats), std::end(formats));
  for (const DType dtype : formats) manifest.arithmetic.usual.emplace(dtype, kernel.arithmetic(dtype));
  manifest.kv_dtypes = kernel.kv_dtypes;
  manifest.claims = kernel.claims;
  manifest.fully_masked_row = kernel.no_key == NoKey::nan ? FullyMaskedRow::nan : FullyMaskedRow::zero;
  manifest.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
  manifest.causal = {Causal::top_left, Causal::bottom_right};
  manifest.variants = every_variant();
  VariantTerms& dropout = manifest.variants.find(dropout_variant.name)->second;
  dropout.applied = kernel.dropout, dropout.own = true;
  manifest.variants.find(alibi_variant.name)->second.form = kernel.slopes;
  manifest.lse_convention.of_columns = kernel.lse_of_columns;
  state_terms_in_arithmetic(manifest);
  manifest.promises = manifest.arithmetic;
  manifest.grouped_query = true;
  manifest.strides = true;
  manifest.lse = true;
  manifest.multihead = true;
  if (kernel.backward) {
    manifest.backward = true;
    manifest.backward_terms = terms_of(*kernel.backward);
    for (const DType dtype : formats)
      manifest.arithmetic.backward.emplace(dtype, arithmetic_of(*kernel.backward, dtype));
  }
  return manifest;
}

RowForm row_form_of(const BuiltinKernel& kernel) {
  return {.no_key = kernel.no_key, .slopes = kernel.slopes, .lse_of_columns = kernel.lse_of_columns};
}

}  // namespace

Arithmetic row_arithmetic(DType dtype) {
  const DType real = dtype == DType::f64 ? DType::f64 : DType::f32;
  Arithmetic arithmetic;
  arithmetic.input = dtype;
  arithmetic.output = dtype;
  arithmetic.score_sums = real;
  arithmetic.accumulate = real;
  arithmetic.weights = real;
  // glibc's manual: exp, expf, exp2, exp2f, log and logf err by at most one ulp on every machine it knows.
  arithmetic.exp_ulp = 1.0;
  // Its tanh errs by 2.2 ulp of f64 and of f32 at the most that anyone has seen (Zimmermann and others 2024).
  arithmetic.tanh = {TanhMeasure::ulp, 2.5};
  arithmetic.base2 = false;
  arithmetic.folded_exp2 = false;
  arithmetic.split_merge = false;
  arithmetic.normalise_first = false;
  arithmetic.bias_in_sum = false;
  arithmetic.division_roundings = 1;
  return arithmetic;
}

int run_builtin(const BuiltinKernel& kernel, const attest_problem& problem, attest_result& result,
                std::string& message) {
  const RowForm form = row_form_of(kernel);
  switch (static_cast<DType>(problem.q.dtype)) {
    case DType::f64:
      for_each_row(problem, result, form, kernel.rows.f64);
      return ATTEST_OK;
    case DType::f32:
      for_each_row(problem, result, form, kernel.rows.f32);
      return ATTEST_OK;
    case DType::f16:
      for_each_row(problem, result, form, kernel.rows.f16);
      return ATTEST_OK;
    case DType::bf16:
      for_each_row(problem, result, form, kernel.rows.bf16);
      return ATTEST_OK;
    default:
      message = "runs in f64, f32, f16 and bf16";
      return ATTEST_UNSUPPORTED;
  }
}

KernelEntry entry_of(const BuiltinKernel& kernel) {
  KernelEntry entry;
  entry.id = "builtin:" + std::string(kernel.name);
  entry.summary = std::string(kernel.summary);
  entry.make = [id = entry.id, kernel] {
    KernelFunctions functions;
    functions.attention = [kernel](const attest_problem& problem, attest_result& result, std::string& message) {
      return run_builtin(kernel, problem, result, message);
    };
    functions.multihead = [kernel](const attest_multihead_problem& problem, attest_result& result,
                                   std::string& message) {
      return run_builtin_multihead(kernel, problem, result, message);
    };
    if (kernel.backward) {
      BackwardForm form = *kernel.backward;
      form.rows = row_form_of(kernel);
      functions.backward = [form](const attest_backward_problem& problem, attest_gradients& gradients,
                                  std::string& message) { return run_backward(form, problem, gradients, message); };
    }
    return with_lse_of_contract(function_kernel(id, manifest_of(kernel), std::move(functions)));
  };
  return entry;
}

}  // namespace attest
