// The self-test of the search: how many runs until a planted fault is found, guided and unguided, on the same
// generator, property and seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "faults/faults.h"
#include "search.h"

namespace attest {

struct SelfTestPlan {
  std::vector<const PlantedFault*> faults;
  int seeds = 5;
  std::int64_t most_runs = 20'000;  ///< then it counts as not found
};

/// Runs until the first violation, per seed; most_runs + 1 where there was none.
struct Detection {
  std::string fault, property, dtype;
  std::vector<std::int64_t> guided, unguided;
};

/// The median; of an even count the upper one of the two in the middle. Not empty.
[[nodiscard]] std::int64_t median_of(std::vector<std::int64_t> values);
/// Vargha and Delaney's A12 (2000): the probability that a guided campaign needs fewer runs than an unguided one, ties
/// counted half. 0.5: no difference. Neither is empty.
[[nodiscard]] double a12_of(const std::vector<std::int64_t>& guided, const std::vector<std::int64_t>& by_chance);

/// The property and dtype a fault is looked for by: the first of caught_by, in f32 where it has it.
[[nodiscard]] Target target_of(const PlantedFault& fault);

/// Every fault on every seed, both ways. `stop` ends it between two runs; what is whole by then comes back. `finished`
/// hears of each fault.
[[nodiscard]] std::vector<Detection> self_test(const SelfTestPlan& plan, const std::function<bool()>& stop,
                                               const std::function<void(const Detection&)>& finished);

/// A Markdown table, a row per fault, and a line that sums up: faults found on every seed, and by how much guidance
/// shortens the search (geometric mean over the faults that either way found on most seeds).
[[nodiscard]] std::string self_test_table(const std::vector<Detection>& detections, const SelfTestPlan& plan);

}  // namespace attest
