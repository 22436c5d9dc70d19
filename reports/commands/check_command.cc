#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "core/bound/error_alarm.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/chosen_properties.h"
#include "reports/commands/ci_files.h"
#include "reports/commands/commands.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/results.h"
#include "reports/formats/table.h"
#include "reports/results/conclusion.h"
#include "reports/run/changed_kernel.h"
#include "reports/run/engine.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/run/progress.h"
#include "reports/run/resumed.h"
#include "reports/run/text.h"
#include "reports/run/version.h"

namespace attest {
namespace {

/// Cases per property, kernel and dtype where neither --cases nor --time is given: 8000, and with more than eight
/// properties a share of as many in all, so that a run without options ends in minutes however many there are.
std::int64_t default_cases(std::size_t properties) {
  constexpr std::int64_t most = 8000;
  return std::clamp<std::int64_t>(8 * most / static_cast<std::int64_t>(std::max<std::size_t>(properties, 1)), 500,
                                  most);
}
/// What wide kernels are given of each property where no --kernel is given: enough to judge it, in some seconds.
constexpr std::int64_t default_cases_of_wide = 120;
/// With --time and no --cases: more than any time allows.
constexpr std::int64_t endless_cases = std::int64_t{1} << 52;

std::vector<CapturedCase> captured_cases(const Options& options) {
  std::vector<CapturedCase> captured;
  for (const std::filesystem::path& file : options.case_files) {
    CapturedCase one{.file = file.string(), .value = load_named_case(file), .property = {}};
    if (const auto& property = one.value.provenance.property) {
      // A case that a run saved is for the property that it was drawn for; one of a later version is for all.
      const auto known = [&](const Property* p) { return p->name == *property; };
      if (std::ranges::any_of(catalogue(), known)) one.property = *property;
    }
    captured.push_back(std::move(one));
  }
  return captured;
}

Plan make_plan(const Options& options, std::vector<const Property*> properties, std::vector<CapturedCase> captured,
               std::vector<std::unique_ptr<Kernel>> kernels) {
  Plan plan;
  plan.properties = std::move(properties);
  plan.kernels = std::move(kernels);
  plan.dtypes = options.dtypes;
  plan.seed = options.seed;
  plan.cases = options.cases.value_or(options.time ? endless_cases : default_cases(plan.properties.size()));
  if (options.kernels.empty()) plan.most_cases_of_wide = default_cases_of_wide;
  plan.shard = options.shard;
  plan.captured = std::move(captured);
  plan.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  plan.fail_fast = options.fail_fast;
  plan.against = options.against;
  if (options.time) plan.deadline = std::chrono::steady_clock::now() + *options.time;
  return plan;
}

/// What the command line names, and what answers to it.
std::vector<Asked> asked_for(const Options& options, const RunKernels& open) {
  std::vector<Asked> all(open.asked.begin(), open.asked.end());
  for (const std::string& glob : options.properties) {
    Asked asked{"--property", glob, {}};
    for (const Property* property : properties_matching(glob)) asked.answers.emplace(property->name);
    all.push_back(std::move(asked));
  }
  return all;
}

/// How much the run asks of a kernel in a dtype; of a run whose time is limited that is not known.
Amount amount_of(const Plan& plan, const Engine& engine) {
  std::set<std::pair<std::size_t, DType>> asked;
  for (const Cell& cell : cells_of(plan)) {
    for (const std::size_t index : cell.kernels) asked.emplace(index, cell.dtype);
  }
  if (asked.empty() || plan.deadline) return {};
  return {.cases = engine.cases_planned() / static_cast<std::int64_t>(asked.size()), .jobs = plan.jobs};
}

void save_worst_cases(const Engine& engine, const Journal& journal) {
  std::map<Subject, Tally> tallies;
  for (const BatchRecord& batch : journal.batches) tallies[batch.subject].merge(batch.tally);
  for (const auto& [subject, tally] : tallies)
    engine.save_worst({.subject = subject, .first_k = 0, .last_k = 0, .shard = {}, .tally = tally});
}

/// Refused before the run where it cannot be compared with.
std::optional<Figures> read_baseline(const Options& options) {
  if (options.baseline.empty()) return std::nullopt;
  Figures baseline = read_figures(options.baseline);
  Figures planned;
  planned.against = options.against;
  try {
    (void)compare(baseline, planned);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--baseline {}: {}", options.baseline.string(), error.what()));
  }
  return baseline;
}

}  // namespace

int check_command(const Options& options, int argc, const char* const* argv) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<const Property*> properties = chosen_properties(options);
  // Read first: a mistake in it is no reason to wait for a run's end.
  const std::vector<KnownFinding> known =
      options.known.empty() ? std::vector<KnownFinding>() : read_known_findings(options.known);
  const std::optional<Figures> baseline = read_baseline(options);
  std::vector<CapturedCase> captured = captured_cases(options);
  RunRecord run{.seed = options.seed,
                .case_files = {},
                .alarm = options.alarm ? alarm_probability : 0.0,
                .against = options.against};
  for (const CapturedCase& one : captured) run.case_files.push_back(one.file);
  const RunFolder folder(options.out, options.resume      ? RunFolder::Mode::resume
                                      : options.overwrite ? RunFolder::Mode::overwrite
                                                          : RunFolder::Mode::fresh);
  const Journal earlier = earlier_journal(folder, options.salvage, run, options.shard);
  handle_signals();
  RunKernels open = open_run_kernels(options, folder, earlier, [&](const RunKernels& opened) {
    if (captured.empty()) require_a_dtype(opened.kernels, options.dtypes);
  });
  for (const KernelRecord& record : open.records) {
    if (!record.not_started.empty() && !options.quiet)
      fmt::print(stderr, "skipped {}: {}\n", record.id, one_line(record.not_started));
  }

