// What it costs to judge all of a large output whose queries repeat, beside one plain double pass over the same rows
// that skips hidden keys. Drawing the case is counted, the answer that is judged is not. The plain pass is timed on
// some rows of one head, at several lengths, and scaled by rows times keys. CPU time throughout.
//   large_bench          sizes for a minute
//   large_bench --full   B=2 H=32 KV=8 M=N=8192 D=128, causal and not, and B=1 H=8 KV=2 M=N=65536 D=128
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "core/bench/process_memory.h"
#include "core/bench/reference_passes.h"
#include "core/kernel/kernel_under_test.h"
#include "core/oracle/oracle.h"

namespace attest {
namespace {

constexpr std::int64_t distinct = 16;
constexpr std::int64_t plain_rows = 32, plain_parts = 4;

struct Size {
  std::int64_t batch, heads, kv_heads, length, width;
  Causal causal;
};

double cpu_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::uint16_t bf16_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Numbers between -2 and 2, in the shape of a bell, from 64 random bits.
float bell(std::uint64_t bits) {
  const auto part = [&](int shift) { return static_cast<float>((bits >> shift) & 0xffff) * 0x1p-16F; };
  return part(0) + part(16) + part(32) + part(48) - 2;
}

/// Row i of a head has query query_of(i) of the head's own: neighbours and rows a tile apart differ.
std::int64_t query_of(std::int64_t i, std::int64_t head) {
  return (i + i / distinct * 5 + i / 256 * 3 + head) % distinct;
}

/// Every head has queries of its own.
Case large_case(const Size& size) {
  std::mt19937_64 random(1);
  const auto drawn = [&](std::int64_t heads, std::int64_t rows) {
    Tensor tensor(DType::bf16, {size.batch, heads, rows, size.width});
    auto* const to = reinterpret_cast<std::uint16_t*>(tensor.bytes().data());
    for (std::int64_t at = 0; at < tensor.elements(); ++at) to[at] = bf16_of(bell(random()));
    return tensor;
  };
  Case c;
  c[Slot::k] = drawn(size.kv_heads, size.length);
  c[Slot::v] = drawn(size.kv_heads, size.length);
  const Tensor few = drawn(size.heads, distinct);
  Tensor q(DType::bf16, {size.batch, size.heads, size.length, size.width});
  const auto bytes = static_cast<std::size_t>(size.width) * 2;
  for (std::int64_t head = 0; head < size.batch * size.heads; ++head)
    for (std::int64_t i = 0; i < size.length; ++i)
      std::memcpy(q.bytes().data() + static_cast<std::size_t>(head * size.length + i) * bytes,
                  few.bytes().data() + static_cast<std::size_t>(head * distinct + query_of(i, head)) * bytes, bytes);
  c[Slot::q] = std::move(q);
  c.scale = inverse_root(size.width);
  c.causal = size.causal;
  return c;
}

/// The answer, in double and rounded once: one pass per query, written wherever it stands.
Tensor answer_to(const Case& c, const Size& size) {
  Tensor out(DType::bf16, c.out_shape());
  const std::int64_t N = size.length, D = size.width, group = size.heads / size.kv_heads;
  const auto floats = [&](const Tensor& tensor, std::int64_t head) {
    std::vector<float> values(static_cast<std::size_t>(N * D));
    for (std::size_t at = 0; at < values.size(); ++at)
      values[at] = static_cast<float>(tensor[head * N * D + static_cast<std::int64_t>(at)]);
    return values;
  };
  for (std::int64_t b = 0; b < size.batch; ++b)
    for (std::int64_t h = 0; h < size.heads; ++h) {
      const std::int64_t head = b * size.heads + h, kv = b * size.kv_heads + h / group;
      const std::vector<float> k = floats(c.k(), kv), v = floats(c.v(), kv);
      for (std::int64_t d = 0; d < distinct; ++d) {
        std::vector<float> q(static_cast<std::size_t>(D)), o(static_cast<std::size_t>(D));
        std::int64_t first = 0;
        while (query_of(first, head) != d) ++first;
        for (std::int64_t e = 0; e < D; ++e)
          q[static_cast<std::size_t>(e)] = static_cast<float>(c.q().at(b, h, first, e));
        double sum = 0;
        const auto write = [&](std::int64_t i) {
          auto* const to = reinterpret_cast<std::uint16_t*>(out.bytes().data()) + (head * N + i) * D;
          for (std::int64_t e = 0; e < D; ++e)
            to[e] = bf16_of(static_cast<float>(static_cast<double>(o[static_cast<std::size_t>(e)]) / sum));
        };
        for (std::int64_t j = 0; j < N; ++j) {
          const float* const key = k.data() + j * D;
          const float* const value = v.data() + j * D;
          float parts[8] = {};
          for (std::int64_t e = 0; e + 8 <= D; e += 8)
            for (std::int64_t l = 0; l < 8; ++l) parts[l] += q[static_cast<std::size_t>(e + l)] * key[e + l];
          float dot = 0;
          for (const float part : parts) dot += part;
          const auto w = static_cast<float>(std::exp(c.scale * static_cast<double>(dot)));
          sum += static_cast<double>(w);
          for (std::int64_t e = 0; e < D; ++e) o[static_cast<std::size_t>(e)] += w * value[e];
          if (size.causal != Causal::none && query_of(j, head) == d) write(j);
        }
        for (std::int64_t i = 0; size.causal == Causal::none && i < N; ++i)
          if (query_of(i, head) == d) write(i);
      }
    }
  return out;
}

/// CPU seconds of the plain pass over all rows of the case.
double plain_seconds(const Case& c, const Size& size) {
  const std::int64_t N = size.length, D = size.width;
  const auto part = [&](const Tensor& tensor, std::int64_t rows) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(rows * D));
    for (std::int64_t at = 0; at < rows * D; ++at) values.push_back(tensor[at]);
    return values;
  };
  PlainPass plain;
  double seconds = 0, work = 0;
  for (std::int64_t p = 1; p <= plain_parts; ++p) {
    const std::int64_t keys = size.causal == Causal::none ? N : N * p / plain_parts;
    const HeadData head{plain_rows, keys, D, D, c.scale, part(c.q(), plain_rows), part(c.k(), keys), part(c.v(), keys)};
    benchmark::DoNotOptimize(plain(head).data());
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(plain(head).data());
    seconds += cpu_seconds() - start;
    work += static_cast<double>(plain_rows * keys);
  }
  const auto n = static_cast<double>(N);
  const double seen = size.causal == Causal::none ? n * n : n * (n + 1) / 2;
  return seconds / work * seen * static_cast<double>(size.batch * size.heads);
}

