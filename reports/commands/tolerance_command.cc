#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/support/errors.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/commands.h"
#include "reports/results/tolerance_trial.h"
#include "reports/run/interrupt.h"

namespace attest {
int tolerance_command(const Options& options) {
  handle_signals();
  const std::unique_ptr<Kernel> kernel = open_chosen_kernel(options, "attest tolerance takes one");
  if (!kernel->manifest().attention)
    throw KernelLoadError(fmt::format("{} has no attention entry, so there is nothing to try", kernel->id()));
  TrialPlan plan;
  plan.tolerance = {*options.atol, *options.rtol};
  plan.dtypes = options.dtypes;
  plan.cases = options.cases.value_or(plan.cases);
  plan.seed = options.seed;
  plan.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const TrialResult result = try_tolerance(plan, *kernel, interrupt_requested);
  if (result.kernels.empty())
    throw KernelLoadError(fmt::format("{} has none of the dtypes asked for, so there is nothing to try", kernel->id()));
  fmt::print("{}", options.json ? trial_json(result, plan) : trial_text(result, plan));
  const bool any = std::ranges::any_of(result.kernels, [](const KernelTrial& one) { return one.all.cases > 0; });
  return any ? 0 : 3;
}

}  // namespace attest