  const Plan plan = make_plan(options, std::move(properties), std::move(captured), std::move(open.kernels));
  JournalWriter writer(folder.journal());
  // After the journal's lock: of a run that is still going on that is what is to be said.
  refuse_other_kernels(earlier, open.records, folder.path().string());
  if (plan.captured.empty()) {
    refuse_fewer_cases(earlier, plan.cases, options.cases ? "--cases" : "a run without --cases",
                       folder.path().string());
  }
  MetaRecord begin = begin_record(std::span(argv, static_cast<std::size_t>(argc)));
  begin.facts["jobs"] = std::to_string(plan.jobs);
  begin.facts["shard"] = fmt::format("{}/{}", options.shard.index, options.shard.count);
  begin_journal(writer, folder, earlier, run, begin, open);
  for (const Asked& one : asked_for(options, open)) writer.append(record_of(one));

  const Road road = open.other ? road_against(open.other) : properties_road(run.alarm);
  Progress progress(folder, options.time, options.quiet);
  Engine engine(plan, road, folder, writer, earlier, progress);
  progress.plan(engine.cases_planned(), earlier);
  for (const MetaRecord& note : look_before_the_run(plan.kernels, plan.dtypes, amount_of(plan, engine))) {
    if (!folder.resumes()) writer.append(note);
  }
  const Ending ending = engine.run();
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(open.records, options.against)) writer.append(record);
  const Journal journal = finish_journal(plan, folder, writer, ending, open.other != nullptr, start);
  save_worst_cases(engine, journal);
  const Summary summary = summarise(journal, folder.path());
  Expectations expectations{.inconclusive_held = options.inconclusive_held};
  if (baseline && ending == Ending::complete) {
    expectations.changes = compare(*baseline, figures_of(summary, journal));
    expectations.changes->baseline = options.baseline.string();
  }
  const bool complete = ending == Ending::complete && options.shard.count == 1;
  if (!options.known.empty()) expectations.known = compare_with_known(known, options.known.string(), summary, complete);
  const Conclusion conclusion = conclude(summary, std::move(expectations));
  write_results(folder.path(), journal, summary, conclusion);
  if (!options.quiet) {
    fmt::print(stderr, "{}{}", warning_text(summary), note_text(summary));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("{}{}{}{}\n{}\nrun: {}\nreport: {}\n", table_of(summary), skipped_text(summary), unjudged_text(summary),
               alarm_text(summary), closing_line(summary, conclusion, ending, seconds), folder.path().string(),
               folder.report().string());
  }
  fmt::print("{}", expectations_text(conclusion, options.quiet));
  fmt::print(stderr, "{}", passed_over_text(conclusion, options.quiet));
  write_ci_files(options, summary, journal, folder.path().string(), conclusion);
  return conclusion.exit_status;
}

}  // namespace attest
