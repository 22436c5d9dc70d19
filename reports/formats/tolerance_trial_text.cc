// What came of a tolerance's trial, for a terminal and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/support/json_writer.h"
#include "properties/generators/production.h"
#include "reports/page/print.h"
#include "reports/results/tolerance_trial.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Of fewer cases a share says nothing.
constexpr std::int64_t least_cases = 10;

std::string percent(std::int64_t part, std::int64_t of) {
  return of == 0 ? "0 %" : fmt::format("{} %", short_number(100 * static_cast<double>(part) / static_cast<double>(of)));
}

double share(const Refusals& r) {
  return r.cases == 0 ? 0 : static_cast<double>(r.refused_cases) / static_cast<double>(r.cases);
}

/// The class of a group with the largest share of refused cases; null where none is refused.
const std::pair<const std::pair<std::string, std::string>, Refusals>* worst_class(const KernelTrial& trial,
                                                                                  std::string_view group) {
  const std::pair<const std::pair<std::string, std::string>, Refusals>* worst = nullptr;
  for (const auto& entry : trial.classes) {
    if (entry.first.first != group || entry.second.refused_cases == 0) continue;
    if (entry.second.cases < std::min(least_cases, trial.all.cases)) continue;
    if (worst == nullptr || share(entry.second) > share(worst->second)) worst = &entry;
  }
  return worst;
}

std::string rerun_of(const KernelTrial& trial, std::uint64_t seed) {
  return trial.worst_k < 0 ? std::string()
                           : rerun_line(trial.kernel, std::string(name_of(trial.dtype)), "attention.oracle", seed,
                                        to_string(default_shapes), trial.worst_k);
}

std::string kernel_text(const KernelTrial& trial, std::uint64_t seed) {
  const Refusals& all = trial.all;
  std::string text = fmt::format("{} {}: ", trial.kernel, name_of(trial.dtype));
  if (all.cases == 0) return text + fmt::format("none of {} cases could be judged\n", trial.drawn);
  text += fmt::format("right answers refused in {} of {} cases ({}), {} of {} elements ({})\n", all.refused_cases,
                      all.cases, percent(all.refused_cases, all.cases), all.refused_elements, all.elements,
                      percent(all.refused_elements, all.elements));
  if (const auto ordinary = trial.classes.find({"inputs", "ordinary"}); ordinary != trial.classes.end()) {
    const Refusals& those = ordinary->second;
    text += fmt::format("  of ordinary inputs, those of the report's tolerances: {} of {} cases ({})\n",
                        those.refused_cases, those.cases, percent(those.refused_cases, those.cases));
  }
  for (const std::string_view group : {"values", "scores", "mask", "keys"}) {
    const auto* worst = worst_class(trial, group);
    if (worst == nullptr) continue;
    text += fmt::format("  most by {:<7} {}: {} of {} cases ({})\n", std::string(group) + ",", worst->first.second,
                        worst->second.refused_cases, worst->second.cases,
                        percent(worst->second.refused_cases, worst->second.cases));
  }
  if (trial.worst_k >= 0)
    text += fmt::format("  farthest: an error of {} times what is tolerated, case {} ({})\n    {}\n",
                        short_number(trial.worst_excess), trial.worst_k, trial.worst_kinds, rerun_of(trial, seed));
  if (trial.wrong > 0)
    text += fmt::format("  {} further elements are beyond their bound, so wrong; {} of them are refused\n", trial.wrong,
                        trial.wrong_refused);
  if (trial.unsure > 0)
    text += fmt::format("  {} elements lie so close to what is tolerated that nothing is certain; taken as accepted\n",
                        trial.unsure);
  return text;
}

/// Missed in all cases, in some, in none, and those that no single output shows.
struct Counts {
  std::int64_t missed = 0, partly = 0, caught = 0, elsewhere = 0;
  [[nodiscard]] std::int64_t shown() const { return missed + partly + caught; }
};

Counts counts_of(const TrialResult& result, DType dtype) {
  Counts counts;
  for (const FaultTrial& one : result.faults) {
    if (one.dtype != dtype) continue;
    ++(one.wrong == 0            ? counts.elsewhere
       : one.refused == 0        ? counts.missed
       : one.refused < one.wrong ? counts.partly
                                 : counts.caught);
  }
  return counts;
}

