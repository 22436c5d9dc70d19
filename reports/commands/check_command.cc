#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <span>

#include "core/bound/error_alarm.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_kernel.h"
#include "reports/commands/options/chosen_properties.h"
#include "reports/commands/run_end.h"
#include "reports/commands/run_kernels.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/answer.h"
#include "reports/formats/results.h"
#include "reports/formats/table.h"
#include "reports/run/embedded_files.h"
#include "reports/run/engine.h"
#include "reports/run/interrupt.h"
#include "reports/run/preflight.h"
#include "reports/run/progress.h"
#include "reports/run/resumed.h"
#include "reports/run/shape_options.h"
#include "reports/run/waiting.h"
#include "reports/run_folder/changed_kernel.h"
#include "reports/run_folder/started_in.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

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

/// Of --inconclusive.
bool counts_as_held(std::string_view option, const std::string& text) {
  if (text != "held")
    throw UsageError(fmt::format("{} is {}; the only other reading is held", option, in_quotes(text)));
  return true;
}

struct CheckOptions : RunOptions {
  Plan plan;
  std::vector<std::string> properties;  ///< globs; empty: all
  std::optional<std::int64_t> cases;    ///< per property, kernel and dtype
  std::optional<std::chrono::milliseconds> time;
  bool inconclusive_held = false;
  std::vector<std::filesystem::path> case_files;
  std::filesystem::path known;     ///< file of the violations that are expected; empty: none are
  std::filesystem::path baseline;  ///< the run to compare with; empty: none
  bool alarm = false;
  bool verbose = false;
  std::optional<std::int64_t> rows;  ///< of captured cases
  std::filesystem::path table;       ///< a row of each case goes there; empty: nowhere
  ShapeOptions shapes;

  void declare(OptionList& list) {
    list.option(
        "--kernel", kernels, kernel_name(),
        "what to check: builtin:NAME, core:SCALAR, pytorch:NAME or ort:NAME (globs allowed), core:mpfr@300 "
        "(decimal digits; @1000b: bits), exec:COMMAND, or a path to a shared library; repeatable (default: builtin:*, "
        "core:double, core:float, core:cpp_bin_float_50, core:mpfr and pytorch:*)");
    declare_properties(list, properties);
    declare_dtypes(list, plan.dtypes);
    list.option("--cases", cases, whole_number<std::int64_t>(1),
                "cases per property, kernel and dtype (default: the baseline's; else 8000, fewer where there are more "
                "than eight properties; with --time: until it ends)");
    declare_seed(list, plan.seed);
    declare_jobs(list, plan.jobs);
    place.declare(list);
    list.option("--time", time, duration(), "stop after this long: 500ms, 90s, 10m or 2h; a number alone is seconds");
    list.flag("--fail-fast", plan.fail_fast, "stop at the first violation");
    process.declare(list);
    list.option("--inconclusive", inconclusive_held,
                Value<bool>{"held", counts_as_held, [] { return Completions{.words = {"held"}}; }},
                "count what the oracle could not decide as held: exit 0 instead of 4");
    list.several("--case", case_files, any_text("FILE", files),
                 "judge these captured cases (.safetensors) instead of generated ones");
    declare_rows(list, rows);
    shapes.declare(list);
    declare_known(list, known);
    list.option("--baseline", baseline, baseline_name(),
                "compare with an earlier run, its tolerances.json or its folder, and fail, exit 1, where something "
                "became worse: a property that held, the worst error or all errors beyond their noise, cases that are "
                "not covered any more");
    declare_against(list, against);
    declare_alarm(list, alarm);
    declare_quiet(list, quiet);
    list.flag("--verbose", verbose,
              "print every finding as it is found, and all that attest findings prints; --quiet goes before it");
    declare_ci_files(list);
    list.option("--table", table, file_name(),
                "write a row for each case there, as CSV: extents, what was drawn, verdict, error, allowed, condition");
  }
  void refuse() const {
    place.refuse();
    refuse_if(!case_files.empty() && (cases || time),
              fmt::format("--case judges the files given; {} is for generated cases", cases ? "--cases" : "--time"));
    refuse_if(!known.empty() && plan.fail_fast,
              "--known and --fail-fast exclude each other: the first violation may be one that is expected; give one");
    refuse_if(!baseline.empty() && plan.fail_fast,
              "--baseline and --fail-fast exclude each other: a run that stops early covers less than any baseline; "
              "give one");
    refuse_if(!baseline.empty() && place.shard.count > 1,
              "--baseline and --shard exclude each other: a part covers less than the whole; attest merge the parts, "
              "then attest compare");
    refuse_alarm_against(alarm, against);
    refuse_if(rows && case_files.empty(),
              "--rows is for captured cases (--case); drawn ones are made so that all of their rows are judged");
    refuse_if(table.extension() == ".parquet",
              "--table writes CSV; name a FILE.csv, which pandas, DuckDB and others turn into Parquet");
    shapes.refuse();
    refuse_if(!case_files.empty() && shapes.any(),
              "--case judges the files given; options of shapes are for generated cases");
  }
};

