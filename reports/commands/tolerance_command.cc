#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_kernel.h"
#include "reports/results/tolerance_trial.h"
#include "reports/run/interrupt.h"

namespace attest {
namespace {

/// A number of at least 0: infinity is one.
double tolerance_number(std::string_view option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    throw UsageError(fmt::format("{} is {}; it must be a number of at least 0, such as 1e-5", option, in_quotes(text)));
  return value;
}

struct ToleranceOptions {
  std::optional<std::string> kernel;
  std::optional<double> atol, rtol;
  TrialPlan plan;
  KernelProcess process;
  bool json = false;

  void declare(OptionList& list) {
    const Value<double> number{"NUMBER", tolerance_number};
    list.option("--kernel", kernel, kernel_name(),
                "the kernel whose right answers are tried, as attest check takes it");
    list.option("--atol", atol, number, "the absolute tolerance, from 0 to inf");
    list.option("--rtol", rtol, number, "the tolerance relative to the exact answer, from 0 to inf");
    declare_dtypes(list, plan.dtypes);
    list.option("--cases", plan.cases, whole_number<std::int64_t>(1),
                "cases of the kernel per dtype, and at most of each planted fault (default: 2000)");
    declare_seed(list, plan.seed);
    declare_jobs(list, plan.jobs);
    process.declare(list);
    list.flag("--json", json, "as JSON");
  }
  void refuse() const {
    refuse_if(!atol || !rtol, fmt::format("attest tolerance needs {} too; 0 is one", atol ? "--rtol" : "--atol"));
    refuse_if(!kernel, "attest tolerance needs --kernel KERNEL, whose right answers are tried");
  }
};

int run_trial(ToleranceOptions& options) {
  handle_signals();
  const std::unique_ptr<Kernel> kernel =
      open_chosen_kernel(*options.kernel, options.process, "attest tolerance takes one");
  if (!kernel->manifest().attention)
    throw KernelLoadError(fmt::format("{} has no attention entry, so there is nothing to try", kernel->id()));
  TrialPlan& plan = options.plan;
  plan.tolerance = {*options.atol, *options.rtol};
  const TrialResult result = try_tolerance(plan, *kernel, interrupt_requested);
  if (result.kernels.empty())
    throw KernelLoadError(fmt::format("{} has none of the dtypes asked for, so there is nothing to try", kernel->id()));
  fmt::print("{}", options.json ? trial_json(result, plan) : trial_text(result, plan));
  const bool any = std::ranges::any_of(result.kernels, [](const KernelTrial& one) { return one.all.cases > 0; });
  return any ? 0 : 3;
}

}  // namespace

Command tolerance_command() {
  return {with_options<ToleranceOptions>(run_trial), "tolerance",
          "attest tolerance --atol A --rtol R --kernel KERNEL [OPTIONS]",
          "Tries a tolerance of your own, |found - exact| <= A + R |exact|: which right answers of the kernel it would "
          "refuse, right being within the proved bound, and which planted faults it would miss, on cases that attest "
          "check draws. It informs and judges nothing: exit 0 whatever it finds.",
          "attest tolerance --atol 1e-5 --rtol 1.3e-6 --kernel ./libmine.so --dtype f32"};
}

}  // namespace attest
