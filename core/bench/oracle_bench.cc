// What a verdict costs beside one plain double forward pass over the same rows, and what wider arithmetic would cost.
// Every measurement is a pair, the plain pass and then its rival, in CPU time; a ratio is the median over the pairs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <random>

#include "core/bench/process_memory.h"
#include "core/bench/reference_passes.h"
#include "core/kernel/kernel_under_test.h"
#include "core/oracle/oracle.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

// As many rows as one tile of a kernel; what is done once a head (decoding, packing, statistics) weighs little then.
constexpr std::int64_t queries = 64, width = 64;
constexpr std::int64_t key_counts[] = {256, 1024, 4096, 16384, 65536};
constexpr std::int64_t rivals_keys = 1024;
constexpr long rivals_bits = 170;

double cpu_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Gaussian q, k, v; the same numbers whatever the dtype, up to its rounding.
Case gaussian_case(DType dtype, std::int64_t keys) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> gauss;
  const auto fill = [&](std::int64_t rows) {
    std::vector<double> values(static_cast<std::size_t>(rows * width));
    for (double& value : values) value = gauss(random);
    return Tensor(dtype, {1, 1, rows, width}, values);
  };
  Case c;
  c[Slot::q] = fill(queries);
  c[Slot::k] = fill(keys);
  c[Slot::v] = fill(keys);
  c.scale = 1 / std::sqrt(static_cast<double>(width));
  return c;
}

HeadData head_of(const Case& c) {
  return {queries, c.k().shape()[2], width, width, c.scale, c.q().to_doubles(), c.k().to_doubles(), c.v().to_doubles()};
}

/// What was measured of one rival at one N.
struct Measured {
  double ratio = std::nan("");   ///< rival / plain, median over the pairs
  double plain = std::nan("");   ///< seconds of the plain pass over all rows, median
  double rival = std::nan("");   ///< seconds of the rival
  double memory = std::nan("");  ///< bytes beyond inputs and outputs at the height of one verdict; NaN: not measured
  int level = 0;                 ///< of the verdict: 1 double, 2 double-double, 3 balls
};
/// By the rival's name and N; the last call of a benchmark is its longest, and stays.
std::map<std::pair<std::string, std::int64_t>, Measured> results;

Measured& measure_pairs(benchmark::State& state, const std::string& name, const HeadData& head,
                        const std::function<void()>& rival) {
  PlainPass plain;
  benchmark::DoNotOptimize(plain(head).data());
  rival();
  std::vector<double> ratios, plains, rivals;
  for ([[maybe_unused]] auto _ : state) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(plain(head).data());
    const double between = cpu_seconds();
    rival();
    const double end = cpu_seconds();
    state.SetIterationTime(end - between);
    plains.push_back(between - start);
    rivals.push_back(end - between);
    ratios.push_back((end - between) / (between - start));
  }
  Measured& m = results[{name, head.keys}];
  m.ratio = median(std::move(ratios)), m.plain = median(std::move(plains)), m.rival = median(std::move(rivals));
  state.counters["ratio"] = m.ratio;
  return m;
}

/// A kernel's declared arithmetic for a dtype, or the one assumed of a kernel that declares nothing.
struct Judged {
  std::string name;
  DType dtype;
  bool declared = true;
  void (*change)(Case& c) = nullptr;  ///< what gives it a variant that hides no key, so that the plain pass is the same
};