std::vector<CapturedCase> captured_cases(std::span<const std::filesystem::path> files) {
  std::vector<CapturedCase> captured;
  for (const std::filesystem::path& file : files) {
    CapturedCase one{.file = file.string(), .value = load_named_case(file).value, .property = {}};
    if (const auto& property = one.value.provenance.property) {
      // A case that a run saved is for the property that it was drawn for; one of a later version is for all.
      const auto known = [&](const Property* p) { return p->name == *property; };
      if (std::ranges::any_of(catalogue(), known)) one.property = *property;
    }
    captured.push_back(std::move(one));
  }
  return captured;
}

/// What the options say of the plan, and the rest of it. `cases_of_baseline`: as CasesOfBaseline, 0 without one.
Plan whole_plan(CheckOptions& options, std::vector<const Property*> properties, std::vector<CapturedCase> captured,
                std::vector<std::unique_ptr<Kernel>> kernels, std::int64_t cases_of_baseline) {
  Plan plan = std::move(options.plan);
  plan.properties = std::move(properties);
  plan.kernels = std::move(kernels);
  const std::int64_t unasked = cases_of_baseline > 0 ? cases_of_baseline : default_cases(plan.properties.size());
  plan.cases = options.cases.value_or(options.time ? endless_cases : unasked);
  if (options.kernels.empty()) plan.most_cases_of_wide = default_cases_of_wide;
  plan.shard = options.place.shard;
  plan.captured = std::move(captured);
  plan.against = options.against;
  if (options.time) plan.deadline = std::chrono::steady_clock::now() + *options.time;
  return plan;
}

