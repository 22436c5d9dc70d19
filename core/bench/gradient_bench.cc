// What a verdict on gradients costs beside one plain double backward pass over the same head. Every measurement is a
// pair, the plain pass and then the verdict, in CPU time; the ratio is the median over the pairs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "core/bench/reference_passes.h"
#include "core/kernel/kernel_under_test.h"
#include "core/oracle/gradients/gradients.h"

namespace attest {
namespace {

constexpr std::int64_t width = 64;

double cpu_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// As many queries as keys, Gaussian.
Case gaussian_case(DType dtype, std::int64_t queries, std::int64_t keys) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> gauss;
  const auto fill = [&](std::int64_t rows) {
    std::vector<double> values(static_cast<std::size_t>(rows * width));
    for (double& value : values) value = gauss(random);
    return Tensor(dtype, {1, 1, rows, width}, values);
  };
  Case c;
  c[Slot::q] = fill(queries), c[Slot::k] = fill(keys), c[Slot::v] = fill(keys), c[Slot::d_out] = fill(queries);
  c.scale = 1 / std::sqrt(static_cast<double>(width));
  return c;
}

void verdict(benchmark::State& state, DType dtype) {
  const std::int64_t keys = state.range(0), queries = std::min<std::int64_t>(keys, 1024);
  const Case c = gaussian_case(dtype, queries, keys);
  const std::vector<std::unique_ptr<Kernel>> kernels = open_kernels("builtin:flash", {});
  Kernel& kernel = *kernels.front();
  const Case forward = forward_of(c);
  const Reply answer = kernel.run(forward, dtype, /*want_lse=*/true);
  const Reply back = kernel.backward(c, {answer.out, answer.lse}, dtype);
  const BackwardInputs given{c[Slot::d_out], {}, answer.out.tensor(), answer.lse.tensor()};
  std::array<Tensor, gradient_count> found;
  for (std::size_t of = 0; of < found.size(); ++of) found[of] = back.gradients[of].tensor();
  const Arithmetic arithmetic = kernel.manifest().arithmetic_for(c);
  const BackwardArithmetic backward = kernel.manifest().backward_arithmetic_for(c);
  const HeadData head{queries, keys, width, width, c.scale, c.q().to_doubles(), c.k().to_doubles(), c.v().to_doubles()};
  const std::vector<double> d_out = c[Slot::d_out].to_doubles(), out = given.out.to_doubles(),
                            lse = given.lse.to_doubles();
  PlainBackwardPass plain;
  const PlainBackwardPass::Gradients& expected = plain(head, d_out, out, lse);
  for (std::size_t e = 0; e < expected.dk.size(); ++e)
    if (!(std::fabs(expected.dk[e] - found[1][static_cast<std::int64_t>(e)]) <= 0.1))
      return state.SkipWithError("the plain pass computes something else");
  const std::array<Verdict, gradient_count> verdicts = judge_gradients(forward, given, found, arithmetic, backward);
  for (const Gradient one : gradients_by_inputs)
    if (verdicts[static_cast<std::size_t>(one)].outcome != Outcome::held)
      return state.SkipWithError("the verdict is not held");
  std::vector<double> ratios;
  for ([[maybe_unused]] auto _ : state) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(plain(head, d_out, out, lse).dq.data());
    const double between = cpu_seconds();
    benchmark::DoNotOptimize(judge_gradients(forward, given, found, arithmetic, backward));
    const double end = cpu_seconds();
    state.SetIterationTime(end - between);
    ratios.push_back((end - between) / (between - start));
  }
  state.counters["ratio"] = median(std::move(ratios));
}

void declare_benchmarks() {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    auto* b = benchmark::RegisterBenchmark(fmt::format("gradients {}", name_of(dtype)).c_str(),
                                           [dtype](benchmark::State& s) { verdict(s, dtype); });
    b->UseManualTime()->Unit(benchmark::kMillisecond)->Arg(256)->Arg(1024)->Arg(4096)->Arg(16384);
  }
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  attest::declare_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