void give_sink(Case& c) {
  c[Slot::sink] = Tensor(DType::f32, {1}, std::vector<double>{1.0});
}
void give_softcap(Case& c) {
  c.softcap = 50;
}
void give_dropout(Case& c) {
  const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2];
  Tensor keep(DType::boolean, {1, 1, M, N});
  for (std::int64_t e = 0; e < keep.elements(); ++e) keep.set(e, e * 2654435761 % 10 != 0 ? 1 : 0);
  c[Slot::keep] = std::move(keep);
  c.dropout_p = 0.1;
}
void give_slopes(Case& c) {
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 1}, std::vector<double>{0x1p-8});
  settle_alignment(c);
}
void give_window(Case& c) {
  c.window_left = c.k().shape()[2] - 1, c.alignment = Causal::bottom_right;
}
void give_chunks(Case& c) {
  c.attention_chunk = c.k().shape()[2], c.alignment = Causal::top_left;
}
/// One for all of q, and one for so many keys; 0: one for all.
void give_factors(Case& c, std::int64_t keys) {
  const std::int64_t N = c.k().shape()[2], blocks = keys == 0 ? 1 : (N + keys - 1) / keys;
  c[Slot::q_descale] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{1.125});
  for (const Slot factors : {Slot::k_descale, Slot::v_descale}) {
    c[factors] = Tensor(DType::f32, {1, 1, blocks});
    for (std::int64_t e = 0; e < blocks; ++e) c[factors].set(e, 0.7 + 0.01 * static_cast<double>(e % 50));
  }
  c.kv_descale_block = keys;
}
void give_lengths(Case& c) {
  c[Slot::kv_lengths] = Tensor(DType::i32, {1}, std::vector<double>{static_cast<double>(c.k().shape()[2])});
}
void give_pages(Case& c) {
  c = in_pages(c, /*page_size=*/16, /*unused=*/3, /*seed=*/1);
}

const Judged judged[] = {
    {.name = "verdict f32", .dtype = DType::f32},
    {.name = "verdict f16", .dtype = DType::f16},
    {.name = "verdict bf16", .dtype = DType::bf16},
    {.name = "verdict f64", .dtype = DType::f64},
    {.name = "verdict f32, nothing declared", .dtype = DType::f32, .declared = false},
    {.name = "verdict f32, a sink", .dtype = DType::f32, .change = give_sink},
    {.name = "verdict f32, a softcap", .dtype = DType::f32, .change = give_softcap},
    {.name = "verdict f32, a dropout", .dtype = DType::f32, .change = give_dropout},
    {.name = "verdict f32, slopes", .dtype = DType::f32, .change = give_slopes},
    {.name = "verdict f32, a window", .dtype = DType::f32, .change = give_window},
    {.name = "verdict f32, chunks", .dtype = DType::f32, .change = give_chunks},
    {.name = "verdict f32, factors", .dtype = DType::f32, .change = [](Case& c) { give_factors(c, 0); }},
    {.name = "verdict f32, factors of 64 keys", .dtype = DType::f32, .change = [](Case& c) { give_factors(c, 64); }},
    {.name = "verdict f32, lengths", .dtype = DType::f32, .change = give_lengths},
    {.name = "verdict f32, pages", .dtype = DType::f32, .change = give_pages}};

void verdict(benchmark::State& state, const Judged& subject) {
  Case c = gaussian_case(subject.dtype, state.range(0));
  if (subject.change != nullptr) subject.change(c);
  const std::vector<std::unique_ptr<Kernel>> kernels = open_kernels("builtin:flash", {});
  const Tensor out = kernels.front()->run(c).out;
  const Arithmetic arithmetic = subject.declared ? kernels.front()->manifest().arithmetic.usual_for(subject.dtype)
                                                 : universal_arithmetic(subject.dtype, subject.dtype);
  Verdict first;
  const double memory = memory_of([&] { first = judge_attention(c, out, {}, arithmetic); });
  if (first.outcome != Outcome::held) return state.SkipWithError("the verdict is not held");
  Measured& m = measure_pairs(state, subject.name, head_of(c),
                              [&] { benchmark::DoNotOptimize(judge_attention(c, out, {}, arithmetic)); });
  if (memory >= 0) m.memory = memory;
  m.level = first.level;
  state.counters["level"] = first.level;
}

void rival(benchmark::State& state, const std::string& name,
           const std::function<std::vector<double>(const HeadData&)>& pass) {
  const HeadData head = head_of(gaussian_case(DType::f32, state.range(0)));
  PlainPass plain;
  const std::vector<double> expected = plain(head), found = pass(head);
  for (std::size_t e = 0; e < expected.size(); ++e)
    if (!(std::fabs(found[e] - expected[e]) <= 1e-12)) return state.SkipWithError("computes something else");
  measure_pairs(state, name, head, [&] { benchmark::DoNotOptimize(pass(head)); });
}

