#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "against.h"
#include "attest/error_alarm.h"
#include "attest/files.h"
#include "attest/names.h"
#include "case_files.h"
#include "changed_kernel.h"
#include "chosen_kernel.h"
#include "chosen_properties.h"
#include "ci_files.h"
#include "commands.h"
#include "compare.h"
#include "engine.h"
#include "explanations.h"
#include "interrupt.h"
#include "journal_rules.h"
#include "known.h"
#include "known_status.h"
#include "preflight.h"
#include "progress.h"
#include "results.h"
#include "resumed.h"
#include "run_folder.h"
#include "summary.h"
#include "table.h"
#include "text.h"
#include "version.h"

namespace attest {
namespace {

/// Cases per property, kernel and dtype where neither --cases nor --time is given: 8000, and with more than eight
/// properties a share of as many in all, so that a run without options ends in minutes however many there are.
std::int64_t default_cases(std::size_t properties) {
  constexpr std::int64_t most = 8000;
  return std::clamp<std::int64_t>(8 * most / static_cast<std::int64_t>(std::max<std::size_t>(properties, 1)), 500,
                                  most);
}
/// Asked where no --kernel is given, and PyTorch's where it can be imported: the generic core beside the kernels that
/// are fast.
constexpr const char* default_kernels[] = {"builtin:*", "core:double", "core:float", "core:cpp_bin_float_50",
                                           "core:mpfr"};
/// What the wide ones of these are given of each property: enough to judge it, in some seconds.
constexpr std::int64_t default_cases_of_wide = 120;
/// With --time and no --cases: more than any time allows.
constexpr std::int64_t endless_cases = std::int64_t{1} << 52;

std::vector<CapturedCase> captured_cases(const Options& options) {
  std::vector<CapturedCase> captured;
  for (const std::filesystem::path& file : options.case_files) {
    CapturedCase one{.file = file.string(), .value = load_named_case(file), .property = {}};
    if (const auto property = one.value.metadata.find("property"); property != one.value.metadata.end()) {
      // A case that a run saved is for the property that it was drawn for; one of a later version is for all.
      const auto known = [&](const Property* p) { return p->name == property->second; };
      if (std::ranges::any_of(catalogue(), known)) one.property = property->second;
    }
    captured.push_back(std::move(one));
  }
  return captured;
}

struct OpenKernels {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<KernelRecord> records;
  std::map<std::string, std::set<std::string>> asked;  ///< the ids of what each --kernel named
};

void add_kernels(OpenKernels& open, std::vector<std::unique_ptr<Kernel>> kernels) {
  for (std::unique_ptr<Kernel>& kernel : kernels) {
    const auto same = [&](const std::unique_ptr<Kernel>& other) { return other->id() == kernel->id(); };
    if (std::ranges::any_of(open.kernels, same)) continue;
    open.records.push_back({kernel->id(), nlohmann::ordered_json::parse(to_json(kernel->manifest())).dump(), ""});
    open.kernels.push_back(std::move(kernel));
  }
}

KernelOptions kernel_options_of(const Options& options, const RunFolder& folder) {
  KernelOptions kernel_options = options.kernel_options();
  kernel_options.log_folder = folder.logs();
  return kernel_options;
}

OpenKernels open_chosen_kernels(const Options& options, const KernelOptions& kernel_options) {
  OpenKernels open;
  for (const std::string& spec : options.kernels) {
    std::vector<std::unique_ptr<Kernel>> kernels = open_kernels(spec, kernel_options);
    for (const std::unique_ptr<Kernel>& kernel : kernels) open.asked[spec].insert(kernel->id());
    add_kernels(open, std::move(kernels));
  }
  if (!options.kernels.empty()) return open;
  for (const char* const spec : default_kernels) add_kernels(open, open_kernels(spec, kernel_options));
  try {
    add_kernels(open, open_kernels("pytorch:*", kernel_options));
  } catch (const KernelLoadError& error) {
    open.records.push_back({"pytorch:*", "", error.what()});
  }
  return open;
}

/// The journal of the run to resume; empty for a fresh run. Throws UsageError where the two are not the same run.
Journal earlier_journal(const Options& options, const RunFolder& folder, const RunRecord& run) {
  if (!folder.resumes()) return {};
  Journal journal = read_earlier(folder, options.salvage);
  const std::string where = folder.path().string();
  if (journal.run->fuzz) throw UsageError(fmt::format("{} holds a fuzz campaign; resume it with attest fuzz", where));
  if (journal.run->seed != run.seed) {
    throw UsageError(
        fmt::format("{} was run with --seed {}; resume it with the same, not {}", where, journal.run->seed, run.seed));
  }
  if (journal.run->case_files != run.case_files) {
    throw UsageError(fmt::format("{} was run on other cases; resume it with the same --case files", where));
  }
  if (journal.run->alarm != run.alarm) {
    throw UsageError(fmt::format("{} was run {} --alarm; resume it the same way", where,
                                 journal.run->alarm > 0 ? "with" : "without"));
  }
  if (journal.run->against != run.against) {
    throw UsageError(fmt::format(
        "{} was run {}; resume it the same way", where,
        journal.run->against.empty() ? "without --against" : "--against " + in_quotes(journal.run->against)));
  }
  for (const BatchRecord& batch : journal.batches) {
    if (batch.first_k == batch.last_k || batch.shard == options.shard) continue;
    throw UsageError(fmt::format("{} was run with --shard {}/{}; resume it with the same", where, batch.shard.index,
                                 batch.shard.count));
  }
  return journal;
}

void refuse_changed_kernels(const Journal& earlier, const OpenKernels& open) {
  for (const KernelRecord& kernel : open.records) {
    for (const KernelRecord& before : earlier.kernels) {
      if (before.id != kernel.id || before.manifest.empty() || before.manifest == kernel.manifest) continue;
      throw UsageError(
          fmt::format("kernel {} has another manifest than when the run began; start a new run", kernel.id));
    }
  }
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

MetaRecord begin_record(const Options& options, int jobs, int argc, const char* const* argv) {
  MetaRecord record{"begin", environment_facts()};
  record.facts["time"] = now_text();
  record.facts["jobs"] = std::to_string(jobs);
  record.facts["shard"] = fmt::format("{}/{}", options.shard.index, options.shard.count);
  std::string& arguments = record.facts["arguments"];
  for (int i = 1; i < argc; ++i) arguments += (i > 1 ? " " : "") + shell_quoted(argv[i]);
  return record;
}

/// The last records of a run, as they are written and as whoever reads the journal finds them.
class LastRecords {
 public:
  explicit LastRecords(JournalWriter& writer) : writer_(writer) {}
  template <class Record>
  void append(const Record& record) {
    writer_.append(record);
    lines_ += to_line(record);
  }
  [[nodiscard]] const std::string& lines() const { return lines_; }

 private:
  JournalWriter& writer_;
  std::string lines_;
};

/// Subjects of the plan without a single batch get an empty one, so that the summary shows what was not reached.
void note_unreached(const Plan& plan, const Journal& journal, LastRecords& last) {
  std::set<Subject> reached;
  for (const BatchRecord& batch : journal.batches) reached.insert(batch.subject);
  for (const Cell& cell : cells_of(plan)) {
    for (const std::size_t index : cell.kernels) {
      const Subject subject{std::string(cell.property->name), plan.kernels[index]->id(),
                            std::string(name_of(cell.dtype))};
      if (!reached.contains(subject)) last.append(BatchRecord{subject, 0, 0, {}, {}});
    }
  }
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

/// What came to be known of the kernels beside their cases. It depends on times and jobs, so it is no record of its
/// own.
void write_notes(const Plan& plan, LastRecords& last) {
  for (const std::unique_ptr<Kernel>& kernel : plan.kernels) {
    for (const std::string& note : kernel->notes())
      last.append(MetaRecord{"note", {{"kernel", kernel->id()}, {"text", note}}});
  }
}

/// An interrupt leaves them out, and so does a lack of memory. `journal` is canonical.
void explain_findings(const Plan& plan, const Journal& journal, const RunFolder& folder, LastRecords& last) {
  try {
    for (const KernelExplanation& one : explanations_of(journal, folder, plan.kernels)) last.append(record_of(one));
  } catch (const Abandoned&) {
    return;  // what is explained so far stands
  } catch (const std::bad_alloc&) {
    return;
  }
}

/// Writes the last records and returns what read_results would read now. `compared`: with another kernel, whose own
/// arithmetic would have to be explained too.
Journal finish_journal(const Plan& plan, const RunFolder& folder, JournalWriter& writer, Ending ending, bool compared,
                       std::chrono::steady_clock::time_point start) {
  // A journal has a line for every batch: reading it takes a share of the run's time, so it is read once.
  Journal parts[] = {read_results(folder.path()), {}};
  auto& [journal, end] = parts;
  LastRecords last(writer);
  note_unreached(plan, journal, last);
  write_notes(plan, last);
  if (ending != Ending::interrupted && !compared) explain_findings(plan, journal, folder, last);
  last.append(end_record(start, ending == Ending::interrupted));
  writer.sync();
  const std::string sources[] = {folder.path().string(), folder.path().string()};
  end = parse_journal(stamped(to_line(*journal.run) + last.lines()), sources[1]);
  Journal whole = canonical(parts, sources);
  whole.meta = std::move(journal.meta);
  whole.meta.insert(whole.meta.end(), end.meta.begin(), end.meta.end());
  return whole;
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

/// What became worse is printed even where nothing else is.
void print_comparison(const Options& options, const Comparison& comparison) {
  fmt::print("{}", changes_text(comparison, options.quiet ? std::array<std::size_t, 3>{20, 0, 0}
                                                          : std::array<std::size_t, 3>{20, 20, 20}));
  if (options.quiet) return;
  const ChangesInWords said = in_words(comparison);
  fmt::print("baseline: {} ({})\n{}\n", said.counts, comparison.baseline, said.noise);
}

/// What was asked for by name and answered in no case, a line each: a kernel that was judged by no property, a property
/// that no kernel was judged by. Beside others that held they would pass unseen.
std::vector<std::string> unanswered(const Options& options, const OpenKernels& open, const Summary& summary) {
  std::vector<std::string> lines;
  for (const auto& asked : open.asked) {
    const auto judged = [&](const KernelSummary& kernel) {
      return asked.second.contains(kernel.id) && kernel.judged() > 0;
    };
    if (std::ranges::none_of(summary.kernels, judged))
      lines.push_back(
          fmt::format("--kernel {}: judged in no case, so that the run says nothing of it", in_quotes(asked.first)));
  }
  const std::vector<std::string> none = summary.judged_by_none();
  for (const std::string& glob : options.properties) {
    const auto judged = [&](const Property* p) { return std::ranges::find(none, p->name) == none.end(); };
    if (std::ranges::none_of(properties_matching(glob), judged))
      lines.push_back(
          fmt::format("--property {}: judged on no kernel, so that the run says nothing of it", in_quotes(glob)));
  }
  return lines;
}

/// What of a comparison makes the exit status 1.
std::vector<std::string> problems_of(const std::optional<Comparison>& comparison) {
  std::vector<std::string> problems;
  for (const Difference& one : comparison ? comparison->differences : std::vector<Difference>()) {
    if (one.direction != Direction::worse) continue;
    problems.push_back("WORSE " + line_of(one));
  }
  return problems;
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
  const Journal earlier = earlier_journal(options, folder, run);
  handle_signals();
  OpenKernels open;
  std::shared_ptr<OtherKernel> other;
  std::vector<MetaRecord> notes;
  try {
    // The run's folder may be theirs.
    refuse_homeless_ci_files(options);
    const KernelOptions kernel_options = kernel_options_of(options, folder);
    open = open_chosen_kernels(options, kernel_options);
    if (!options.against.empty())
      other = std::make_shared<OtherKernel>(open_other_kernel(options.against, kernel_options));
    if (interrupt_requested()) throw Abandoned();
    refuse_changed_kernels(earlier, open);
    add_files(open.records, options.against);
    notes = refuse_changed_files(earlier, open.records, options.accept_changed_kernel, folder.path().string());
    if (captured.empty()) require_a_dtype(open.kernels, options.dtypes);
  } catch (const KernelLoadError& error) {
    folder.discard_if_empty();
    // A kernel that was not given the time to start is none that could not.
    if (interrupt_requested()) throw Abandoned();
    throw with_logs(error, folder);
  } catch (...) {
    folder.discard_if_empty();
    if (interrupt_requested()) throw Abandoned();
    throw;
  }
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
  folder.begin(writer, run);
  if (folder.resumes()) look_after_cases(folder, earlier);
  writer.append(begin_record(options, plan.jobs, argc, argv));
  for (const KernelRecord& record : open.records) writer.append(record);
  for (const MetaRecord& note : notes) writer.append(note);

  const Road road = other ? road_against(other) : properties_road(run.alarm);
  Progress progress(folder, options.time, options.quiet);
  Engine engine(plan, road, folder, writer, earlier, progress);
  progress.plan(engine.cases_planned(), earlier);
  for (const MetaRecord& note : look_before_the_run(plan.kernels, plan.dtypes, amount_of(plan, engine))) {
    if (!folder.resumes()) writer.append(note);
  }
  const Ending ending = engine.run();
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(open.records, options.against)) writer.append(record);
  const Journal journal = finish_journal(plan, folder, writer, ending, other != nullptr, start);
  save_worst_cases(engine, journal);
  std::optional<Comparison> comparison;
  if (baseline && ending == Ending::complete) {
    comparison = compare(*baseline, figures_of(summarise(journal, folder.path()), journal));
    comparison->baseline = options.baseline.string();
  }
  const Summary summary = write_results(folder.path(), journal, comparison ? &*comparison : nullptr);
  if (!options.quiet) {
    fmt::print(stderr, "{}{}", warning_text(summary), note_text(summary));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("{}{}{}{}\n{}\nrun: {}\nreport: {}\n", table_of(summary), skipped_text(summary), unjudged_text(summary),
               alarm_text(summary), closing_line(summary, ending, seconds), folder.path().string(),
               folder.report().string());
  }
  if (comparison) print_comparison(options, *comparison);
  const bool complete = ending == Ending::complete && options.shard.count == 1;
  std::optional<KnownComparison> expected;
  if (!options.known.empty()) expected = compare_with_known(known, options.known.string(), summary, complete);
  int status = expected ? status_with_known(options, *expected) : exit_status(summary, options.inconclusive_held);
  // Where nothing at all could be checked, or something was violated, that is what is to be said.
  const std::vector<std::string> passed_over =
      status == 0 ? unanswered(options, open, summary) : std::vector<std::string>();
  for (const std::string& line : passed_over) fmt::print(stderr, "attest: {}\n", one_line(line));
  std::vector<std::string> problems = problems_of(comparison);
  if (!passed_over.empty() && !options.inconclusive_held) {
    status = 4;
    problems.insert(problems.end(), passed_over.begin(), passed_over.end());
  }
  write_ci_files(options, summary, journal, folder.path().string(), expected, problems);
  return comparison && comparison->count(Direction::worse) > 0 ? 1 : status;
}

}  // namespace attest
