// What the isolation of a kernel costs: a call of a kernel that does next to nothing, of shape 1 x 1 x 4 x 4 in f32, in
// this process, in a process of its own, which is this program again, and behind walls of either kind; and the same
// with each tensor against a protected page.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/isolation/walls/walls.h"
#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/edge.h"

namespace attest {
namespace {

constexpr int calls_in_a_round = 500;

std::unique_ptr<Kernel> open(bool in_process, std::shared_ptr<const Walls> walls = nullptr) {
  KernelOptions options;
  options.in_process = in_process;
  options.walls = std::move(walls);
  return std::move(open_kernels(ATTEST_BENCH_LIBRARY, options).front());
}

Case smallest() {
  Case c;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::f32, {1, 1, 4, 4});
  c.scale = 0.5;
  return c;
}

/// Mean wall time of a call over one round, in microseconds; NaN where a call fails.
double round(Kernel& kernel, const Case& c) {
  const auto start = std::chrono::steady_clock::now();
  bool good = true;
  for (int i = 0; i < calls_in_a_round; ++i) good = kernel.run(c).status == CallStatus::ok && good;
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return good ? time.count() / calls_in_a_round : std::numeric_limits<double>::quiet_NaN();
}

/// A call as it is, and behind walls of either kind.
void walls_of_a_call(benchmark::State& state) {
  const Walls whole, bare{.left_out = {Wall::namespaces}};
  if (const std::string why = why_no_walls(whole); !why.empty()) return state.SkipWithError(why.c_str());
  const auto worker = open(false), behind = open(false, std::make_shared<const Walls>(whole)),
             behind_bare = open(false, std::make_shared<const Walls>(bare));
  const Case c = smallest();
  double without = std::numeric_limits<double>::infinity(), with = without, with_bare = without;
  for ([[maybe_unused]] auto _ : state) {
    without = std::min(without, round(*worker, c));
    with = std::min(with, round(*behind, c));
    with_bare = std::min(with_bare, round(*behind_bare, c));
  }
  state.counters["worker_us"] = without;
  state.counters["walls_us"] = with;
  state.counters["bare_walls_us"] = with_bare;
  state.counters["walls_cost_us"] = with - without;
  state.counters["walls_ratio"] = with / without;
}
BENCHMARK(walls_of_a_call)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2.0);

/// The two are measured in turn, and the best round of each counts: what else the machine does only ever adds.
void isolation_of_a_call(benchmark::State& state) {
  const auto in_process = open(true), worker = open(false);
  const Case c = smallest();
  Case at_edge = c;
  set_edge(at_edge, Edge::behind);
  double within = std::numeric_limits<double>::infinity(), without = within, within_at_edge = within,
         without_at_edge = within;
  for ([[maybe_unused]] auto _ : state) {
    within = std::min(within, round(*in_process, c));
    without = std::min(without, round(*worker, c));
    within_at_edge = std::min(within_at_edge, round(*in_process, at_edge));
    without_at_edge = std::min(without_at_edge, round(*worker, at_edge));
  }
  state.counters["in_process_us"] = within;
  state.counters["worker_us"] = without;
  state.counters["in_process_at_edge_us"] = within_at_edge;
  state.counters["worker_at_edge_us"] = without_at_edge;
  state.counters["isolation_us"] = without - within;
}
BENCHMARK(isolation_of_a_call)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2.0);

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return attest::worker_main(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
