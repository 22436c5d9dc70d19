#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/names.h"
#include "reports/commands/cheat_audit.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/shared_options.h"
#include "reports/formats/audit_text.h"
#include "reports/results/audit.h"
#include "reports/run/interrupt.h"
#include "reports/text/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// "fault:NAME" and "control:NAME"
std::vector<std::string> planted_names() {
  std::vector<std::string> names;
  for (const PlantedFault& fault : planted_faults()) names.push_back("fault:" + std::string(fault.name));
  for (const ControlKernel& control : controls()) names.push_back("control:" + std::string(control.name));
  return names;
}

struct AuditOptions {
  std::vector<std::string> kernels;  ///< globs; empty: all
  AuditPlan plan;
  std::optional<std::int64_t> cases;
  fs::path out;  ///< empty: the next free attest-audit-NNN
  bool cheats = false, overwrite = false, quiet = false;

  void declare(OptionList& list) {
    list.option("--kernel", kernels, any_text("GLOB", [] { return Completions{.words = planted_names()}; }),
                "planted faults and controls by name, fault:GLOB or control:GLOB; repeatable (default: all)");
    list.flag("--cheats", cheats,
              "audit the judge instead: every cheat of attest list before it, in minutes, honest kernels beside them, "
              "and the rules of other projects on ordinary calls; --kernel names some of them");
    list.option("--cases", cases, whole_number<std::int64_t>(1),
                "cases per fault over all properties and dtypes; a control gets five times as many judged ones "
                "(default: 20000, and the 1000 cases of each property of a default check for what is not caught by "
                "then)");
    declare_seed(list, plan.seed);
    declare_jobs(list, plan.jobs);
    declare_out(list, out);
    declare_overwrite(list, overwrite);
    declare_quiet(list, quiet);
  }
};

/// The faults and controls that --kernel names; all without it.
void choose(const AuditOptions& options, AuditPlan& plan) {
  const std::vector<std::string> known = planted_names();
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
fs::path folder_of(const AuditOptions& options) {
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

int run_cheat_audit(const AuditOptions& options) {
  std::vector<const Cheat*> chosen;
  for (const OutsideName& built : cheat_kernels()) {
    const auto is_named = [&](const std::string& glob) { return glob_match(glob, built.id); };
    if (!options.kernels.empty() && std::ranges::none_of(options.kernels, is_named)) continue;
    const auto cheat = std::ranges::find_if(cheats(), [&](const Cheat& one) { return id_of(one) == built.id; });
    if (cheat != cheats().end()) chosen.push_back(&*cheat);
  }
  if (chosen.empty()) {
    throw UsageError(
        options.kernels.empty()
            ? "--cheats: there are none here; they are built beside the program from the source tree (ninja cheats)"
            : fmt::format("--kernel is {}, no cheat of attest list --kernels", in_quotes(options.kernels.front())));
  }
  const fs::path folder = folder_of(options);
  handle_signals();
  const std::vector<AuditedCheat> audited =
      audit_cheats(chosen, options.plan.jobs, folder, interrupt_requested, [&](const AuditedCheat& one) {
        if (!options.quiet)
          fmt::print(stderr, "{}: {} after {} cases\n", id_of(*one.cheat), name_of(one.verdict), one.cases);
      });
  const Folder files(folder);
  files.write("audit.json", cheat_audit_json(audited));
  files.write("audit.md", cheat_audit_markdown(audited));
  if (!options.quiet) fmt::print("{}audit: {}\n", cheat_audit_text(audited), (folder / "audit.md").string());
  if (interrupt_requested()) return 130;
  return std::ranges::all_of(audited, &AuditedCheat::is_as_it_should_be) ? 0 : 1;
}

int run_audit(AuditOptions& options) {
  if (options.cheats) return run_cheat_audit(options);
  AuditPlan& plan = options.plan;
  choose(options, plan);
  if (options.cases) plan.cases = *options.cases;
  plan.check_cases = options.cases ? 0 : default_check;
  plan.control_cases = plan.cases > (std::int64_t{1} << 50) ? plan.cases : 5 * plan.cases;
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

}  // namespace

Command audit_command() {
  return {with_options<AuditOptions>(run_audit), "audit", "attest audit [OPTIONS]",
          "Runs kernels that are wrong on purpose and correct ones: which property catches which fault after how many "
          "cases, what catches nothing, false alarms, and the rules of other projects on the same calls. Exit 0 when "
          "every catchable fault is caught and no correct kernel is flagged.",
          "attest audit --kernel 'fault:mask-*' --cases 5000"};
}

}  // namespace attest
