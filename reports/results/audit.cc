#include "reports/results/audit.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "properties/road/heard_kernel.h"
#include "reports/run/in_parallel.h"

namespace attest {
namespace {

bool has_operation(const Manifest& manifest, Operation operation) {
  return operation == Operation::attention ? manifest.attention : manifest.multihead;
}

/// One kernel under audit: its properties and dtypes in turn, the rules of others on each of its calls.
class Audited {
 public:
  Audited(const AuditPlan& plan, std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> twin,
          const std::function<bool()>& stop)
      : plan_(plan), kernel_(std::move(kernel)), twin_(std::move(twin)), stop_(stop) {
    result_.name = kernel_->id();
    for (const Property* property : catalogue()) {
      if (!has_operation(kernel_->manifest(), property->operation)) continue;
      for (const DType dtype : kernel_->manifest().dtypes) cells_.emplace_back(property, dtype);
    }
  }

  /// Nothing where it was stopped.
  std::optional<AuditedKernel> run() {
    HeardKernel heard(*kernel_, [this](const Case& c, const Tensor& out) { hear(c, out); });
    for (std::int64_t k = 0;; ++k) {
      for (const auto& [property, dtype] : cells_) {
        if (stop_()) return std::nullopt;
        if (twin_ ? result_.cases >= plan_.cases : result_.judged >= plan_.control_cases) return std::move(result_);
        one_case(*property, dtype, k, heard);
      }
    }
  }

 private:
  void one_case(const Property& property, DType dtype, std::int64_t k, Kernel& heard) {
    const std::string name(property.name);
    const bool caught = result_.caught.contains(name);
    if (twin_ && caught && (told_ == RuleSet().set() || dtype == DType::f64)) {
      ++result_.cases;
      return;
    }
    const Case c = project(generate(property, dtype, plan_.seed, k), kernel_->manifest());
    ++result_.cases;
    if (twin_ && caught) {
      // The property has its answer; the rules get the case all the same.
      if (why_unsupported(kernel_->manifest(), c).empty()) (void)heard.run(c, dtype, false);
      return;
    }
    const Verdict verdict = check_case(property, heard, c);
    const bool violated = verdict.outcome == Outcome::violated;
    if (violated || verdict.outcome == Outcome::held) ++result_.judged;
    if (!violated) return;
    ++result_.flagged[name];
    result_.caught.try_emplace(name, FirstCatch{k, result_.cases, dtype});
  }

  /// The rules of others on one call. A control's rates need no more calls than a fault's.
  void hear(const Case& c, const Tensor& out) {
    if (c.operation != Operation::attention || c.dtype() == DType::f64 || out.dtype() != c.dtype()) return;
    if (result_.cases > plan_.cases || (twin_ && told_ == RuleSet().set())) return;
    const Yardstick yardstick(c);
    if (!yardstick.says_something()) return;
    ++result_.ruled;
    const RuleSet rejecting = yardstick.rejecting(out);
    for (std::size_t n = 0; n < other_rule_count; ++n) result_.rejected[n] += rejecting[n] ? 1 : 0;
    if (!twin_ || (rejecting & ~told_).none()) return;
    const Reply right = twin_->run(c, c.dtype(), false);
    if (right.status != CallStatus::ok) return;
    const RuleSet told = rejecting & ~yardstick.rejecting(right.out) & ~told_;
    for (std::size_t n = 0; n < other_rule_count; ++n)
      if (told[n]) result_.told_apart[n] = result_.cases;
    told_ |= told;
  }

  const AuditPlan& plan_;
  std::unique_ptr<Kernel> kernel_, twin_;  ///< no twin: a control
  const std::function<bool()>& stop_;
  std::vector<std::pair<const Property*, DType>> cells_;
  RuleSet told_;  ///< rules that have told the fault apart
  AuditedKernel result_;
};

std::unique_ptr<Kernel> kernel_named(const std::vector<KernelEntry>& entries, const std::string& id) {
  return std::ranges::find(entries, id, &KernelEntry::id)->make();
}

}  // namespace

std::optional<std::int64_t> AuditedKernel::needed() const {
  std::optional<std::int64_t> fewest;
  for (const auto& [property, first] : caught) fewest = std::min(first.spent, fewest.value_or(first.spent));
  return fewest;
}

bool AuditResult::passed() const {
  for (std::size_t n = 0; n < of_faults.size(); ++n)
    if (of_faults[n].caught.empty() == faults[n]->unseen.empty()) return false;
  return std::ranges::all_of(of_controls, [](const AuditedKernel& control) { return control.flagged.empty(); });
}

AuditResult audit(const AuditPlan& plan, const std::function<bool()>& stop,
                  const std::function<void(const AuditedKernel&)>& finished) {
  const std::vector<KernelEntry> faulty = fault_kernels(), right = control_kernels();
  // Controls first: they take longest.
  const std::size_t count = plan.controls.size() + plan.faults.size();
  std::vector<std::optional<AuditedKernel>> done(count);
  std::mutex mutex;
  in_parallel(count, plan.jobs, [&](std::size_t n) {
    if (stop()) return;
    const bool is_control = n < plan.controls.size();
    const PlantedFault* fault = is_control ? nullptr : plan.faults[n - plan.controls.size()];
    auto kernel = is_control ? kernel_named(right, "control:" + std::string(plan.controls[n]->name))
                             : kernel_named(faulty, "fault:" + std::string(fault->name));
    done[n] = Audited(plan, std::move(kernel), is_control ? nullptr : without_fault(*fault), stop).run();
    const std::lock_guard lock(mutex);
    if (done[n]) finished(*done[n]);
  });
  AuditResult result;
  for (const Property* property : catalogue()) {
    const auto reaches = [&](const std::vector<KernelEntry>& entries) {
      return has_operation(entries.front().make()->manifest(), property->operation);
    };
    if (reaches(faulty) || reaches(right)) result.properties.emplace_back(property->name);
  }
  for (std::size_t n = 0; n < count; ++n) {
    if (!done[n]) {
      result.interrupted = true;
    } else if (n < plan.controls.size()) {
      result.of_controls.push_back(std::move(*done[n]));
    } else {
      result.faults.push_back(plan.faults[n - plan.controls.size()]);
      result.of_faults.push_back(std::move(*done[n]));
    }
  }
  return result;
}

}  // namespace attest
