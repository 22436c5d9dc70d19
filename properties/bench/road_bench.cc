// The whole road of `attest check` on one core: generate, project, run, judge.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "core/kernel/kernel_under_test.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

/// Cases a second of one property on one built-in kernel, of the default mix of shapes.
void check_cases(benchmark::State& state, std::string_view property, std::string_view kernel_id, DType dtype) {
  const Property& checked = *std::ranges::find(attention_properties(), property, &Property::name);
  std::unique_ptr<Kernel> kernel;
  for (const KernelEntry& entry : builtin_kernels()) {
    if (entry.id == kernel_id) kernel = entry.make();
  }
  if (kernel == nullptr) return state.SkipWithError("no such kernel");
  std::int64_t k = 0, violated = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Case c = project(generate(checked, dtype, /*run_seed=*/1, k++), kernel->manifest());
    violated += check_case(checked, *kernel, c).outcome == Outcome::violated;
  }
  state.SetItemsProcessed(k);
  state.counters["violated"] = static_cast<double>(violated);
}
BENCHMARK_CAPTURE(check_cases, oracle_two_pass_f32, "attention.oracle", "builtin:two-pass", DType::f32);
BENCHMARK_CAPTURE(check_cases, oracle_flash_f32, "attention.oracle", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_cases, oracle_flash_bf16, "attention.oracle", "builtin:flash", DType::bf16);
BENCHMARK_CAPTURE(check_cases, oracle_flash_f64, "attention.oracle", "builtin:flash", DType::f64);
BENCHMARK_CAPTURE(check_cases, finite_flash_f32, "attention.finite", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_cases, repeatable_flash_f32, "attention.repeatable", "builtin:flash", DType::f32);

}  // namespace
}  // namespace attest
