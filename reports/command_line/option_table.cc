#include "reports/command_line/option_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/command_line/option_values.h"

namespace attest {
namespace {

using Text = const std::string&;

constexpr unsigned init = on(Command::init), check = on(Command::check), list = on(Command::list),
                   replay = on(Command::replay), merge = on(Command::merge), report = on(Command::report),
                   compare = on(Command::compare), audit = on(Command::audit), probe = on(Command::probe),
                   prove = on(Command::prove), fuzz = on(Command::fuzz), tolerance = on(Command::tolerance);

constexpr OptionRow rows[] = {
    {check, "--kernel", "KERNEL", Takes::one,
     "what to check: builtin:NAME, core:SCALAR, pytorch:NAME or ort:NAME (globs allowed), exec:COMMAND, or a path to a "
     "shared library; repeatable (default: builtin:*, core:double, core:float, core:cpp_bin_float_50, core:mpfr and "
     "pytorch:*)",
     [](Options& o, Text t) { o.kernels.push_back(t); }, true},
    {fuzz, "--kernel", "KERNEL", Takes::one, "what to search, as attest check takes it; repeatable",
     [](Options& o, Text t) { o.kernels.push_back(t); }, true},
    {replay, "--kernel", "KERNEL", Takes::one, "the kernel to run instead of the one the case names",
     [](Options& o, Text t) { o.kernels.push_back(t); }},
    {probe, "--kernel", "KERNEL", Takes::one, "the kernel to ask, as attest check takes it",
     [](Options& o, Text t) { o.kernels.push_back(t); }},
    {tolerance, "--kernel", "KERNEL", Takes::one, "the kernel whose right answers are tried, as attest check takes it",
     [](Options& o, Text t) { o.kernels.push_back(t); }},
    {tolerance, "--atol", "NUMBER", Takes::one, "the absolute tolerance, from 0 to inf",
     [](Options& o, Text t) { o.atol = tolerance_number("--atol", t); }},
    {tolerance, "--rtol", "NUMBER", Takes::one, "the tolerance relative to the exact answer, from 0 to inf",
     [](Options& o, Text t) { o.rtol = tolerance_number("--rtol", t); }},
    {audit, "--kernel", "GLOB", Takes::one,
     "planted faults and controls by name, fault:GLOB or control:GLOB; repeatable (default: all)",
     [](Options& o, Text t) { o.kernels.push_back(t); }, true},
    {check | prove, "--property", "GLOB", Takes::one, "properties to look at, by name; repeatable (default: all)",
     [](Options& o, Text t) { o.properties.push_back(t); }, true},
    {fuzz, "--objective", "WHAT", Takes::one,
     "error (farthest from the exact result, as a share of the bound), nonfinite, row-sum, law:PROPERTY (globs "
     "allowed), or all; repeatable (default: error)",
     [](Options& o, Text t) { o.objectives.push_back(t); }, true},
    {check | fuzz | tolerance, "--dtype", "DTYPE", Takes::one,
     "f64, f32, f16 or bf16, or several with commas; repeatable (default: all)",
     [](Options& o, Text t) { add_dtypes(o, t); }, true},
    {check, "--cases", "N", Takes::one,
     "cases per property, kernel and dtype (default: 8000, fewer where there are more than eight properties; with "
     "--time: until it ends)",
     [](Options& o, Text t) { o.cases = whole_number<std::int64_t>("--cases", t, 1); }},
    {audit, "--cases", "N", Takes::one,
     "cases per fault over all properties and dtypes; a control gets five times as many judged ones (default: 20000)",
     [](Options& o, Text t) { o.cases = whole_number<std::int64_t>("--cases", t, 1); }},
    {tolerance, "--cases", "N", Takes::one,
     "cases of the kernel per dtype, and at most of each planted fault (default: 2000)",
     [](Options& o, Text t) { o.cases = whole_number<std::int64_t>("--cases", t, 1); }},
    {fuzz, "--self-test", "", Takes::nothing,
     "how many runs until planted faults are found (--kernel 'fault:GLOB'), and how bad the worst case is that is "
     "found "
     "of a right kernel, guided by the archive and unguided, on five seeds of at most --runs each (default: 20000; "
     "every "
     "fault, and builtin:flash in f32); prints tables",
     [](Options& o, Text) { o.self_test = true; }},
    {fuzz, "--engine", "ENGINE", Takes::one,
     "search: the archive alone; libfuzzer: the first thread's inputs are libFuzzer's too, which sees the coverage of "
     "kernels that were instrumented by -fsanitize=fuzzer-no-link, with --in-process (default: search)",
     [](Options& o, Text t) { o.libfuzzer = is_libfuzzer(t); }},
    {fuzz, "--runs", "N", Takes::one, "runs per property, kernel and dtype (default: until --time ends)",
     [](Options& o, Text t) { o.runs = whole_number<std::int64_t>("--runs", t, 1); }},
    {fuzz, "--seed", "N", Takes::one, "seed of the search; with --runs and one job all follows from it (default: 1)",
     [](Options& o, Text t) { o.seed = whole_number<std::uint64_t>("--seed", t, 0); }},
    {check | audit | tolerance, "--seed", "N", Takes::one,
     "run seed; case k of a property in a dtype follows from it alone (default: 1)",
     [](Options& o, Text t) { o.seed = whole_number<std::uint64_t>("--seed", t, 0); }},
    {check | audit | fuzz | tolerance, "--jobs", "N", Takes::one,
     "threads, each with its own kernels (default: one per core)",
     [](Options& o, Text t) { o.jobs = std::min(whole_number<int>("--jobs", t, 1), 1024); }},
    {check | audit | fuzz, "-o,--out", "DIR", Takes::one,
     "the run's folder (default: the next free attest-run-NNN, of an audit attest-audit-NNN)",
     [](Options& o, Text t) {
       if (t.empty()) throw UsageError("--out is empty; it must name a folder");
       o.out = t;
     }},
    {check | fuzz, "--resume", "", Takes::nothing, "go on with the run in --out: finished batches are not run again",
     [](Options& o, Text) { o.resume = true; }},
    {check | fuzz, "--accept-changed-kernel", "", Takes::nothing,
     "go on with --resume though a file of a kernel, or attest itself, is not what it was when the run began; the "
     "verdicts are then of both, and the report says so",
     [](Options& o, Text) { o.accept_changed_kernel = true; }},
    {merge | report, "--accept-changed-kernel", "", Takes::nothing,
     "join runs though a file of a kernel is not the same in all of them; the verdicts are then of all its builds, and "
     "the report says so",
     [](Options& o, Text) { o.accept_changed_kernel = true; }},
    {check | fuzz, "--salvage", "", Takes::nothing,
     "with --resume: take damaged lines out of the journal, and say which; what they held is run again",
     [](Options& o, Text) { o.salvage = true; }},
    {merge | report, "--salvage", "", Takes::nothing,
     "read the sound lines of damaged journals, and say which are left out (default: a damaged line is an error)",
     [](Options& o, Text) { o.salvage = true; }},
    {check | audit | prove | fuzz, "--overwrite", "", Takes::nothing, "remove the run in --out first",
     [](Options& o, Text) { o.overwrite = true; }},
    {check | fuzz, "--shard", "I/N", Takes::one,
     "take the cases k = I mod N only, of a campaign the runs; 0 <= I < N; join the parts with merge", set_shard},
    {fuzz, "--time", "TIME", Takes::one, "stop after this long (default: 60s where no --runs are given)",
     [](Options& o, Text t) { o.time = duration("--time", t); }},
    {check, "--time", "TIME", Takes::one, "stop after this long: 500ms, 90s, 10m, 2h",
     [](Options& o, Text t) { o.time = duration("--time", t); }},
    {check, "--fail-fast", "", Takes::nothing, "stop at the first violation",
     [](Options& o, Text) { o.fail_fast = true; }},
    {check | replay | probe | fuzz | tolerance, "--timeout", "TIME", Takes::one,
     "time limit for a process's reply (default: 10s; its first may take 60s)",
     [](Options& o, Text t) { o.timeout = duration("--timeout", t); }},
    {check | replay | probe | fuzz | tolerance, "--memory", "SIZE", Takes::one,
     "memory that a kernel's process may hold beyond what it shares: 512MiB, 4GiB, or none for no limit (default: "
     "4GiB)",
     [](Options& o, Text t) { o.memory = memory_size("--memory", t); }},
    {check | replay | probe | fuzz | tolerance, "--in-process", "", Takes::nothing,
     "load shared libraries into attest itself, for a debugger or for speed. Nothing protects the run then: a kernel "
     "that "
     "crashes, exits, hangs or takes all memory takes attest with it and leaves no finding, what it prints lands among "
     "attest's own output, --timeout and --memory do not hold, and a kernel that is not thread_safe is called by one "
     "job "
     "at a time",
     [](Options& o, Text) { o.in_process = true; }},
    {check, "--inconclusive", "held", Takes::one, "count what the oracle could not decide as held: exit 0 instead of 4",
     set_inconclusive},
    {check, "--case", "FILE", Takes::several, "judge these captured cases (.safetensors) instead of generated ones",
     [](Options& o, Text t) { o.case_files.emplace_back(t); }},
    {check | merge, "--known", "FILE", Takes::one,
     "violations that are expected, a TOML file with a [[finding]] of kernel, dtype, property, reason and date each: "
     "they do not make the exit status 1, but a new one does, and one that is gone. Of a run in shards, attest merge "
     "holds the whole against them",
     [](Options& o, Text t) {
       if (t.empty()) throw UsageError("--known is empty; it must name a file");
       o.known = t;
     }},
    {check, "--baseline", "FILE", Takes::one,
     "compare with an earlier run, its tolerances.json or its folder, and fail, exit 1, where something became worse: "
     "a "
     "property that held, the worst error or all errors beyond their noise, cases that are not covered any more",
     set_baseline},
    {report, "--baseline", "FILE", Takes::one,
     "an earlier run, its tolerances.json or its folder: the page says what changed", set_baseline},
    {check | replay | fuzz, "--against", "KERNEL", Takes::one,
     "compare with this kernel on the same cases instead of with the exact result: violated where the two differ by "
     "more "
     "than both are allowed together",
     [](Options& o, Text t) {
       if (t.empty()) throw UsageError("--against is empty; it must name a kernel as --kernel does");
       o.against = t;
     }},
    {check | replay, "--alarm", "", Takes::nothing,
     "count what lies beyond the probabilistic bound (rounding errors as random numbers), far below the proved one; "
     "never changes a verdict or the exit status, and costs time",
     [](Options& o, Text) { o.alarm = true; }},
    {check | audit | fuzz, "--quiet", "", Takes::nothing,
     "no progress, no warnings and no table; findings and errors are still printed",
     [](Options& o, Text) { o.quiet = true; }},
    {list, "--kernels", "", Takes::nothing, "kernels that have a name",
     [](Options& o, Text) { o.list_kernels = true; }},
    {list, "--properties", "", Takes::nothing, "the catalogue of properties",
     [](Options& o, Text) { o.list_properties = true; }},
    {list, "--dtypes", "", Takes::nothing, "number formats", [](Options& o, Text) { o.list_dtypes = true; }},
    {prove, "--shape", "M,N,dk,dv,h", Takes::one,
     "queries, keys, head dimensions of k and v, heads of a shape to prove at; repeatable",
     [](Options& o, Text t) { o.shapes.push_back(proof_shape("--shape", t)); }, true},
    {prove, "--up-to", "M,N,dk,dv,h", Takes::one,
     "every shape from 2,2,2,1,1 to this one, where no --shape is given (default: 3,3,2,2,2)",
     [](Options& o, Text t) { o.up_to = proof_shape("--up-to", t); }},
    {prove, "--back-end", "NAME", Takes::one,
     "symbolic (formulas), finite-field (formulas at random points, for large shapes), sign (inequalities by signs "
     "alone) or taint (the same operations on the same inputs); repeatable (default: symbolic, sign, taint)",
     [](Options& o, Text t) { o.back_ends.push_back(back_end_from(t)); }, true},
    {prove, "--variants", "N", Takes::one, "cases a shape, which differ in masks, biases and arguments (default: 3)",
     [](Options& o, Text t) { o.variants = whole_number<std::int64_t>("--variants", t, 1); }},
    {prove, "-o,--out", "DIR", Takes::one,
     "keep what was established as a run's journal, for attest report and attest merge",
     [](Options& o, Text t) {
       if (t.empty()) throw UsageError("--out is empty; it must name a folder");
       o.out = t;
     }},
    {prove, "--certificate", "DIR", Takes::one,
     "write both sides of the equalities of each property's first case there, a file per property",
     [](Options& o, Text t) { o.certificates = t; }},
    {prove, "--without", "HYPOTHESIS", Takes::one,
     "take this hypothesis from every property that states it: a witness refutes those that need it, and the others "
     "say "
     "why they do not",
     [](Options& o, Text t) {
       if (t.empty()) throw UsageError("--without is empty; it must name a hypothesis, as unmasked");
       o.without = t;
     }},
    {prove, "--witness", "DIR", Takes::one, "write the witnesses of --without there, as cases that attest replay shows",
     [](Options& o, Text t) { o.witnesses = t; }},
    {list | prove | compare | tolerance, "--json", "", Takes::nothing, "as JSON",
     [](Options& o, Text) { o.json = true; }},
    {report, "--json", "", Takes::nothing,
     "write the tolerance table as JSON instead, every class of cases, with what --baseline compares",
     [](Options& o, Text) { o.json = true; }},
    {report, "--csv", "", Takes::nothing, "write the tolerance table as CSV instead",
     [](Options& o, Text) { o.csv = true; }},
    {report, "--toml", "", Takes::nothing,
     "write the suggested atol and rtol of each kernel and dtype as TOML instead, for a test-suite",
     [](Options& o, Text) { o.toml = true; }},
    {check | fuzz | merge | report, "--junit", "FILE", Takes::one,
     "write JUnit XML there: a suite per kernel and dtype, a test per property, failures with the lines that replay "
     "them",
     [](Options& o, Text t) { o.junit = file_named("--junit", t); }},
    {check | fuzz | merge | report, "--sarif", "FILE", Takes::one,
     "write the findings there as SARIF 2.1.0, for code scanning",
     [](Options& o, Text t) { o.sarif = file_named("--sarif", t); }},
    {report, "--summary", "FILE", Takes::one,
     "write the summary there in Markdown, at most 64 KiB; a run's folder has it as summary.md",
     [](Options& o, Text t) { o.summary_file = file_named("--summary", t); }},
    {list, "--markdown", "", Takes::nothing, "properties as a Markdown table",
     [](Options& o, Text) { o.markdown = true; }},
    {probe, "--seed", "N", Takes::one, "the numbers of the questions follow from it (default: 1)",
     [](Options& o, Text t) { o.seed = whole_number<std::uint64_t>("--seed", t, 0); }},
    {probe, "-o,--output", "FILE", Takes::one, "write the manifest there instead of showing it",
     [](Options& o, Text t) { o.output = t; }},
    {report, "-o,--output", "FILE", Takes::one,
     "the file to write (default: report.html in the RUN, where it is one run's folder; a table goes to standard "
     "output)",
     [](Options& o, Text t) { o.output = t; }},
    {compare, "-o,--output", "FILE", Takes::one, "write the comparison there instead of showing it",
     [](Options& o, Text t) { o.output = t; }},
    {merge, "-o,--output", "FILE", Takes::one,
     "the journal to write; with a slash at its end, a run's folder: the journal, the cases that the parts saved, the "
     "worst case of each cell of campaigns, and a report",
     [](Options& o, Text t) { o.output = t; }},
    {init, "--language", "LANGUAGE", Takes::one, "of the kernel: c, cpp or python (default: c)",
     [](Options& o, Text t) { o.language = language_named(t); }},
    {init, "--ci", "SERVICE", Takes::one, "whose job to write: github, gitlab or none (default: github)",
     [](Options& o, Text t) { o.ci_service = ci_service_named(t); }},
    {init, "DIR", "", Takes::several, "the folder to write into; it is made where it is not there",
     [](Options& o, Text t) { o.inputs.emplace_back(t); }},
    {replay, "CASE", "", Takes::several, "the case file", [](Options& o, Text t) { o.inputs.emplace_back(t); }},
    {compare, "RUN", "", Takes::several,
     "two runs, the earlier one first: a run folder, a journal file or a file of tolerances each",
     [](Options& o, Text t) { o.inputs.emplace_back(t); }},
    {merge | report, "RUN", "", Takes::several, "run folders or journal files",
     [](Options& o, Text t) { o.inputs.emplace_back(t); }},
};

constexpr CommandRow commands[] = {
    {Command::init, "init", "attest init DIR [OPTIONS]",
     "Writes a kernel to begin with, the script that builds and checks it, attest.sh, and a CI job that runs the "
     "script "
     "on every push. Overwrites nothing.",
     "attest init ../mine --language python --ci gitlab"},
    {Command::check, "check", "attest check [OPTIONS]",
     "Checks kernels against every property and writes a run folder with a journal, cases, a summary and a report. The "
     "report counts what was drawn; a warning names each property that was judged on too few cases of the kind that it "
     "is "
     "about.",
     "attest check --kernel 'exec:python3 my_adapter.py' --dtype f32"},
    {Command::list, "list", "attest list [OPTIONS]", "Lists kernels, properties and number formats.",
     "attest list --properties --markdown"},
    {Command::replay, "replay", "attest replay CASE [OPTIONS]",
     "Runs a saved case again: exit 1 when it is violated (again), 0 when it is not. A case that names an exec: "
     "kernel starts that command.",
     "attest replay attest-run-001/cases/attention.oracle--exec-python3-mine-py--f32--k17.safetensors"},
    {Command::merge, "merge", "attest merge RUN... -o FILE",
     "Joins the parts of one run, shards or campaigns of one seed, into the canonical journal or a run's folder.",
     "attest merge shard-0 shard-1 -o merged/"},
    {Command::report, "report", "attest report RUN... [OPTIONS]",
     "Draws one HTML page from runs, or writes the table of tolerances to compute with: how large the errors of each "
     "kernel, dtype and class of cases were. JUnit XML, SARIF and the summary in Markdown are written besides, or "
     "alone where there is no -o.",
     "attest report attest-run-001 -o report.html"},
    {Command::compare, "compare", "attest compare RUN RUN [OPTIONS]",
     "Says what became worse and what better from one run to another, beyond the noise between two runs of one kernel: "
     "verdicts, errors, worst cases, coverage, claims. Exit 1 where something became worse.",
     "attest compare tolerances.json attest-run-002"},
    {Command::audit, "audit", "attest audit [OPTIONS]",
     "Runs kernels that are wrong on purpose and correct ones: which property catches which fault after how many "
     "cases, "
     "what catches nothing, false alarms, and the rules of other projects on the same calls. Exit 0 when every "
     "catchable fault is caught and no correct kernel is flagged.",
     "attest audit --kernel 'fault:mask-*' --cases 5000"},
    {Command::probe, "probe", "attest probe --kernel KERNEL [OPTIONS]",
     "Asks an attention kernel what its manifest leaves open: mask polarity and convention, causal alignment, rows "
     "without a key, head mapping, strides, lengths, log-sum-exp, which claims hold. Prints what was found and a "
     "manifest "
     "that says so. Exit 1 when the kernel does other than its manifest offers.",
     "attest probe --kernel ./libmine.so -o manifest.json"},
    {Command::tolerance, "tolerance", "attest tolerance --atol A --rtol R --kernel KERNEL [OPTIONS]",
     "Tries a tolerance of your own, |found - exact| <= A + R |exact|: which right answers of the kernel it would "
     "refuse, "
     "right being within the proved bound, and which planted faults it would miss, on cases that attest check draws. "
     "It "
     "informs and judges nothing: exit 0 whatever it finds.",
     "attest tolerance --atol 1e-5 --rtol 1.3e-6 --kernel ./libmine.so --dtype f32"},
    {Command::prove, "prove", "attest prove [OPTIONS]",
     "Proves properties for all real inputs of small shapes: the core that runs on floats runs on formulas, and both "
     "sides must be the same formula. False statements are refuted by a counterexample in certified enclosures. Says "
     "nothing about rounding. Exit 1 when two formulas differ that should not.",
     "attest prove --property 'masked.*' --certificate proofs"},
    {Command::fuzz, "fuzz", "attest fuzz --kernel KERNEL [OPTIONS]",
     "Searches for the input on which a kernel breaks or is at its worst: each next case is bred from the worst ones "
     "so "
     "far. Findings are shrunk, confirmed by the certified oracle and saved for attest replay; the worst case is saved "
     "in any event. Exit 1 when there is a finding.",
     "attest fuzz --kernel ./libmine.so --dtype f32 --time 60s --out campaign"},
    {Command::bench, "bench", "attest bench [BENCHMARK OPTIONS]",
     "Runs the benchmarks; the options are Google Benchmark's.", "attest bench --benchmark_filter=verdict"},
};

constexpr ProgramFlag flags_of_the_program[] = {
    {"-h,--help", "this text; attest COMMAND --help for its options", &Options::help},
    {"--version", "the version", &Options::version},
    {"--man-page", "the manual page of every command: attest --man-page | man -l -", &Options::man_page},
    {"--bash-completion", "completion for bash: source <(attest --bash-completion)", &Options::bash_completion},
};

constexpr ExitStatus statuses[] = {
    {0, "held (fuzz: no finding; replay: not reproduced)"},
    {1, "violated (replay: reproduced)"},
    {2, "wrong command or input"},
    {3, "a kernel could not be loaded, or nothing could be checked"},
    {4, "inconclusive, or a --kernel or --property that was judged in no case"},
    {130, "interrupted"},
};

}  // namespace

std::span<const CommandRow> command_rows() {
  return commands;
}

const CommandRow& row_of(Command command) {
  return *std::ranges::find(commands, command, &CommandRow::command);
}

std::span<const OptionRow> option_rows() {
  return rows;
}

std::span<const ProgramFlag> program_flags() {
  return flags_of_the_program;
}

std::span<const ExitStatus> exit_statuses() {
  return statuses;
}

std::vector<std::string_view> spellings_of(const OptionRow& row) {
  const std::string_view name = long_flag(row.flags);
  if (name == "--out" || name == "--output") return {"-o", "--out", "--output"};
  if (name.size() == row.flags.size()) return {name};
  return {row.flags.substr(0, row.flags.size() - name.size() - 1), name};
}

std::string_view long_flag(std::string_view flags) {
  const std::size_t comma = flags.find(',');
  return comma == std::string_view::npos ? flags : flags.substr(comma + 1);
}

std::string comma_separated(std::string_view flags) {
  const std::size_t comma = flags.find(',');
  if (comma == std::string_view::npos) return std::string(flags);
  return fmt::format("{}, {}", flags.substr(0, comma), flags.substr(comma + 1));
}

std::string option_usage(const OptionRow& row) {
  if (row.value.empty()) return comma_separated(row.flags);
  return fmt::format("{} {}{}", comma_separated(row.flags), row.value, row.takes == Takes::several ? "..." : "");
}

}  // namespace attest
