#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/support/folder.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"
#include "reports/formats/audit_text.h"
#include "reports/results/audit.h"
#include "reports/run/interrupt.h"
#include "reports/run/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// The faults and controls that --kernel names; all without it.
void choose(const Options& options, AuditPlan& plan) {
  std::vector<std::string> known;
  for (const PlantedFault& fault : planted_faults()) known.push_back("fault:" + std::string(fault.name));
  for (const ControlKernel& control : controls()) known.push_back("control:" + std::string(control.name));
  for (const std::string& glob : options.kernels) {
    if (std::ranges::any_of(known, [&](const std::string& id) { return glob_match(glob, id); })) continue;
    throw UsageError(fmt::format("--kernel is {}, no planted fault or control of attest list --kernels{}",
                                 in_quotes(glob), suggestion(glob, known, /*list_up_to=*/0)));
  }
  const auto chosen = [&](const std::string& id) {
    return options.kernels.empty() ||
           std::ranges::any_of(options.kernels, [&](const std::string& glob) { return glob_match(glob, id); });
  };
  for (const PlantedFault& fault : planted_faults())
    if (chosen("fault:" + std::string(fault.name))) plan.faults.push_back(&fault);
  for (const ControlKernel& control : controls())
    if (chosen("control:" + std::string(control.name))) plan.controls.push_back(&control);
}

/// The folder of the audit, made; the next free attest-audit-NNN where none is given.
fs::path folder_of(const Options& options) {
  fs::path folder = options.out;
  std::error_code error;
  for (int number = 1; folder.empty() && !error; ++number) {
    const fs::path candidate = fmt::format("attest-audit-{:03}", number);
    // create_directory is the test and the taking in one.
    if (fs::create_directory(candidate, error)) return candidate;
    if (error) folder = candidate;
  }
  if (!options.overwrite && fs::exists(folder / "audit.json", error)) {
    throw UsageError(
        fmt::format("{}: holds an audit already; replace it by --overwrite or choose another --out", folder.string()));
  }
  fs::create_directories(folder, error);
  if (error)
    throw UsageError(fmt::format("{}: cannot be made: {}; choose another --out", folder.string(), error.message()));
  // What is foreign is refused before the audit, not at its end.
  const Folder files(folder);
  for (const char* const name : {"audit.json", "audit.md"}) (void)files.holds(name);
  return folder;
}

}  // namespace

int audit_command(const Options& options) {
  AuditPlan plan;
  choose(options, plan);
  plan.cases = options.cases.value_or(plan.cases);
  plan.control_cases = plan.cases > (std::int64_t{1} << 50) ? plan.cases : 5 * plan.cases;
  plan.seed = options.seed;
  plan.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const fs::path folder = folder_of(options);
  handle_signals();
  const AuditResult result = audit(plan, interrupt_requested, [&](const AuditedKernel& kernel) {
    if (options.quiet) return;
    const std::optional<std::int64_t> needed = kernel.needed();
    fmt::print(
        stderr, "{}: {}\n", kernel.name,
        needed ? fmt::format("flagged by case {}", *needed) : fmt::format("not flagged in {} cases", kernel.cases));
  });
  const Folder files(folder);
  files.write("audit.json", audit_json(result, plan));
  files.write("audit.md", audit_markdown(result, plan));
  if (!options.quiet) fmt::print("{}\naudit: {}\n", audit_summary(result, plan), (folder / "audit.md").string());
  if (!result.passed()) return 1;
  return result.interrupted ? 130 : 0;
}

}  // namespace attest