void judge_all(benchmark::State& state, const Size& size) {
  const std::unique_ptr<Kernel> kernel = std::move(open_kernels("builtin:flash", {}).front());
  const Arithmetic arithmetic = kernel->manifest().arithmetic_for(DType::bf16);
  const double begin = cpu_seconds();
  const Case c = large_case(size);
  const double drawing = cpu_seconds() - begin;
  const Tensor out = answer_to(c, size);
  const double plain = plain_seconds(c, size);
  double judging = 0;
  Verdict verdict;
  for ([[maybe_unused]] auto _ : state) {
    const double memory = memory_of([&] {
      const double start = cpu_seconds();
      verdict = judge_attention(c, out, {}, arithmetic);
      judging = cpu_seconds() - start;
    });
    state.SetIterationTime(judging);
    state.counters["MiB"] = memory / 0x1p20;
  }
  const double start = cpu_seconds();
  benchmark::DoNotOptimize(judge_attention(c, out, {}, arithmetic, {.measure_errors = true}));
  state.counters["measuring_s"] = cpu_seconds() - start;
  if (verdict.outcome != Outcome::held) return state.SkipWithError(verdict.reason.c_str());
  state.counters["worst"] = verdict.utilisation;
  state.counters["drawing_s"] = drawing;
  state.counters["judging_s"] = judging;
  state.counters["plain_s"] = plain;
  state.counters["percent"] = 100 * (drawing + judging) / plain;
}

void declare(const Size& size) {
  const std::string name = fmt::format("B={} H={} KV={} M=N={} D={} bf16 {}", size.batch, size.heads, size.kv_heads,
                                       size.length, size.width, size.causal == Causal::none ? "all keys" : "causal");
  benchmark::RegisterBenchmark(name.c_str(), [size](benchmark::State& state) { judge_all(state, size); })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kSecond);
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  bool full = false;
  const auto end = std::remove_if(argv + 1, argv + argc, [&](const char* word) {
    const bool is_full = std::string_view(word) == "--full";
    full = full || is_full;
    return is_full;
  });
  argc = static_cast<int>(end - argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const attest::Causal causal : {attest::Causal::none, attest::Causal::top_left}) {
    if (!full) {
      attest::declare({1, 4, 2, 2048, 128, causal});
      continue;
    }
    attest::declare({2, 32, 8, 8192, 128, causal});
    attest::declare({1, 8, 2, 65536, 128, causal});
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
