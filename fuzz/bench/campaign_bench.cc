// Runs a second of a search on one core: an input bred, its case made, the kernel called, the answer judged, the
// archive kept. The kernels: a built-in one, of any shape, and a shared library of at most eight of everything in a
// process of its own.
#include <benchmark/benchmark.h>

#include <memory>
#include <string_view>
#include <utility>

#include "core/isolation/worker_main.h"
#include "core/kernel/kernel_under_test.h"
#include "fuzz/search.h"

namespace attest {
namespace {

void search_runs(benchmark::State& state, const char* spec, const Strategy& strategy, bool call) {
  const std::unique_ptr<Kernel> kernel = std::move(open_kernels(spec, {}).front());
  const Property& property = *properties_matching("attention.oracle").at(0);
  Search search({&property, DType::f32}, /*seed=*/1, strategy);
  std::int64_t k = 0, judged = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Input input = Search::made(search.plan(k), search.target());
    const Case c = project(case_of(input, property), kernel->manifest());
    if (call) {
      const Verdict verdict = check_case(property, *kernel, c);
      if (verdict.outcome == Outcome::violated) return state.SkipWithError("violated");
      judged += verdict.outcome == Outcome::held;
      search.learn(k, input, c, verdict);
    }
    ++k;
  }
  state.counters["runs_a_second"] = benchmark::Counter(static_cast<double>(k), benchmark::Counter::kIsRate);
  state.counters["judged_a_second"] = benchmark::Counter(static_cast<double>(judged), benchmark::Counter::kIsRate);
  state.counters["cells"] = static_cast<double>(search.archive().entries().size());
  state.counters["worst"] = search.archive().worst();
}

void builtin_making_cases_only(benchmark::State& state) {
  search_runs(state, "builtin:flash", unguided, /*call=*/false);
}
void builtin_unguided(benchmark::State& state) {
  search_runs(state, "builtin:flash", unguided, /*call=*/true);
}
void builtin_guided(benchmark::State& state) {
  search_runs(state, "builtin:flash", {}, /*call=*/true);
}
void small_library_unguided(benchmark::State& state) {
  search_runs(state, ATTEST_SMALL_KERNEL, unguided, /*call=*/true);
}
void small_library_guided(benchmark::State& state) {
  search_runs(state, ATTEST_SMALL_KERNEL, {}, /*call=*/true);
}
BENCHMARK(builtin_making_cases_only)->UseRealTime()->MinTime(2.0);
BENCHMARK(builtin_unguided)->UseRealTime()->MinTime(2.0);
BENCHMARK(builtin_guided)->UseRealTime()->MinTime(4.0);
BENCHMARK(small_library_unguided)->UseRealTime()->MinTime(2.0);
BENCHMARK(small_library_guided)->UseRealTime()->MinTime(4.0);

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return attest::worker_main(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
