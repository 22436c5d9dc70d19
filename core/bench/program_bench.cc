// What it costs to put large tensors to a Python function: a call of one that returns q as it came, at B=1 H=32 N=8192
// D=128 in bf16 (q, k, v and out: 268 MB), so that nothing but their way there and back is measured: in shared memory,
// as functions have it, and by frames. Skipped where the framework cannot be imported.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/kernel/kernel_under_test.h"

namespace attest {
namespace {

Case large() {
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::bf16, {1, 32, 8192, 128});
  for (std::int64_t i = 0; i < c.q().elements(); i += 97) c[Slot::q].set(i, static_cast<double>(i % 7));
  c.scale = 0.125;
  return c;
}

/// `manifest` continues that of the function, a dict of Python's; `options` the arguments of attest_adapter.serve.
void call(benchmark::State& state, const std::string& framework, const std::string& manifest,
          const std::string& options) {
  if (std::system(("/usr/bin/python3 -c 'import " + framework + "' 2>/dev/null").c_str()) != 0) {
    state.SkipWithError("the framework cannot be imported");
    return;
  }
  const std::string program =
      "import attest_adapter; attest_adapter.serve(lambda q, k, v, scale: q, {\"dtypes\": "
      "[\"bf16\"]" +
      manifest + "}, framework=\"" + framework + "\"" + options + ")";
  KernelOptions patient;
  patient.reply = std::chrono::minutes(2);
  const auto kernel = std::move(open_kernels("exec:/usr/bin/python3 -c '" + program + "'", patient).front());
  const Case c = large();
  double slowest = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const Reply reply = kernel->run(c);
    slowest = std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (reply.status != CallStatus::ok || reply.out.tensor() != c.q()) {
      state.SkipWithError((reply.message.empty() ? "another answer than q" : reply.message).c_str());
      return;
    }
  }
  state.counters["slowest_s"] = slowest;
}

void in_torch(benchmark::State& state) {
  call(state, "torch", "", "");
}
void in_numpy(benchmark::State& state) {
  call(state, "numpy", "", ", bf16=\"bits\"");
}
/// NumPy has no bf16: the function gets and returns float32.
void in_numpy_as_f32(benchmark::State& state) {
  call(state, "numpy", "", "");
}
void in_torch_by_frames(benchmark::State& state) {
  call(state, "torch", ", \"shared_memory\": False", "");
}
BENCHMARK(in_torch)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);
BENCHMARK(in_numpy)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);
BENCHMARK(in_numpy_as_f32)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);
BENCHMARK(in_torch_by_frames)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(5);

}  // namespace
}  // namespace attest