void print_ratios() {
  fmt::print("\nCPU time of a verdict / of one plain double forward pass ({} rows, dk = dv = {}, medians of pairs)\n",
             queries, width);
  fmt::print("{:<32}", "N");
  for (const std::int64_t n : key_counts) fmt::print("{:>11}", n);
  fmt::print("{:>8}\n", "target");
  for (const Judged& subject : judged) {
    fmt::print("{:<32}", subject.name);
    for (const std::int64_t n : key_counts) {
      const auto found = results.find({subject.name, n});
      fmt::print("{:>11}", found == results.end() ? "-" : fmt::format("{:.2f}", found->second.ratio));
    }
    fmt::print("{:>8}\n", subject.dtype == DType::f64 ? "15" : "2.0");
  }
}

/// ns per query, key and column: flat when cost grows as M N (dk + dv). And bytes a key: flat when memory is O(N).
void print_growth() {
  const auto table = [](std::string_view title, double (*value)(const Measured&, double)) {
    fmt::print("\n{}\n{:<32}", title, "N");
    for (const std::int64_t n : key_counts) fmt::print("{:>11}", n);
    for (const Judged& subject : judged) {
      fmt::print("\n{:<32}", subject.name);
      for (const std::int64_t n : key_counts) {
        const auto found = results.find({subject.name, n});
        const double shown = found == results.end() ? std::nan("") : value(found->second, static_cast<double>(n));
        fmt::print("{:>11}", std::isnan(shown) ? "-" : fmt::format("{:.3g}", shown));
      }
    }
    fmt::print("\n");
  };
  table("verdict, ns per M N (dk + dv)", [](const Measured& m, double n) {
    return m.rival * 1e9 / (static_cast<double>(queries) * n * 2 * static_cast<double>(width));
  });
  table("plain pass, ns per M N (dk + dv)", [](const Measured& m, double n) {
    return m.plain * 1e9 / (static_cast<double>(queries) * n * 2 * static_cast<double>(width));
  });
  table(
      "highest memory beyond inputs and outputs, bytes per key (k, k packed and v: 1536 as doubles, 512 more as "
      "floats)",
      [](const Measured& m, double n) { return m.memory / n; });
}

void print_rivals() {
  fmt::print("\nCPU time / plain double pass at N = {}, on the same work\n", rivals_keys);
  for (const auto& [key, m] : results) {
    if (key.second == rivals_keys) fmt::print("{:<32}{:>11.1f}\n", key.first, m.ratio);
  }
  const auto reference = results.find({"verdict f32", rivals_keys});
  if (reference == results.end()) return;
  if (const std::optional<double> seconds = mpmath_seconds_per_key(width, rivals_bits))
    fmt::print("{:<32}{:>11.0f}   (64 keys of one row, scaled)\n", fmt::format("mpmath, {} bits", rivals_bits),
               *seconds * static_cast<double>(queries * rivals_keys) / reference->second.plain);
  else
    fmt::print("{:<32}{:>11}   (mpmath cannot be imported)\n", fmt::format("mpmath, {} bits", rivals_bits), "-");
}

void declare_benchmarks() {
  for (const Judged& subject : judged) {
    auto* b = benchmark::RegisterBenchmark(subject.name.c_str(), [&](benchmark::State& s) { verdict(s, subject); });
    b->UseManualTime()->Unit(benchmark::kMicrosecond);
    for (const std::int64_t n : key_counts) b->Arg(n);
  }
  const auto wide = [](const std::string& name, const std::function<std::vector<double>(const HeadData&)>& pass) {
    benchmark::RegisterBenchmark(name.c_str(), [name, pass](benchmark::State& s) { rival(s, name, pass); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Arg(rivals_keys);
  };
  wide(fmt::format("Arb, {} bits", rivals_bits), [](const HeadData& head) { return arb_pass(head, rivals_bits); });
  wide("MPFR, 48 digits (160 bits)", [](const HeadData& head) { return mpfr_pass(head, 48); });
  wide("cpp_bin_float_50", bin_float_50_pass);
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  attest::declare_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  if (attest::results.empty()) return 0;
  attest::print_ratios();
  attest::print_growth();
  attest::print_rivals();
  return 0;
}
