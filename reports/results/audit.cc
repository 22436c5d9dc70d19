#include "reports/results/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "properties/road/jobs.h"
#include "properties/road/road.h"

namespace attest {
namespace {

/// One kernel under audit: its properties and dtypes in turn, the rules of others on each of its calls.
class Audited {
 public:
  Audited(const AuditPlan& plan, std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> twin, std::int64_t check_cases,
          const std::function<bool()>& stop)
      : plan_(plan), kernel_(std::move(kernel)), twin_(std::move(twin)), check_cases_(check_cases), stop_(stop) {
    result_.name = kernel_->id();
    for (const Property* property : catalogue()) {
      if (!kernel_->manifest().has(property->operation)) continue;
      for (const DType dtype : kernel_->manifest().dtypes) targets_.push_back({property, dtype});
    }
    // Once a fault is caught the property has its answer; the rules get the case all the same.
    road_.check = [this](const Property& property, Kernel& heard, const Case& c) {
      if (!is_caught(property)) return check_case(property, heard, c);
      if (why_unsupported(heard.manifest(), c).empty()) (void)heard.run(c);
      return Verdict{.outcome = Outcome::skipped, .reason = "is of a property that has caught the fault"};
    };
  }

  /// Nothing where it was stopped.
  std::optional<AuditedKernel> run() {
    WatchedKernel watched(
        *kernel_, stop_, [this](const Case& c, const Tensor& out) { hear(c, out); },
        [this](const Case& c, const BackwardCall& call, const Reply& reply) { hear(c, call, reply); });
    try {
      for (std::int64_t k = 0;; ++k) {
        for (const Target& target : targets_) {
          if (is_done(k)) return std::move(result_);
          one_case(target, k, watched);
        }
      }
    } catch (const Abandoned&) {
      return std::nullopt;
    }
  }

 private:
  /// Before case k of a property in a dtype.
  [[nodiscard]] bool is_done(std::int64_t k) const {
    if (!twin_) return result_.judged >= plan_.control_cases;
    return result_.cases >= plan_.cases && (!result_.caught.empty() || k >= check_cases_);
  }
  [[nodiscard]] bool is_caught(const Property& property) const {
    return twin_ != nullptr && result_.caught.contains(std::string(property.name));
  }

  void one_case(const Target& target, std::int64_t k, WatchedKernel& watched) {
    const auto& [property, dtype] = target;
    const bool rules_have_their_answer = told_ == RuleSet().set() || dtype == DType::f64;
    ++result_.cases;
    if (is_caught(*property) && rules_have_their_answer) return;
    const Walked walked =
        walk(road_, *property, watched, [&] { return road_.generate(*property, dtype, plan_.seed, k); });
    if (walked.is(Outcome::violated) || walked.is(Outcome::held)) ++result_.judged;
    if (!walked.is(Outcome::violated)) return;
    const std::string name(property->name);
    ++result_.flagged[name];
    result_.caught.try_emplace(name, FirstCatch{k, result_.cases, dtype});
  }

  /// Whether the rules of others are still to hear calls in the dtype. A control's rates need no more than a fault's.
  [[nodiscard]] bool listens_to(const Case& c) const {
    if (c.operation != Operation::attention || c.dtype() == DType::f64) return false;
    return result_.cases <= plan_.cases && !(twin_ && told_ == RuleSet().set());
  }

  /// The rules on one call.
  void hear(const Case& c, const Tensor& out) {
    if (!listens_to(c) || out.dtype() != c.dtype()) return;
    const Yardstick yardstick(c);
    if (!yardstick.says_something()) return;
    tell_apart(yardstick.rejecting(out), [&]() -> std::optional<RuleSet> {
      const Reply right = twin_->run(c);
      if (right.status != CallStatus::ok) return std::nullopt;
      return yardstick.rejecting(right.out);
    });
  }
  /// The same on a backward pass: the twin has it of the same forward answers.
  void hear(const Case& c, const BackwardCall& call, const Reply& reply) {
    if (!listens_to(c)) return;
    const GradientYardstick yardstick(c);
    if (!yardstick.says_something()) return;
    tell_apart(yardstick.rejecting(reply.gradients), [&]() -> std::optional<RuleSet> {
      const Reply right = twin_->backward(c, call, c.dtype());
      if (right.status != CallStatus::ok) return std::nullopt;
      return yardstick.rejecting(right.gradients);
    });
  }
  /// Those that reject a call, and of these not the right kernel's.
  template <class RejectingTwin>
  void tell_apart(const RuleSet& rejecting, RejectingTwin&& rejecting_twin) {
    ++result_.ruled;
    for (std::size_t n = 0; n < other_rule_count; ++n) result_.rejected[n] += rejecting[n] ? 1 : 0;
    if (!twin_ || (rejecting & ~told_).none()) return;
    const std::optional<RuleSet> right = rejecting_twin();
    if (!right) return;
    const RuleSet told = rejecting & ~*right & ~told_;
    for (std::size_t n = 0; n < other_rule_count; ++n)
      if (told[n]) result_.told_apart[n] = result_.cases;
    told_ |= told;
  }

