// The whole road of `attest check` on one core: generate, project, run, judge.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

std::unique_ptr<Kernel> builtin(std::string_view id) {
  for (const KernelEntry& entry : builtin_kernels())
    if (entry.id == id) return entry.make();
  return nullptr;
}

/// Cases a second of one property on one built-in kernel: numbers k that `next` gives, one after another.
void check(benchmark::State& state, std::string_view property, std::string_view kernel_id, DType dtype,
           const auto& next) {
  const Property& checked = *properties_matching(std::string(property)).at(0);
  const std::unique_ptr<Kernel> kernel = builtin(kernel_id);
  if (kernel == nullptr) return state.SkipWithError("no such kernel");
  std::int64_t violated = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Case c = project(generate(checked, dtype, /*run_seed=*/1, next()), kernel->manifest());
    violated += check_case(checked, *kernel, c).outcome == Outcome::violated;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  state.counters["violated"] = static_cast<double>(violated);
}

/// Of the default mix of shapes.
void check_cases(benchmark::State& state, std::string_view property, std::string_view kernel_id, DType dtype) {
  std::int64_t k = 0;
  check(state, property, kernel_id, dtype, [&] { return k++; });
}

/// Of those with no axis longer than 8.
void check_small_cases(benchmark::State& state, std::string_view property, std::string_view kernel_id, DType dtype) {
  const Property& checked = *properties_matching(std::string(property)).at(0);
  constexpr std::size_t enough = 1000;
  std::vector<std::int64_t> small;
  for (std::int64_t k = 0; small.size() < enough; ++k) {
    const Case c = generate(checked, dtype, /*run_seed=*/1, k);
    const auto is_small = [](const Tensor& t) {
      for (int axis = 0; t.present() && axis < t.shape().rank(); ++axis)
        if (t.shape()[axis] > 8) return false;
      return true;
    };
    if (std::ranges::all_of(c.tensors, is_small)) small.push_back(k);
  }
  std::size_t at = 0;
  check(state, property, kernel_id, dtype, [&] { return small[at++ % small.size()]; });
}
BENCHMARK_CAPTURE(check_cases, oracle_two_pass_f32, "attention.oracle", "builtin:two-pass", DType::f32);
BENCHMARK_CAPTURE(check_cases, oracle_flash_f32, "attention.oracle", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_cases, oracle_flash_bf16, "attention.oracle", "builtin:flash", DType::bf16);
BENCHMARK_CAPTURE(check_cases, oracle_flash_f64, "attention.oracle", "builtin:flash", DType::f64);
BENCHMARK_CAPTURE(check_cases, finite_flash_f32, "attention.finite", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_cases, repeatable_flash_f32, "attention.repeatable", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_small_cases, dq_flash_f32, "backward.oracle-dq", "builtin:flash", DType::f32);
BENCHMARK_CAPTURE(check_small_cases, dk_flash_f16, "backward.oracle-dk", "builtin:flash", DType::f16);
BENCHMARK_CAPTURE(check_small_cases, dv_flash_bf16, "backward.oracle-dv", "builtin:flash", DType::bf16);
BENCHMARK_CAPTURE(check_small_cases, dq_flash_f64, "backward.oracle-dq", "builtin:flash", DType::f64);
BENCHMARK_CAPTURE(check_cases, dq_flash_f32, "backward.oracle-dq", "builtin:flash", DType::f32);

}  // namespace
}  // namespace attest
