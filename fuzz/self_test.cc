#include "fuzz/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

namespace attest {
namespace {

/// Searches until `enough` says so of a run, at most `most` runs. False when it was stopped.
bool searched(const Target& target, Kernel& kernel, std::uint64_t seed, const Strategy& strategy, std::int64_t most,
              const std::function<bool()>& stop, const std::function<bool(std::int64_t, const Verdict&)>& enough) {
  const Road road;
  WatchedKernel watched(kernel, stop);
  Search search(target, seed, strategy);
  try {
    for (std::int64_t k = 0; k < most; ++k) {
      const Input input = Search::made(search.plan(k), target);
      const Walked walked = walk(road, *target.property, watched, [&] { return case_of(input, *target.property); });
      if (enough(k, walked.verdict)) return true;
      search.learn(k, input, walked.problem, walked.verdict);
    }
  } catch (const Abandoned&) {
    return false;
  }
  return true;
}

/// Nothing when it was stopped.
std::optional<std::int64_t> runs_until_found(const Target& target, Kernel& kernel, std::uint64_t seed,
                                             const Strategy& strategy, std::int64_t most,
                                             const std::function<bool()>& stop) {
  std::int64_t runs = most + 1;
  const auto violated = [&](std::int64_t k, const Verdict& verdict) {
    if (verdict.outcome != Outcome::violated) return false;
    runs = k + 1;
    return true;
  };
  if (!searched(target, kernel, seed, strategy, most, stop, violated)) return std::nullopt;
  return runs;
}

/// Nothing when it was stopped.
std::optional<double> worst_of(const Target& target, Kernel& kernel, std::uint64_t seed, const Strategy& strategy,
                               std::int64_t runs, const std::function<bool()>& stop) {
  double worst = 0;
  const auto note = [&](std::int64_t, const Verdict& verdict) {
    if (verdict.outcome == Outcome::violated) worst = std::numeric_limits<double>::infinity();
    if (verdict.outcome == Outcome::held) worst = std::max(worst, verdict.utilisation);
    return false;
  };
  if (!searched(target, kernel, seed, strategy, runs, stop, note)) return std::nullopt;
  return worst;
}

/// One search for each seed, guided and unguided by turns; false when it was stopped.
template <class Number, class Run>
bool both_ways(int seeds, std::vector<Number>& guided, std::vector<Number>& by_chance, const Run& run) {
  for (int seed = 1; seed <= seeds; ++seed) {
    for (const bool guide : {true, false}) {
      const std::optional<Number> found = run(static_cast<std::uint64_t>(seed), guide ? Strategy() : unguided);
      if (!found) return false;
      (guide ? guided : by_chance).push_back(*found);
    }
  }
  return true;
}

}  // namespace

std::string runs_text(std::int64_t runs, std::int64_t most) {
  return runs > most ? fmt::format("> {}", most) : std::to_string(runs);
}

std::string found_text(const std::vector<std::int64_t>& runs, std::int64_t most) {
  return fmt::format("{}/{}", std::ranges::count_if(runs, [most](std::int64_t n) { return n <= most; }), runs.size());
}

Target target_of(const PlantedFault& fault) {
  const std::string_view first = fault.caught_by.substr(0, fault.caught_by.find(' '));
  const bool f32 = std::ranges::find(fault.dtypes, DType::f32) != fault.dtypes.end();
  return {properties_matching(first).at(0), f32 ? DType::f32 : fault.dtypes.front()};
}

SelfTest self_test(const SelfTestPlan& plan, const std::function<bool()>& stop,
                   const std::function<void(const std::string&)>& finished) {
  SelfTest result;
  for (const PlantedFault* const fault : plan.faults) {
    // What outputs cannot show is no search's to find, and what only statistics show is no single run's.
    if (fault->caught_by.empty()) continue;
    const Target target = target_of(*fault);
    Detection detection{
        std::string(fault->name), std::string(target.property->name), std::string(name_of(target.dtype)), {}, {}};
    const auto run = [&](std::uint64_t seed, const Strategy& strategy) {
      // A kernel of its own each time: some faults differ from call to call.
      return runs_until_found(target, *with_fault(*fault), seed, strategy, plan.most_runs, stop);
    };
    if (!both_ways(plan.seeds, detection.guided, detection.unguided, run)) return result;
    finished(fmt::format("{}: median {} guided, {} unguided", detection.fault, median_of(detection.guided),
                         median_of(detection.unguided)));
    result.detections.push_back(std::move(detection));
  }
  for (const auto& [kernel, dtype] : plan.kernels) {
    const Target target{properties_matching("attention.oracle").at(0), dtype};
    WorstFound worst{kernel->id(), std::string(name_of(dtype)), {}, {}};
    const auto run = [&, &under_test = *kernel](std::uint64_t seed, const Strategy& strategy) {
      return worst_of(target, under_test, seed, strategy, plan.most_runs, stop);
    };
    if (!both_ways(plan.seeds, worst.guided, worst.unguided, run)) return result;
    finished(fmt::format("{} in {}: median of the worst {:.3f} guided, {:.3f} unguided", worst.kernel, worst.dtype,
                         median_of(worst.guided), median_of(worst.unguided)));
    result.worsts.push_back(std::move(worst));
  }
  return result;
}

namespace {

std::string detections_table(const std::vector<Detection>& detections, const SelfTestPlan& plan) {
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

std::string worsts_table(const std::vector<WorstFound>& worsts, const SelfTestPlan& plan) {
  std::string text =
      "| kernel | dtype | guided: median of the worst | least | unguided: median | largest | ratio of medians | A12 |\n"
      "|---|---|---|---|---|---|---|---|\n";
  double logs = 0;
  int compared = 0;
  for (const WorstFound& w : worsts) {
    const double guided = median_of(w.guided), by_chance = median_of(w.unguided);
    // A12 asks who is smaller.
    text += fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.2f} |\n", w.kernel, w.dtype,
                        guided, std::ranges::min(w.guided), by_chance, std::ranges::max(w.unguided), guided / by_chance,
                        a12_of(w.unguided, w.guided));
    if (!(by_chance > 0 && std::isfinite(by_chance) && guided > 0 && std::isfinite(guided))) continue;
    logs += std::log(guided / by_chance);
    ++compared;
  }
  text += fmt::format("\nThe worst utilisation of attention.oracle in {} runs, {} seeds.", plan.most_runs, plan.seeds);
  if (compared > 0) {
    text += fmt::format(
        " Guided it is {:.2f} times unguided (geometric mean of the ratios of medians over {} kernels and dtypes). The "
        "bound is attained, so no ratio can be larger than 1 over the unguided one.",
        std::exp(logs / compared), compared);
  }
  return text + '\n';
}

}  // namespace

std::string self_test_table(const SelfTest& result, const SelfTestPlan& plan) {
  std::string text;
  if (!result.detections.empty()) text = detections_table(result.detections, plan);
  if (!text.empty() && !result.worsts.empty()) text += '\n';
  if (!result.worsts.empty()) text += worsts_table(result.worsts, plan);
  return text;
}

}  // namespace attest
