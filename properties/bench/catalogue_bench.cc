// Cases a second of every property on one built-in kernel at shapes up to 8: both runs, bounds and oracle included. And
// what one such property costs with the usual tools.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/selection.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

constexpr std::int64_t largest_extent = 8, most_cases = 2000;
constexpr std::string_view kernel_id = "builtin:flash", reference_property = "attention.key-value-permutation";

std::map<std::string, double, std::less<>> cases_a_second;

bool is_small(const Case& c) {
  const Extents e = extents_of(c);
  for (const std::int64_t extent : {e.queries, e.keys, e.dk, e.dv, e.heads, e.batch})
    if (extent > largest_extent) return false;
  return true;
}

void check_cases(benchmark::State& state, const Property& property) {
  const std::unique_ptr<Kernel> kernel = std::move(open_kernels(kernel_id, {}).front());
  std::vector<std::int64_t> small;
  for (std::int64_t k = 0; k < most_cases; ++k)
    if (is_small(project(generate(property, DType::f32, /*run_seed=*/1, k), kernel->manifest()))) small.push_back(k);
  if (small.empty()) return state.SkipWithError("draws no small case");
  std::size_t next = 0;
  std::int64_t checked = 0, judged = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Case c = project(generate(property, DType::f32, 1, small[next]), kernel->manifest());
    next = (next + 1) % small.size();
    const Outcome outcome = check_case(property, *kernel, c).outcome;
    if (outcome == Outcome::violated) return state.SkipWithError("violated");
    ++checked;
    judged += outcome == Outcome::held;
  }
  if (judged == 0) return state.SkipWithError("judges nothing on this kernel");
  state.SetItemsProcessed(checked);
  state.counters["rate"] = benchmark::Counter(static_cast<double>(checked), benchmark::Counter::kIsRate);
}

/// Cases a second of hypothesis_reference.py; nothing where Hypothesis, NumPy or mpmath cannot be imported.
std::optional<double> hypothesis_rate() {
  const std::string command = fmt::format("/usr/bin/python3 '{}' 2>/dev/null", ATTEST_HYPOTHESIS_REFERENCE);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  double rate = 0;
  if (!pipe || std::fscanf(pipe.get(), "%lf", &rate) != 1) return std::nullopt;
  return rate;
}

/// Keeps the rates that the console shows, for the comparison below it.
class Console : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (const auto rate = run.counters.find("rate"); rate != run.counters.end())
        cases_a_second[run.run_name.function_name] = rate->second;
    ConsoleReporter::ReportRuns(runs);
  }
};

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  using namespace attest;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const Property* property : catalogue()) {
    if (property->operation != Operation::attention) continue;
    benchmark::RegisterBenchmark(std::string(property->name).c_str(),
                                 [property](benchmark::State& state) { check_cases(state, *property); });
  }
  Console console;
  benchmark::RunSpecifiedBenchmarks(&console);
  benchmark::Shutdown();
  const auto ours = cases_a_second.find(reference_property);
  if (ours == cases_a_second.end()) return 0;
  if (const std::optional<double> theirs = hypothesis_rate())
    fmt::print("\n{}: {:.0f} cases a second here, {:.0f} with Hypothesis, NumPy and mpmath: {:.0f} times\n",
               reference_property, ours->second, *theirs, ours->second / *theirs);
  else
    fmt::print("\n{}: {:.0f} cases a second (Hypothesis, NumPy or mpmath cannot be imported)\n", reference_property,
               ours->second);
  return 0;
}