  const AuditPlan& plan_;
  std::unique_ptr<Kernel> kernel_, twin_;  ///< no twin: a control
  std::int64_t check_cases_;  ///< of each property in each dtype, where nothing has caught the fault before
  const std::function<bool()>& stop_;
  std::vector<Target> targets_;
  Road road_;
  RuleSet told_;  ///< rules that have told the fault apart
  AuditedKernel result_;
};

std::unique_ptr<Kernel> kernel_of(const ControlKernel& control) {
  const std::vector<KernelEntry> entries = control_kernels();
  return std::ranges::find(entries, "control:" + std::string(control.name), &KernelEntry::id)->make();
}

}  // namespace

std::string audit_cases(std::int64_t cases, std::int64_t check_cases) {
  const std::string each = fmt::format("{} cases each", cases);
  return check_cases == 0 ? each : each + fmt::format(", or the first {} of each property", check_cases);
}

std::optional<std::int64_t> AuditedKernel::needed() const {
  std::optional<std::int64_t> fewest;
  for (const auto& [property, first] : caught) fewest = std::min(first.spent, fewest.value_or(first.spent));
  return fewest;
}

bool AuditedKernel::caught_by_check(std::int64_t cases_of_each) const {
  return std::ranges::any_of(caught, [&](const auto& entry) { return entry.second.k < cases_of_each; });
}

std::vector<KindScore> AuditResult::by_kind() const {
  std::vector<KindScore> scores;
  for (std::size_t kind = 0; kind < Words<FaultKind>::names.size(); ++kind) {
    KindScore score{.kind = static_cast<FaultKind>(kind)};
    for (std::size_t n = 0; n < of_faults.size(); ++n) {
      if (faults[n]->kind != score.kind || !faults[n]->unseen.empty()) continue;
      ++score.faults;
      score.caught += of_faults[n].caught.empty() ? 0 : 1;
      score.by_short_check += of_faults[n].caught_by_check(short_check) ? 1 : 0;
    }
    if (score.faults > 0) scores.push_back(score);
  }
  return scores;
}

bool AuditResult::passed() const {
  for (std::size_t n = 0; n < of_faults.size(); ++n)
    if (of_faults[n].caught.empty() == faults[n]->unseen.empty()) return false;
  return std::ranges::all_of(of_controls, [](const AuditedKernel& control) { return control.flagged.empty(); });
}

AuditResult audit(const AuditPlan& plan, const std::function<bool()>& stop,
                  const std::function<void(const AuditedKernel&)>& finished) {
  // Controls first: they take longest.
  const std::size_t count = plan.controls.size() + plan.faults.size();
  std::vector<std::optional<AuditedKernel>> done(count);
  std::mutex mutex;
  in_parallel(count, plan.jobs, [&](std::size_t n) {
    if (stop()) return;
    const bool is_control = n < plan.controls.size();
    const PlantedFault* fault = is_control ? nullptr : plan.faults[n - plan.controls.size()];
    auto kernel = is_control ? kernel_of(*plan.controls[n]) : with_fault(*fault);
    auto twin = is_control ? nullptr : without_fault(*fault);
    // What outputs cannot show needs no more cases.
    const std::int64_t check_cases = is_control || !fault->unseen.empty() ? 0 : plan.check_cases;
    done[n] = Audited(plan, std::move(kernel), std::move(twin), check_cases, stop).run();
    const std::lock_guard lock(mutex);
    if (done[n]) finished(*done[n]);
  });
  AuditResult result;
  for (const Property* property : catalogue()) {
    const auto reaches = [&](const std::vector<KernelEntry>& entries) {
      return entries.front().make()->manifest().has(property->operation);
    };
    if (reaches(fault_kernels()) || reaches(control_kernels())) result.properties.emplace_back(property->name);
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