/// What the command line names, and what answers to it.
std::vector<Asked> asked_for(const CheckOptions& options, const RunKernels& open) {
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

/// As many as the baseline has of the chosen property of which it has most: however many properties there are by now, a
/// run that does as many has no fewer of any.
struct CasesOfBaseline {
  std::int64_t most = 0;  ///< 0: it has none of these properties
  std::string property{};
};

CasesOfBaseline cases_of(const Figures& baseline, const std::vector<const Property*>& properties) {
  CasesOfBaseline all;
  for (const SubjectFigures& one : baseline.subjects) {
    const auto is_it = [&](const Property* property) { return property->name == one.subject.property; };
    if (one.cases > all.most && std::ranges::any_of(properties, is_it)) all = {one.cases, one.subject.property};
  }
  return all;
}

struct Baseline {
  std::optional<Figures> figures;
  CasesOfBaseline cases{};
};

/// Refused before the run where it cannot be compared with.
Baseline read_baseline(const CheckOptions& options, const std::vector<const Property*>& properties) {
  if (options.baseline.empty()) return {};
  Figures baseline = read_figures(options.baseline);
  Figures planned;
  planned.against = options.against;
  try {
    (void)compare(baseline, planned);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--baseline {}: {}", options.baseline.string(), error.what()));
  }
  if (!options.case_files.empty()) return {std::move(baseline)};
  CasesOfBaseline cases = cases_of(baseline, properties);
  // With fewer less is covered, and the worst of more is worse: neither is the kernel's doing.
  if (options.cases && cases.most > 0 && *options.cases != cases.most) {
    throw UsageError(fmt::format(
        "--cases is {}; the baseline {} has {} of {}: give --cases {}, or make the baseline anew with {}",
        *options.cases, in_quotes(options.baseline.string()), cases.most, cases.property, cases.most, *options.cases));
  }
  return {std::move(baseline), std::move(cases)};
}

/// Those of --known; with `of_ours` those of the kernels that are checked when none is named.
std::vector<KnownFinding> known_findings(const CheckOptions& options, bool of_ours) {
  if (of_ours)
    return parse_known_findings(std::string(embedded_file("findings/known.toml")), "Attest's known findings");
  return options.known.empty() ? std::vector<KnownFinding>() : read_known_findings(options.known);
}

/// What is known is violated on some machines and by some seeds alone, so that it is no news where it does not show.
/// Nothing where none of it did.
std::optional<KnownComparison> compare_with_ours(const std::vector<KnownFinding>& known, const Summary& summary) {
  KnownComparison compared = compare_with_known(known, "reports/findings.md", summary, /*complete=*/false);
  if (compared.expected.empty()) return std::nullopt;
  compared.remarks.clear();
  return compared;
}

/// Bytes of an element of the widest dtype that is asked of a kernel.
std::int64_t widest_element(std::span<const std::unique_ptr<Kernel>> kernels, const std::vector<DType>& dtypes) {
  std::size_t widest = 1;
  for (const std::unique_ptr<Kernel>& kernel : kernels)
    for (const DType dtype : kernel->manifest().dtypes)
      if (dtypes.empty() || std::ranges::find(dtypes, dtype) != dtypes.end()) widest = std::max(widest, size_of(dtype));
  return static_cast<std::int64_t>(widest);
}

int check_kernels(CheckOptions& options, Arguments line) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<const Property*> properties = chosen_properties(options.properties);
  // Read first: a mistake in it is no reason to wait for a run's end.
  const bool of_ours = options.kernels.empty() && options.known.empty();
  const std::vector<KnownFinding> known = known_findings(options, of_ours);
  const Baseline baseline = read_baseline(options, properties);
  std::vector<CapturedCase> captured = captured_cases(options.case_files);
  std::vector<std::string> notes;
  const Shapes shapes = options.shapes.read(notes);
  RunRecord run{.seed = options.plan.seed,
                .case_files = {},
                .alarm = options.alarm ? alarm_probability : 0.0,
                .against = options.against,
                .shapes = captured.empty() ? to_string(shapes) : ""};
  for (const CapturedCase& one : captured) run.case_files.push_back(one.file);
  const RunFolder folder = options.place.open();
  const Journal earlier = earlier_journal(folder, options.place.salvage, run, options.place.shard);
  if (!options.quiet)
    for (const std::string& note : notes) fmt::print(stderr, "{}\n", note);
  handle_signals();
  RunKernels open = open_run_kernels(options, folder, earlier, [&](const RunKernels& opened) {
    if (!captured.empty()) return;
    require_a_dtype(opened.kernels, options.plan.dtypes);
    refuse_beyond_memory(shapes.given, widest_element(opened.kernels, options.plan.dtypes), options.plan.jobs,
                         memory_here());
  });
  for (const KernelRecord& record : open.records) {
    if (!record.not_started.empty() && !options.quiet)
      fmt::print(stderr, "skipped {}: {}\n", record.id, one_line(record.not_started));
  }

  Plan plan =
      whole_plan(options, std::move(properties), std::move(captured), std::move(open.kernels), baseline.cases.most);
  JournalWriter writer(folder.journal());
  // After the journal's lock: of a run that is still going on that is what is to be said.
  refuse_other_kernels(earlier, open.records, folder.path().string());
  if (plan.captured.empty()) {
    refuse_fewer_cases(earlier, plan.cases, options.cases ? "--cases" : "a run without --cases",
                       folder.path().string());
  }
  MetaRecord begin = begin_record(line);
  begin.facts["started_in"] = started_in(folder.path());
  if (!options.source.empty()) begin.facts[source_fact] = options.source;
  begin.facts["jobs"] = std::to_string(plan.jobs);
  begin.facts["shard"] = fmt::format("{}/{}", plan.shard.index, plan.shard.count);
  begin_journal(writer, folder, earlier, run, begin, open);
  for (const Asked& one : asked_for(options, open)) writer.append(record_of(one));

  const Judging judging{.alarm = run.alarm,
                        .rows = plan.captured.empty() ? Judging::all_rows : options.rows.value_or(Judging::by_size)};
  const Road road = with_shapes(open.other ? road_against(open.other) : road_judging(judging), shapes);
  Progress progress(folder, options.time,
                    options.quiet     ? Progress::Says::findings
                    : options.verbose ? Progress::Says::all
                                      : Progress::Says::progress);
  std::optional<CaseTable> table;
  if (!options.table.empty()) table.emplace(options.table, folder.resumes());
  plan.table = table ? &*table : nullptr;
  Engine engine(plan, road, folder, writer, earlier, progress);
  progress.plan(engine.cases_planned(), earlier);
  {
    const Waiting waiting(options.quiet);
    for (const MetaRecord& note : look_before_the_run(plan.kernels, plan.dtypes, amount_of(plan, engine))) {
      if (!folder.resumes()) writer.append(note);
    }
  }
  const Ending ending = engine.run();
  progress.finish();
  for (const KernelRecord& record : changed_meanwhile(open.records, options.against)) writer.append(record);
  const Journal journal = finish_journal(plan, road, folder, writer, ending, open.other != nullptr, start);
  save_worst_cases(engine, journal);
  const Summary summary = summarise(journal, folder.path());
  Expectations expectations{.inconclusive_held = options.inconclusive_held};
  if (baseline.figures && ending == Ending::complete) {
    expectations.changes = compare(*baseline.figures, figures_of(summary, journal));
    expectations.changes->baseline = options.baseline.string();
  }
  const bool complete = ending == Ending::complete && plan.shard.count == 1;
  if (!options.known.empty()) expectations.known = compare_with_known(known, options.known.string(), summary, complete);
  if (of_ours) expectations.known = compare_with_ours(known, summary);
  const Conclusion conclusion = conclude(summary, std::move(expectations));
  write_results(folder.path(), journal, summary, conclusion);
  if (conclusion.exit_status == 3) fmt::print("{}: no case was judged\n\n", nothing_tested);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.quiet && !options.verbose) {
    fmt::print("{}", answer_of(summary, journal, conclusion, ending, seconds,
                               {.folder = folder.path().string(), .width = terminal_columns(), .of_ours = of_ours}));
  }
  if (!options.quiet && options.verbose) {
    fmt::print(stderr, "{}{}", warning_text(summary), note_text(summary));
    fmt::print("{}{}{}{}\n{}\nrun: {}\nreport: {}\n", table_of(summary), skipped_text(summary), unjudged_text(summary),
               alarm_text(summary), closing_line(conclusion, ending, seconds), folder.path().string(),
               folder.report().string());
  }
  // Findings were printed as they came; of what could not be decided nothing was.
  if (options.quiet && conclusion.exit_status == 4)
    fmt::print("{}", wrapped(fmt::format("{}\nreport: {}\n", closing_line(conclusion, ending, seconds),
                                         folder.report().string()),
                             terminal_columns()));
  fmt::print("{}", wrapped(expectations_text(conclusion, options.quiet), terminal_columns()));
  fmt::print(stderr, "{}", wrapped(passed_over_text(conclusion, options.quiet), terminal_columns()));
  options.ci_files.write(summary, journal, folder.path().string(), conclusion);
  return conclusion.exit_status;
}

}  // namespace

Command check_command() {
  return {with_options<CheckOptions>(check_kernels), "check", "attest check [OPTIONS]",
          "Checks kernels against every property and writes a run folder with a journal, cases, a summary and a "
          "report. The report counts what was drawn; a warning names each property that was judged on too few cases of "
          "the kind that it is about.",
          "attest check --kernel 'exec:python3 my_adapter.py' --dtype f32"};
}

}  // namespace attest
