#include "self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

namespace attest {
namespace {

std::unique_ptr<Kernel> kernel_of(const PlantedFault& fault) {
  const std::string id = "fault:" + std::string(fault.name);
  for (const KernelEntry& entry : fault_kernels())
    if (entry.id == id) return entry.make();
  return nullptr;
}

/// Nothing when it was stopped.
std::optional<std::int64_t> runs_until_found(const Target& target, Kernel& kernel, std::uint64_t seed,
                                             const Strategy& strategy, std::int64_t most,
                                             const std::function<bool()>& stop) {
  Search search(target, seed, strategy);
  for (std::int64_t k = 0; k < most; ++k) {
    if (stop()) return std::nullopt;
    const Input input = Search::made(search.plan(k), target);
    const Case c = project(case_of(input, *target.property), kernel.manifest());
    const Verdict verdict = check_case(*target.property, kernel, c);
    if (verdict.outcome == Outcome::violated) return k + 1;
    search.learn(k, input, c, verdict);
  }
  return most + 1;
}

std::string runs_text(std::int64_t runs, std::int64_t most) {
  return runs > most ? fmt::format("> {}", most) : std::to_string(runs);
}

std::string found_text(const std::vector<std::int64_t>& runs, std::int64_t most) {
  return fmt::format("{}/{}", std::ranges::count_if(runs, [most](std::int64_t n) { return n <= most; }), runs.size());
}

}  // namespace

std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double a12_of(const std::vector<std::int64_t>& guided, const std::vector<std::int64_t>& by_chance) {
  double wins = 0;
  for (const std::int64_t a : guided)
    for (const std::int64_t b : by_chance) wins += a < b ? 1.0 : a == b ? 0.5 : 0.0;
  return wins / (static_cast<double>(guided.size()) * static_cast<double>(by_chance.size()));
}

Target target_of(const PlantedFault& fault) {
  const std::string_view first = fault.caught_by.substr(0, fault.caught_by.find(' '));
  const bool f32 = fault.dtypes.empty() || std::ranges::find(fault.dtypes, DType::f32) != fault.dtypes.end();
  return {properties_matching(first).at(0), f32 ? DType::f32 : fault.dtypes.front()};
}

std::vector<Detection> self_test(const SelfTestPlan& plan, const std::function<bool()>& stop,
                                 const std::function<void(const Detection&)>& finished) {
  std::vector<Detection> detections;
  for (const PlantedFault* const fault : plan.faults) {
    // What outputs cannot show is no search's to find, and what only statistics show is no single run's.
    if (fault->caught_by.empty()) continue;
    const Target target = target_of(*fault);
    Detection detection{
        std::string(fault->name), std::string(target.property->name), std::string(name_of(target.dtype)), {}, {}};
    for (int seed = 1; seed <= plan.seeds; ++seed) {
      for (const bool guided : {true, false}) {
        // A kernel of its own each time: some faults differ from call to call.
        const std::unique_ptr<Kernel> kernel = kernel_of(*fault);
        const auto runs = runs_until_found(target, *kernel, static_cast<std::uint64_t>(seed),
                                           guided ? Strategy() : unguided, plan.most_runs, stop);
        if (!runs) return detections;
        (guided ? detection.guided : detection.unguided).push_back(*runs);
      }
    }
    finished(detection);
    detections.push_back(std::move(detection));
  }
  return detections;
}

std::string self_test_table(const std::vector<Detection>& detections, const SelfTestPlan& plan) {
  std::string text =
      "| fault | property | dtype | guided: found | median runs | unguided: found | median runs | A12 |\n"
      "|---|---|---|---|---|---|---|---|\n";
  double logs = 0;
  int compared = 0, always = 0, always_unguided = 0;
  for (const Detection& d : detections) {
    const std::int64_t guided = median_of(d.guided), by_chance = median_of(d.unguided);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {:.2f} |\n", d.fault, d.property, d.dtype,
                        found_text(d.guided, plan.most_runs), runs_text(guided, plan.most_runs),
                        found_text(d.unguided, plan.most_runs), runs_text(by_chance, plan.most_runs),
                        a12_of(d.guided, d.unguided));
    always += std::ranges::max(d.guided) <= plan.most_runs;
    always_unguided += std::ranges::max(d.unguided) <= plan.most_runs;
    if (std::min(guided, by_chance) > plan.most_runs) continue;
    logs += std::log(static_cast<double>(by_chance) / static_cast<double>(guided));
    ++compared;
  }
  text += fmt::format(
      "\n{} faults, {} seeds, at most {} runs each: {} found on every seed guided, {} unguided. Unguided takes {:.2f} "
      "times "
      "the runs of guided (geometric mean of the ratios of medians over {} faults; what was not found counts as {} "
      "runs).\n",
      detections.size(), plan.seeds, plan.most_runs, always, always_unguided,
      compared > 0 ? std::exp(logs / compared) : 1.0, compared, plan.most_runs + 1);
  return text;
}

}  // namespace attest
