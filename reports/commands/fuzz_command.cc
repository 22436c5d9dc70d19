#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/support/folder.h"
#include "core/support/names.h"
#include "fuzz/campaign.h"
#include "fuzz/libfuzzer.h"
#include "fuzz/self_test.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_kernel.h"
#include "reports/commands/options/fuzz_objectives.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/answer.h"
#include "reports/formats/results.h"
#include "reports/formats/table.h"
#include "reports/results/saved_journal.h"
#include "reports/run/engine.h"
#include "reports/run/fuzz_progress.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/run/resumed.h"
#include "reports/run/waiting.h"
#include "reports/run_folder/changed_kernel.h"
#include "reports/run_folder/started_in.h"
#include "reports/run_folder/version.h"
#include "reports/sections/self_test.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

constexpr std::chrono::milliseconds default_time{60'000};

/// Of --engine: whether it is libFuzzer.
bool is_libfuzzer(std::string_view option, const std::string& text) {
  if (place_among(engine_names, option, text) == 0) return false;
  if (!has_libfuzzer()) {
    throw UsageError(
        fmt::format("{} libfuzzer: this build has no libFuzzer; install libclang-rt-19-dev and build again", option));
  }
  return true;
}

struct FuzzOptions : RunOptions {
  CampaignPlan plan;
  std::vector<std::string> objectives;  ///< as typed; empty: error
  bool self_test = false;               ///< time to detection on the planted faults
  std::optional<std::chrono::milliseconds> time;

  void declare(OptionList& list) {
    list.option("--kernel", kernels, kernel_name(), "what to search, as attest check takes it; repeatable");
    list.option(
        "--objective", objectives, any_text("WHAT", [] { return Completions{.words = objective_names()}; }),
        "error (farthest from the exact result, as a share of the bound), gradient (the same of a backward pass), nonfinite, row-sum, law:PROPERTY "
        "(globs allowed), or all; repeatable (default: error)");
    declare_dtypes(list, plan.dtypes);
    list.flag("--self-test", self_test,
              "how many runs until planted faults are found (--kernel 'fault:GLOB'), and how bad the worst case is "
              "that is found of a right kernel, guided by the archive and unguided, on five seeds of at most --runs "
              "each (default: 20000; every fault, and builtin:flash in f32); prints tables");
    const auto engines = [] { return Completions{.words = {engine_names.begin(), engine_names.end()}}; };
    list.option(
        "--engine", plan.libfuzzer, Value<bool>{"ENGINE", is_libfuzzer, engines},
        "search: the archive alone; libfuzzer: the first thread's inputs are libFuzzer's too, which sees the coverage "
        "of kernels that were instrumented by -fsanitize=fuzzer-no-link, with --in-process (default: search)");
    list.option("--runs", plan.runs, whole_number<std::int64_t>(1),
                "runs per property, kernel and dtype (default: until --time ends)");
    list.option("--seed", plan.seed, whole_number<std::uint64_t>(0),
                "seed of the search; with --runs and one job all follows from it (default: 1)");
    declare_jobs(list, plan.jobs);
    place.declare(list);
    list.option("--time", time, duration(),
                "stop after this long: 500ms, 90s, 10m or 2h; a number alone is seconds (default: 60s where no --runs "
                "are given)");
    process.declare(list);
    declare_against(list, against);
    declare_quiet(list, quiet);
    declare_ci_files(list);
  }
  void refuse() const {
    place.refuse();
    refuse_if(self_test && !ci_files.first_option().empty(),
              fmt::format("--self-test measures the search and judges no kernel; {} is for campaigns",
                          ci_files.first_option()));
    refuse_if(kernels.empty() && !self_test, "attest fuzz needs --kernel KERNEL, the kernel to search");
  }
};

/// What the folder keeps beside the journal.
void load_state(CampaignPlan& plan, const RunFolder& folder) {
  for (const FindingRecord& record : plan.done.findings) {
    EarlierFinding known{record, std::nullopt};
    if (folder.files().holds(record.case_file))
      known.saved = decode_case(folder.files().read(record.case_file), (folder.path() / record.case_file).native());
    plan.known.push_back(std::move(known));
  }
  for (const Subject& subject : subjects_of(plan)) {
    const std::string file = archive_file_name(subject);
    if (!folder.files().holds(file)) continue;
    plan.archives.emplace(subject,
                          parse_archive(folder.files().read(file), (folder.path() / file).string(),
                                        *properties_matching(subject.property).at(0), *named<DType>(subject.dtype)));
  }
}

/// What a kernel did wrong as it was loaded is the first run of its first subject, and the search begins behind it.
void record_load_findings(CampaignPlan& plan, JournalWriter& writer, FuzzRecorder& recorder) {
  const std::vector<Subject> subjects = subjects_of(plan);
  for (const std::unique_ptr<Kernel>& kernel : plan.kernels) {
    const std::string finding = kernel->load_finding();
    const auto subject = std::ranges::find(subjects, kernel->id(), &Subject::kernel);
    if (finding.empty() || subject == subjects.end()) continue;
    const Property& property = *properties_matching(subject->property).at(0);
    Case c = project(generate(property, *named<DType>(subject->dtype), plan.seed, 0), kernel->manifest());
    FindingRecord record{*subject, plan.shard.index, "", check_case(property, *kernel, c)};
    add_load_finding(record.verdict, finding);
    BatchRecord batch{*subject, 0, plan.shard.index + 1, plan.shard, {}};
    batch.tally.add(plan.shard.index, record.verdict);
    c.provenance.at_load = "yes";
    recorder.found(record, {std::move(c)});
    writer.append(batch);
    plan.done.batches.push_back(batch);
    plan.known.push_back({record, std::nullopt});
  }
}

Ending ending_of(CampaignEnding ending) {
  switch (ending) {
    case CampaignEnding::out_of_time:
      return Ending::out_of_time;
    case CampaignEnding::stopped:
      return Ending::interrupted;
    case CampaignEnding::complete:
      break;
  }
  return Ending::complete;
}

/// The worst known case of every kernel and dtype, and the line that shows it again.
std::string worst_text(const Summary& summary, const RunFolder& folder) {
  std::string text;
  for (const KernelSummary& kernel : summary.kernels) {
    const PropertySummary* const worst = kernel.worst();
    if (worst == nullptr || worst->worst_case.empty()) continue;
    text += fmt::format("worst of {} in {}: utilisation {} ({}): {} replay {}\n", one_line(kernel.name),
                        one_line(kernel.dtype), short_number(worst->tally.worst_utilisation), one_line(worst->name),
                        command_name(), shell_quoted((folder.path() / worst->worst_case).string()));
  }
  return text;
}

/// The table goes to standard output, and into --out, where one is given, as self-test.md, and
/// as self-test.json for the report of the run there.
int run_self_test(const FuzzOptions& options) {
  SelfTestPlan plan;
  const std::vector<DType>& dtypes = options.plan.dtypes;
  plan.most_runs = options.plan.runs.value_or(plan.most_runs);
  for (const PlantedFault& fault : planted_faults()) {
    const std::string id = "fault:" + std::string(fault.name);
    // "builtin:*" must not mean faults.
    const auto wanted = [&](const std::string& glob) { return glob.starts_with("fault:") && glob_match(glob, id); };
    if (options.kernels.empty() || std::ranges::any_of(options.kernels, wanted)) plan.faults.push_back(&fault);
  }
  std::vector<std::string> right = options.kernels;
  if (right.empty()) right = {"builtin:flash"};
  std::erase_if(right, [](const std::string& kernel) { return kernel.starts_with("fault:"); });
  for (const std::string& spec : right) {
    for (std::unique_ptr<Kernel>& opened : open_kernels(spec, options.process.options())) {
      const std::shared_ptr<Kernel> kernel = std::move(opened);
      for (const DType dtype : kernel->manifest().dtypes) {
        const bool wanted = dtypes.empty() ? dtype == DType::f32 : std::ranges::find(dtypes, dtype) != dtypes.end();
        if (wanted && kernel->manifest().attention) plan.kernels.push_back({kernel, dtype});
      }
    }
  }
  if (plan.faults.empty() && plan.kernels.empty()) {
    std::vector<std::string> known;
    for (const PlantedFault& fault : planted_faults()) known.push_back("fault:" + std::string(fault.name));
    throw UsageError(fmt::format("--kernel is {}, which is no planted fault and no kernel of that dtype{}",
                                 in_quotes(options.kernels.front()),
                                 suggestion(options.kernels.front(), known, /*list_up_to=*/0)));
  }
  handle_signals();
  const SelfTest result = self_test(plan, interrupt_requested, [&](const std::string& line) {
    if (!options.quiet) fmt::print(stderr, "{}\n", line);
  });
  const std::string table = self_test_table(result, plan);
  std::fputs(table.c_str(), stdout);
  if (!options.place.out.empty()) {
    std::filesystem::create_directories(options.place.out);
    const Folder files(options.place.out);
    files.write("self-test.md", table);
    files.write("self-test.json", self_test_json(result, plan));
  }
  return interrupt_requested() ? 130 : 0;
}

int fuzz_kernels(FuzzOptions& options, Arguments line) {
  if (options.self_test) return run_self_test(options);
  const auto start = std::chrono::steady_clock::now();
  CampaignPlan& plan = options.plan;
  FuzzObjectives objectives = fuzz_objectives(options.objectives);
  plan.properties = std::move(objectives.properties);
  plan.favoured = objectives.favoured;
  plan.shard = options.place.shard;
  plan.stop = interrupt_requested;
  const RunFolder folder = options.place.open();
  const RunRecord run{.seed = plan.seed, .case_files = {}, .alarm = 0, .against = options.against, .fuzz = true};
  plan.done = earlier_journal(folder, options.place.salvage, run, plan.shard);
  handle_signals();
  const RunKernels open = open_run_kernels(options, folder, plan.done, [&](RunKernels& opened) {
    require_a_dtype(opened.kernels, plan.dtypes);
    plan.kernels = std::move(opened.kernels);
    if (subjects_of(plan).empty())
      throw KernelLoadError("no kernel has an entry and a dtype that the objective is about; nothing can be checked");
    load_state(plan, folder);
  });

  JournalWriter writer(folder.journal());
  // After the journal's lock: of a campaign that is still going on that is what is to be said.
  refuse_other_kernels(plan.done, open.records, folder.path().string());
  if (plan.runs) refuse_fewer_cases(plan.done, *plan.runs, "--runs", folder.path().string());
  MetaRecord begin = begin_record(line);
  begin.facts["started_in"] = started_in(folder.path());
  if (!options.source.empty()) begin.facts[source_fact] = options.source;
  begin.facts["jobs"] = std::to_string(plan.jobs);
  begin_journal(writer, folder, plan.done, run, begin, open);

  const Road road = open.other ? road_against(open.other) : Road();
  std::optional<std::chrono::milliseconds> time = options.time;
  if (!time && !plan.runs) time = default_time;
  if (time) plan.deadline = start + *time;
  {
    const Waiting waiting(options.quiet);
    for (const MetaRecord& note : look_before_the_run(plan.kernels, plan.dtypes, Amount())) {
      if (!folder.resumes()) writer.append(note);
    }
  }
  CampaignEnding ending{};
  {
    FuzzRecorder::Look look{.time = time, .quiet = options.quiet, .against = options.against};
    for (const std::unique_ptr<Kernel>& kernel : plan.kernels) look.called.emplace(kernel->id(), called(*kernel));
    FuzzRecorder recorder(folder, writer, std::move(look));
    if (!folder.resumes()) record_load_findings(plan, writer, recorder);
    Campaign campaign(plan, road, recorder);
    ending = campaign.run();
  }
  for (const MetaRecord& note : notes_on(plan.kernels)) writer.append(note);
  for (const KernelRecord& record : changed_meanwhile(open.records, options.against)) writer.append(record);
  // Of a comparison the other kernel's arithmetic would have to be explained too.
  if (ending != CampaignEnding::stopped && !open.other) {
    explain_findings(read_results(folder.path()), folder, plan.kernels, nullptr,
                     [&](const MetaRecord& record) { writer.append(record); });
  }
  writer.append(end_record(start, ending == CampaignEnding::stopped));
  writer.sync();
  const Journal journal = read_results(folder.path());
  const Summary summary = summarise(journal, folder.path());
  const Conclusion conclusion = conclude(summary);
  write_results(folder.path(), journal, summary, conclusion);
  if (conclusion.exit_status == 3) fmt::print("{}: no case was judged\n\n", nothing_tested);
  if (!options.quiet) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print(stderr, "{}", note_text(summary));
    const std::string causes =
        causes_text(summary, journal, conclusion, {.folder = folder.path().string(), .width = terminal_columns()});
    fmt::print("{}{}\n{}{}run: {}\nreport: {}\n", table_of(summary),
               closing_line(conclusion, ending_of(ending), seconds), causes.empty() ? "" : causes + "\n",
               worst_text(summary, folder), folder.path().string(), folder.report().string());
  }
  options.ci_files.write(summary, journal, folder.path().string(), conclusion);
  return conclusion.exit_status;
}

}  // namespace

Command fuzz_command() {
  return {with_options<FuzzOptions>(fuzz_kernels), "fuzz", "attest fuzz --kernel KERNEL [OPTIONS]",
          "Searches for the input on which a kernel breaks or is at its worst: each next case is bred from the worst "
          "ones so far. Findings are shrunk, confirmed by the certified oracle and saved for attest replay; the worst "
          "case is saved in any event. Exit 1 when there is a finding.",
          "attest fuzz --kernel ./libmine.so --dtype f32 --time 60s --out campaign"};
}

}  // namespace attest
