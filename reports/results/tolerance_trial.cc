#include "reports/results/tolerance_trial.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string_view>

#include "core/measure/error_statistics.h"
#include "core/measure/kinds.h"
#include "core/oracle/oracle.h"
#include "properties/road/jobs.h"
#include "properties/road/road.h"

namespace attest {
namespace {

/// atol + rtol size, where infinity times 0 is 0: the answer 0 is as exact as any.
double limit_of(const Tolerance& tolerance, double size) {
  return size > 0 ? tolerance.atol + tolerance.rtol * size : tolerance.atol;
}

/// Sends a case along the road; hears every output of the case's own dtype.
template <class Hear>
Walked walk_and_hear(const Property& property, Kernel& kernel, const Case& drawn, const std::function<bool()>& stop,
                     Hear&& hear) {
  WatchedKernel watched(kernel, stop, [&](const Case& called, const Tensor& out) {
    if (called.operation == Operation::attention && out.dtype() == called.dtype()) hear(called, out);
  });
  return walk({}, property, watched, [&] { return drawn; });
}

Fared fared_in(const Tolerance& tolerance, const Kernel& kernel, const Case& c, const Tensor& out) {
  const Manifest& manifest = kernel.manifest();
  Arithmetic arithmetic = manifest.arithmetic_for(c);
  arithmetic.output = out.dtype();
  return fared(tolerance, c, out, arithmetic, manifest.claims_to(Claim::ignores_dead_values));
}

void note(KernelTrial& trial, std::int64_t k, const std::string& kinds, const Fared& one) {
  trial.wrong += one.wrong, trial.wrong_refused += one.wrong_refused, trial.unsure += one.unsure;
  if (one.right == 0) return;
  trial.all.add(one);
  trial.classes[{"inputs", is_ordinary(kinds) ? "ordinary" : "others"}].add(one);
  if (const ErrorSample* errors = one.verdict.errors.get()) {
    trial.classes[{"keys", std::string(key_class_name(key_class(errors->keys)))}].add(one);
    trial.classes[{"mask", std::string(name_of(errors->mask))}].add(one);
  }
  for (const std::string group : {"scores", "values"})
    if (const std::string_view kind = kind_in(kinds, group + ":"); !kind.empty())
      trial.classes[{group, std::string(kind)}].add(one);
  if (one.right_refused > 0 && (trial.worst_k < 0 || one.excess > trial.worst_excess))
    trial.worst_k = k, trial.worst_excess = one.excess, trial.worst_kinds = kinds;
}

KernelTrial trial_of(const TrialPlan& plan, Kernel& kernel, DType dtype, const std::function<bool()>& stop) {
  KernelTrial trial{.kernel = kernel.id(), .dtype = dtype, .all = {}, .classes = {}, .worst_kinds = {}};
  const Property& property = property_named("attention.oracle");
  for (std::int64_t k = 0; k < plan.cases; ++k) {
    ++trial.drawn;
    std::vector<Fared> all;
    const Walked walked = walk_and_hear(
        property, kernel, generate(property, dtype, plan.seed, k), stop,
        [&](const Case& called, const Tensor& out) { all.push_back(fared_in(plan.tolerance, kernel, called, out)); });
    for (const Fared& one : all) note(trial, k, std::string(kinds_of(walked.problem)), one);
  }
  return trial;
}

std::vector<const Property*> properties_of(const PlantedFault& fault) {
  std::vector<const Property*> properties;
  for (const auto word : std::views::split(fault.caught_by, ' '))
    if (!word.empty()) properties.push_back(&property_named(std::string_view(word.begin(), word.end())));
  return properties;
}

FaultTrial trial_of(const TrialPlan& plan, const PlantedFault& fault, DType dtype, const std::function<bool()>& stop) {
  FaultTrial trial{.fault = &fault, .dtype = dtype, .missed_property = {}};
  const std::unique_ptr<Kernel> kernel = with_fault(fault);
  const std::vector<const Property*> properties = properties_of(fault);
  for (std::int64_t k = 0; trial.drawn < plan.cases && trial.wrong < plan.enough; ++k) {
    for (const Property* property : properties) {
      if (trial.drawn >= plan.cases || trial.wrong >= plan.enough) break;
      const Case c = generate(*property, dtype, plan.seed, k);
      ++trial.drawn;
      std::int64_t wrong = 0, refused = 0;
      double let_pass = 0;
      const Walked walked = walk_and_hear(*property, *kernel, c, stop, [&](const Case& called, const Tensor& out) {
        const Fared one = fared_in(plan.tolerance, *kernel, called, out);
        wrong += one.wrong, refused += one.wrong_refused, let_pass = std::max(let_pass, one.let_pass);
      });
      if (wrong == 0) {
        trial.other += walked.is(Outcome::violated) ? 1 : 0;
        continue;
      }
      ++trial.wrong;
      trial.let_pass = std::max(trial.let_pass, let_pass);
      if (refused > 0) {
        ++trial.refused;
      } else if (trial.missed_k < 0) {
        trial.missed_property = property->name, trial.missed_k = k;
      }
    }
  }
  return trial;
}

bool has_dtype(const PlantedFault& fault, DType dtype) {
  return std::ranges::find(fault.dtypes, dtype) != fault.dtypes.end();
}

}  // namespace

Fared fared(const Tolerance& tolerance, const Case& c, const Tensor& out, const Arithmetic& arithmetic,
            bool ignores_dead_values) {
  Fared result;
  OracleOptions options{.ignores_dead_values = ignores_dead_values, .measure_errors = true};
  options.element = [&](const JudgedElement& e) {
    const double size = std::abs(e.exact), most = limit_of(tolerance, size + e.certificate) * (1 + 0x1p-50),
                 least = limit_of(tolerance, std::max(0.0, size - e.certificate)) * (1 - 0x1p-50);
    const bool refused = !std::isfinite(e.found) || e.lower > most;
    if (!refused && !(e.upper <= least)) ++result.unsure;
    if (e.outcome == Outcome::held) {
      ++result.right;
      if (refused) {
        ++result.right_refused;
        result.excess = std::max(result.excess, e.upper / most);
      }
      return;
    }
    ++result.wrong;
    if (refused)
      ++result.wrong_refused;
    else
      result.let_pass = std::max(result.let_pass, e.upper / e.allowed);
  };
  result.verdict = judge_attention(c, out, {}, arithmetic, options);
  return result;
}

void for_each_wrong_case(const PlantedFault& fault, DType dtype, std::int64_t cases,
                         const std::function<bool(const std::string& kinds)>& wanted,
                         const std::function<bool(const std::vector<JudgedElement>& wrong)>& told) {
  const std::unique_ptr<Kernel> kernel = with_fault(fault);
  const std::vector<const Property*> properties = properties_of(fault);
  std::int64_t drawn = 0;
  for (std::int64_t k = 0;; ++k) {
    for (const Property* property : properties) {
      if (drawn++ >= cases) return;
      const Case c = project(generate(*property, dtype, 1, k), kernel->manifest());
      if (!wanted(std::string(kinds_of(c)))) continue;
      std::vector<JudgedElement> wrong;
      OracleOptions options{.ignores_dead_values = kernel->manifest().claims_to(Claim::ignores_dead_values)};
      options.element = [&](const JudgedElement& e) {
        if (e.outcome == Outcome::violated) wrong.push_back(e);
      };
      (void)walk_and_hear(
          *property, *kernel, c, [] { return false; },
          [&](const Case& called, const Tensor& out) {
            (void)judge_attention(called, out, {}, kernel->manifest().arithmetic_for(called), options);
          });
      if (!wrong.empty() && !told(wrong)) return;
    }
    if (properties.empty()) return;
  }
}

void Refusals::add(const Fared& one) {
  ++cases;
  refused_cases += one.right_refused > 0 ? 1 : 0;
  elements += one.right, refused_elements += one.right_refused;
}

TrialResult try_tolerance(const TrialPlan& plan, Kernel& kernel, const std::function<bool()>& stop) {
  std::vector<DType> dtypes;
  for (const DType dtype : kernel.manifest().dtypes)
    if (plan.dtypes.empty() || std::ranges::find(plan.dtypes, dtype) != plan.dtypes.end()) dtypes.push_back(dtype);
  std::vector<std::pair<const PlantedFault*, DType>> faults;
  for (const DType dtype : dtypes) {
    for (const PlantedFault& fault : planted_faults())
      // A tolerance of outputs says nothing of gradients.
      if (!fault.caught_by.empty() && !fault.backward && has_dtype(fault, dtype)) faults.emplace_back(&fault, dtype);
  }
  TrialResult result;
  result.kernels.resize(dtypes.size());
  result.faults.resize(faults.size());
  // The kernel first: it may take long.
  in_parallel(dtypes.size() + faults.size(), plan.jobs, [&](std::size_t n) {
    if (n < dtypes.size()) {
      const std::unique_ptr<Kernel> own = kernel.clone();
      result.kernels[n] = trial_of(plan, *own, dtypes[n], stop);
    } else {
      const auto& [fault, dtype] = faults[n - dtypes.size()];
      result.faults[n - dtypes.size()] = trial_of(plan, *fault, dtype, stop);
    }
  });
  return result;
}

}  // namespace attest