std::string faults_text(const TrialResult& result, DType dtype) {
  const Counts counts = counts_of(result, dtype);
  std::string text = fmt::format(
      "{}: of {} planted faults whose outputs are beyond the proved bound, all of which that catches, this tolerance "
      "misses {}, catches {} in some of their cases only, and {} in all\n",
      name_of(dtype), counts.shown(), counts.missed, counts.partly, counts.caught);
  std::vector<const FaultTrial*> open;
  for (const FaultTrial& one : result.faults)
    if (one.dtype == dtype && one.refused < one.wrong) open.push_back(&one);
  std::ranges::sort(open, {}, [](const FaultTrial* one) {
    return std::pair(static_cast<double>(one->refused) / static_cast<double>(one->wrong), one->fault->name);
  });
  Table table{"", columns_of("fault|#refused|#by the bound|#lets pass|what is wrong")};
  for (const FaultTrial* one : open) {
    table.rows.push_back({{one->fault->name, one->refused == 0 ? "none" : std::to_string(one->refused),
                           fmt::format("{} of {} cases", one->wrong, one->drawn),
                           fmt::format("{} x bound", short_number(one->let_pass)), one->fault->wrong}});
  }
  if (!open.empty()) text += terminal_text(table);
  if (counts.elsewhere > 0)
    text += fmt::format(
        "{} further faults show in no element here: in bits, in the log-sum-exp, in memory, in rows without a key, or "
        "too rarely; no tolerance sees those\n",
        counts.elsewhere);
  return text;
}

}  // namespace

std::string trial_text(const TrialResult& result, const TrialPlan& plan) {
  std::string text = fmt::format(
      "tolerance: |found - exact| <= {} + {} |exact|; NaN and Inf never pass\nright: within the bound that is proved "
      "for "
      "the declared arithmetic. This informs and judges nothing: the exit status is 0 whatever it finds.\n",
      number_text(plan.tolerance.atol), number_text(plan.tolerance.rtol));
  for (const KernelTrial& trial : result.kernels) {
    text += '\n' + kernel_text(trial, plan.seed);
    text += '\n' + faults_text(result, trial.dtype);
  }
  return text;
}

std::string trial_json(const TrialResult& result, const TrialPlan& plan) {
  JsonWriter json;
  json.begin_object().member("schema", "attest-tolerance-trial/1");
  json.member("atol", plan.tolerance.atol).member("rtol", plan.tolerance.rtol);
  json.member("seed", plan.seed).member("cases", plan.cases);
  const auto add = [&](const Refusals& r) {
    json.member("cases", r.cases).member("refused_cases", r.refused_cases);
    json.member("elements", r.elements).member("refused_elements", r.refused_elements);
  };
  json.key("kernels").begin_array();
  for (const KernelTrial& one : result.kernels) {
    json.begin_object().member("kernel", one.kernel).member("dtype", name_of(one.dtype)).member("drawn", one.drawn);
    add(one.all);
    json.member("wrong_elements", one.wrong).member("wrong_elements_refused", one.wrong_refused);
    json.member("unsure_elements", one.unsure).key("classes").begin_array();
    for (const auto& [key, refusals] : one.classes) {
      json.begin_object().member("by", key.first).member("class", key.second);
      add(refusals);
      json.end_object();
    }
    json.end_array();
    if (one.worst_k >= 0)
      json.key("worst")
          .begin_object()
          .member("k", one.worst_k)
          .member("error_over_tolerated", one.worst_excess)
          .member("kinds", one.worst_kinds)
          .member("rerun", rerun_of(one, plan.seed))
          .end_object();
    const Counts counts = counts_of(result, one.dtype);
    json.member("faults_missed", counts.missed).member("faults_partly_caught", counts.partly);
    json.member("faults_caught", counts.caught).member("faults_without_a_wrong_element", counts.elsewhere);
    json.end_object();
  }
  json.end_array().key("faults").begin_array();
  for (const FaultTrial& one : result.faults) {
    json.begin_object().member("fault", one.fault->name).member("dtype", name_of(one.dtype));
    json.member("wrong", one.fault->wrong).member("drawn", one.drawn);
    json.member("caught_by_bound", one.wrong).member("refused", one.refused).member("flagged_otherwise", one.other);
    if (one.wrong > one.refused) json.member("let_pass_over_bound", one.let_pass);
    if (one.missed_k >= 0) json.member("missed_property", one.missed_property).member("missed_k", one.missed_k);
    json.end_object();
  }
  return json.end_array().end_object().text() + '\n';
}

}  // namespace attest
