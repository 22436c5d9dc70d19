// The self-test of the search, guided and unguided on the same generator, property and seeds: how many runs until a
// planted fault is found, and how bad the worst case is that is found of a kernel that is right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/search.h"
#include "properties/faults/faults.h"

namespace attest {

/// A kernel that is right, in one dtype.
struct RightKernel {
  std::shared_ptr<Kernel> kernel;  ///< of both searches and all seeds
  DType dtype = DType::f32;
};

struct SelfTestPlan {
  std::vector<const PlantedFault*> faults;
  std::vector<RightKernel> kernels;
  int seeds = 5;
  std::int64_t most_runs = 20'000;  ///< then it counts as not found; a right kernel gets as many
};

/// Runs until the first violation, per seed; most_runs + 1 where there was none.
struct Detection {
  std::string fault, property, dtype;
  std::vector<std::int64_t> guided, unguided;
};

/// The largest utilisation of attention.oracle in most_runs runs, per seed. Infinite where the kernel is not right.
struct WorstFound {
  std::string kernel, dtype;
  std::vector<double> guided, unguided;
};

struct SelfTest {
  std::vector<Detection> detections;
  std::vector<WorstFound> worsts;
};

/// The median; of an even count the upper one of the two in the middle. Not empty.
template <class Number>
[[nodiscard]] Number median_of(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}
/// Vargha and Delaney's A12 (2000): the probability that a guided campaign needs fewer runs than an unguided one, ties
/// counted half. 0.5: no difference. Neither is empty.
template <class Number>
[[nodiscard]] double a12_of(const std::vector<Number>& guided, const std::vector<Number>& by_chance) {
  double wins = 0;
  for (const Number a : guided)
    for (const Number b : by_chance) wins += a < b ? 1.0 : a == b ? 0.5 : 0.0;
  return wins / (static_cast<double>(guided.size()) * static_cast<double>(by_chance.size()));
}

/// "17", or "> 2000" where it was not found in the most runs.
[[nodiscard]] std::string runs_text(std::int64_t runs, std::int64_t most);
/// "2/3": of so many seeds it was found on.
[[nodiscard]] std::string found_text(const std::vector<std::int64_t>& runs, std::int64_t most);

/// The property and dtype a fault is looked for by: the first of caught_by, in f32 where it has it.
[[nodiscard]] Target target_of(const PlantedFault& fault);

/// Every fault and every kernel on every seed, both ways. `stop` ends it between two runs; what is whole by then comes
/// back. `finished` is told a line of each.
[[nodiscard]] SelfTest self_test(const SelfTestPlan& plan, const std::function<bool()>& stop,
                                 const std::function<void(const std::string&)>& finished);

/// A Markdown table, a row per fault, and a line that sums up: faults found on every seed, and by how much guidance
/// shortens the search (geometric mean over the faults that either way found on most seeds). Then a table with a row
/// per kernel. Nothing of what was not asked for.
[[nodiscard]] std::string self_test_table(const SelfTest& result, const SelfTestPlan& plan);

}  // namespace attest
