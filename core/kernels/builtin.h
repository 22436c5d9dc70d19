// The built-in kernels and what they share: one function per format, a manifest, an entry of the registry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/backward/builtin_backward.h"
#include "core/kernels/row.h"

namespace attest {

/// One kernel in every format it has.
struct RowKernel {
  void (*f64)(const Row<F64>&);
  void (*f32)(const Row<F32>&);
  void (*f16)(const Row<F16>&);
  void (*bf16)(const Row<BF16>&);
};

/// The arithmetic a kernel over Row has before it says anything of its own: sums in Real, one exponential per key
/// and rescaling, everything rounded to nearest, out rounded once.
[[nodiscard]] Arithmetic row_arithmetic(DType dtype);

/// What a built-in kernel says of itself.
struct BuiltinKernel {
  std::string_view name;            ///< without "builtin:"
  std::string_view summary;         ///< one line
  Arithmetic (*arithmetic)(DType);  ///< for each of its dtypes
  std::vector<Claim> claims;
  NoKey no_key;
  RowKernel rows;
  std::map<DType, std::vector<KvDtypes>> kv_dtypes{};  ///< as a manifest has them
  DropoutPlace dropout = DropoutPlace::output;         ///< where it divides by 1 - p
  SlopeForm slopes = SlopeForm::distance;              ///< what a slope adds to a score under a causal form
  bool lse_of_columns = false;                         ///< its log-sum-exp is that of the column form
  std::optional<BackwardForm> backward{};              ///< its backward pass, where it has one
};
/// Runs it on a problem in any of its dtypes, whatever the strides; ATTEST_UNSUPPORTED for another dtype.
[[nodiscard]] int run_builtin(const BuiltinKernel& kernel, const attest_problem& problem, attest_result& result,
                              std::string& message);
/// The same on a multihead problem: tokens are projected with sums in the type of the kernel's own, rounded to the
/// problem's dtype, and so is what the heads give before W_o.
[[nodiscard]] int run_builtin_multihead(const BuiltinKernel& kernel, const attest_multihead_problem& problem,
                                        attest_result& result, std::string& message);
/// The registry's entry: a function_kernel with the complete manifest.
[[nodiscard]] KernelEntry entry_of(const BuiltinKernel& kernel);

// One file each.
[[nodiscard]] BuiltinKernel two_pass_kernel();
[[nodiscard]] BuiltinKernel online_kernel();
[[nodiscard]] BuiltinKernel flash_kernel();
[[nodiscard]] BuiltinKernel flash_exp2_kernel();
[[nodiscard]] BuiltinKernel split_k_kernel();
[[nodiscard]] BuiltinKernel pairwise_kernel();
[[nodiscard]] BuiltinKernel lazy_kernel();
[[nodiscard]] BuiltinKernel mixed_kernel();

/// All of them, in the order of `attest list`.
[[nodiscard]] inline std::vector<BuiltinKernel> all_builtins() {
  return {two_pass_kernel(), online_kernel(),   flash_kernel(), flash_exp2_kernel(),
          split_k_kernel(),  pairwise_kernel(), lazy_kernel(),  mixed_kernel()};
}

}  // namespace attest
