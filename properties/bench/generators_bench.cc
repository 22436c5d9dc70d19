// What a case costs before a kernel sees it, beside the two things it is made of.
#include <benchmark/benchmark.h>
#include <rapidcheck/Random.h>

#include "core/problem/selection.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/generators/recipes.h"

namespace attest {
namespace {

const Property attention{.name = "bench.attention", .operation = Operation::attention, .given = [](Draw& draw) -> Case {
                           return draw.attention();
                         }};
const Property multihead{.name = "bench.multihead", .operation = Operation::multihead, .given = [](Draw& draw) -> Case {
                           return draw.multihead().torch_case();
                         }};

/// Whole cases, provenance included, of the default mix of shapes.
void generate_cases(benchmark::State& state, const Property& property, DType dtype) {
  std::int64_t k = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(generate(property, dtype, /*run_seed=*/1, k++));
  state.SetItemsProcessed(k);
}
BENCHMARK_CAPTURE(generate_cases, attention_f32, attention, DType::f32);
BENCHMARK_CAPTURE(generate_cases, attention_bf16, attention, DType::bf16);
BENCHMARK_CAPTURE(generate_cases, multihead_f32, multihead, DType::f32);

/// Only recipes whose extents are at most 8.
void decode_small(benchmark::State& state) {
  const auto recipes = attention_recipes(DType::f32);
  std::uint64_t k = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(decode(recipes(rc::Random(k++), /*size=*/8).value()));
  state.SetItemsProcessed(static_cast<std::int64_t>(k));
}
BENCHMARK(decode_small);

/// The recipe alone: RapidCheck's source and the choices.
void draw_recipe(benchmark::State& state) {
  const auto recipes = attention_recipes(DType::f32);
  std::uint64_t k = 0;
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(recipes(rc::Random(k++)).value());
}
BENCHMARK(draw_recipe);

/// A manifest without limits: the price of asking.
void project_unchanged(benchmark::State& state) {
  const Manifest manifest;
  const Case c = generate(attention, DType::f32, 1, 0);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(project(c, manifest));
}
BENCHMARK(project_unchanged);

}  // namespace
}  // namespace attest
