#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/support/folder.h"
#include "core/support/names.h"
#include "fuzz/campaign.h"
#include "fuzz/self_test.h"
#include "reports/commands/chosen_kernel.h"
#include "reports/commands/ci_files.h"
#include "reports/commands/commands.h"
#include "reports/commands/fuzz_objectives.h"
#include "reports/commands/run_kernels.h"
#include "reports/formats/results.h"
#include "reports/formats/table.h"
#include "reports/results/saved_journal.h"
#include "reports/run/changed_kernel.h"
#include "reports/run/engine.h"
#include "reports/run/fuzz_progress.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/run/resumed.h"
#include "reports/run/text.h"
#include "reports/run/version.h"
#include "reports/sections/self_test.h"

namespace attest {
namespace {

constexpr std::chrono::milliseconds default_time{60'000};

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

CampaignPlan make_plan(const Options& options, const FuzzObjectives& objectives) {
  CampaignPlan plan;
  plan.properties = objectives.properties;
  plan.favoured = objectives.favoured;
  plan.dtypes = options.dtypes;
  plan.seed = options.seed;
  plan.runs = options.runs;
  plan.shard = options.shard;
  plan.jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  plan.libfuzzer = options.libfuzzer;
  plan.stop = interrupt_requested;
  return plan;
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
    c.metadata[at_load_key] = "yes";
    recorder.found(record, std::move(c));
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
int run_self_test(const Options& options) {
  SelfTestPlan plan;
  plan.most_runs = options.runs.value_or(plan.most_runs);
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
    for (std::unique_ptr<Kernel>& opened : open_kernels(spec, options.kernel_options())) {
      const std::shared_ptr<Kernel> kernel = std::move(opened);
      for (const DType dtype : kernel->manifest().dtypes) {
        const bool wanted = options.dtypes.empty() ? dtype == DType::f32
                                                   : std::ranges::find(options.dtypes, dtype) != options.dtypes.end();
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
  if (!options.out.empty()) {
    std::filesystem::create_directories(options.out);
    const Folder files(options.out);
    files.write("self-test.md", table);
    files.write("self-test.json", self_test_json(result, plan));
  }
  return interrupt_requested() ? 130 : 0;
}

}  // namespace

int fuzz_command(const Options& options, int argc, const char* const* argv) {
  if (options.self_test) return run_self_test(options);
  const auto start = std::chrono::steady_clock::now();
  CampaignPlan plan = make_plan(options, fuzz_objectives(options.objectives));
  const RunFolder folder(options.out, options.resume      ? RunFolder::Mode::resume
                                      : options.overwrite ? RunFolder::Mode::overwrite
                                                          : RunFolder::Mode::fresh);
  const RunRecord run{.seed = options.seed, .case_files = {}, .alarm = 0, .against = options.against, .fuzz = true};
  plan.done = earlier_journal(folder, options.salvage, run, options.shard);
  handle_signals();
  const RunKernels open = open_run_kernels(options, folder, plan.done, [&](RunKernels& opened) {
    require_a_dtype(opened.kernels, options.dtypes);
    plan.kernels = std::move(opened.kernels);
    if (subjects_of(plan).empty())
      throw KernelLoadError("no kernel has an entry and a dtype that the objective is about; nothing can be checked");
    load_state(plan, folder);
  });

  JournalWriter writer(folder.journal());
  // After the journal's lock: of a campaign that is still going on that is what is to be said.
  refuse_other_kernels(plan.done, open.records, folder.path().string());
  if (options.runs) refuse_fewer_cases(plan.done, *options.runs, "--runs", folder.path().string());
  MetaRecord begin = begin_record(std::span(argv, static_cast<std::size_t>(argc)));
  begin.facts["jobs"] = std::to_string(plan.jobs);
  begin_journal(writer, folder, plan.done, run, begin, open);

  CampaignRoad road;
  if (open.other) {
    const Road compared = road_against(open.other);
    road = {.project = compared.project, .check = compared.check, .shrink = compared.shrink};
  }
  std::optional<std::chrono::milliseconds> time = options.time;
  if (!time && !options.runs) time = default_time;
  if (time) plan.deadline = start + *time;
  for (const MetaRecord& note : look_before_the_run(plan.kernels, plan.dtypes, Amount())) {
    if (!folder.resumes()) writer.append(note);
  }
  CampaignEnding ending{};
  {
    FuzzRecorder recorder(folder, writer, {.time = time, .quiet = options.quiet, .against = options.against});
    if (!folder.resumes()) record_load_findings(plan, writer, recorder);
    Campaign campaign(plan, road, recorder);
    ending = campaign.run();
  }
  for (const MetaRecord& note : notes_on(plan.kernels)) writer.append(note);
  for (const KernelRecord& record : changed_meanwhile(open.records, options.against)) writer.append(record);
  writer.append(end_record(start, ending == CampaignEnding::stopped));
  writer.sync();
  const Journal journal = read_results(folder.path());
  const Summary summary = summarise(journal, folder.path());
  const Conclusion conclusion = conclude(summary, {.inconclusive_held = options.inconclusive_held});
  write_results(folder.path(), journal, summary, conclusion);
  if (!options.quiet) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print(stderr, "{}", note_text(summary));
    fmt::print("{}{}\n{}run: {}\nreport: {}\n", table_of(summary),
               closing_line(summary, conclusion, ending_of(ending), seconds), worst_text(summary, folder),
               folder.path().string(), folder.report().string());
  }
  write_ci_files(options, summary, journal, folder.path().string(), conclusion);
  return conclusion.exit_status;
}

}  // namespace attest
