#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <ranges>
#include <span>

#include "attest/case.h"
#include "attest/names.h"
#include "fuzz/libfuzzer.h"
#include "interrupt.h"
#include "option_table.h"

namespace attest {
namespace {

using Text = const std::string&;

template <class Integer>
Integer whole_number(std::string_view option, Text text, Integer least) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least) return value;
  if (whole) throw UsageError(fmt::format("{} is {}; it must be at least {}", option, text, least));
  if (error == std::errc::result_out_of_range) {
    throw UsageError(
        fmt::format("{} is {}; it must be at most {}", option, in_quotes(text), std::numeric_limits<Integer>::max()));
  }
  throw UsageError(fmt::format("{} is {}; it must be a whole number of at least {}", option, in_quotes(text), least));
}

/// A tolerance: infinity is one.
double tolerance_number(std::string_view option, Text text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    throw UsageError(fmt::format("{} is {}; it must be a number of at least 0, such as 1e-5", option, in_quotes(text)));
  return value;
}

std::chrono::milliseconds duration(std::string_view option, Text text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double factor = unit == "ms"                  ? 1
                        : unit.empty() || unit == "s" ? 1e3
                        : unit == "m"                 ? 60e3
                        : unit == "h"                 ? 3600e3
                                                      : 0;
  // A year: more would overflow a clock, and nobody means it.
  const double limit = 365.0 * 24 * 3600e3;
  if (error == std::errc() && factor > 0 && value * factor >= 1 && value * factor <= limit) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(value * factor));
  }
  throw UsageError(fmt::format("{} is {}; it must be a time from 1ms to a year such as 500ms, 90s, 10m or 2h", option,
                               in_quotes(text)));
}

std::uint64_t memory_size(std::string_view option, Text text) {
  if (text == "none") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double factor = unit.empty() || unit == "B" ? 1
                        : unit == "KiB"             ? 0x1p10
                        : unit == "MiB"             ? 0x1p20
                        : unit == "GiB"             ? 0x1p30
                        : unit == "TiB"             ? 0x1p40
                        : unit == "kB"              ? 1e3
                        : unit == "MB"              ? 1e6
                        : unit == "GB"              ? 1e9
                        : unit == "TB"              ? 1e12
                                                    : 0;
  // With less no kernel is loaded; more than the other end no machine has.
  if (error == std::errc() && factor > 0 && value * factor >= 0x1p24 && value * factor <= 0x1p50) {
    return static_cast<std::uint64_t>(value * factor);
  }
  throw UsageError(fmt::format("{} is {}; it must be a size from 16MiB to 1024TiB such as 512MiB or 4GiB, or none",
                               option, in_quotes(text)));
}

void add_dtypes(Options& options, Text text) {
  static constexpr std::array known{DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};
  const std::string listed = text.empty() ? "," : text;  // split makes no word of an empty text; this makes empty ones
  for (const auto part : std::views::split(listed, ',')) {
    const std::string word(part.begin(), part.end());
    const std::optional<DType> dtype = dtype_named(word);
    if (!dtype || *dtype == DType::boolean) {
      std::vector<std::string_view> names;
      names.reserve(known.size());
      for (const DType candidate : known) names.push_back(name_of(candidate));
      throw UsageError(fmt::format("unknown dtype {}{}", in_quotes(word), suggestion(word, names)));
    }
    if (std::ranges::find(options.dtypes, *dtype) == options.dtypes.end()) options.dtypes.push_back(*dtype);
  }
}

bool is_libfuzzer(Text text) {
  if (text == engine_names[0]) return false;
  if (text != engine_names[1])
    throw UsageError(fmt::format("unknown --engine {}{}", in_quotes(text), suggestion(text, engine_names)));
  if (!has_libfuzzer())
    throw UsageError("--engine libfuzzer: this build has no libFuzzer; install libclang-rt-19-dev and build again");
  return true;
}

void set_shard(Options& options, Text text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) {
    throw UsageError(fmt::format("--shard is {}; it must be i/n with 0 <= i < n, as 0/4", in_quotes(text)));
  }
  options.shard.index = whole_number<std::int64_t>("--shard's index", text.substr(0, slash), 0);
  options.shard.count = whole_number<std::int64_t>("--shard's count", text.substr(slash + 1), 1);
  if (options.shard.index >= options.shard.count) {
    throw UsageError(fmt::format("--shard is {}; it must be i/n with 0 <= i < n: the last of {} is {}/{}", text,
                                 options.shard.count, options.shard.count - 1, options.shard.count));
  }
}

/// Five whole numbers. At N = 1 or dk = 1 false statements become true; beyond 512 no proof is finished.
ProofShape proof_shape(std::string_view option, Text text) {
  std::vector<std::int64_t> numbers;
  for (const auto part : std::views::split(text, ','))
    numbers.push_back(whole_number<std::int64_t>(option, std::string(part.begin(), part.end()), 1));
  const auto most = [](std::int64_t n) { return n <= 512; };
  if (numbers.size() != 5 || !std::ranges::all_of(numbers, most) || numbers[1] < 2 || numbers[2] < 2) {
    throw UsageError(
        fmt::format("{} is {}; it must be M,N,dk,dv,h with N and dk from 2 and all up to 512, as 3,3,2,2,2", option,
                    in_quotes(text)));
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

std::filesystem::path file_named(std::string_view option, Text text) {
  if (text.empty()) throw UsageError(fmt::format("{} is empty; it must name a file", option));
  return text;
}

void set_baseline(Options& options, Text text) {
  if (text.empty()) throw UsageError("--baseline is empty; it must name a file of tolerances or a run");
  options.baseline = text;
}

void set_inconclusive(Options& options, Text text) {
  if (text != "held")
    throw UsageError(fmt::format("--inconclusive is {}; the only other reading is held", in_quotes(text)));
  options.inconclusive_held = true;
}

constexpr unsigned check = on(Command::check), list = on(Command::list), replay = on(Command::replay),
                   merge = on(Command::merge), report = on(Command::report), compare = on(Command::compare),
                   audit = on(Command::audit), probe = on(Command::probe), prove = on(Command::prove),
                   fuzz = on(Command::fuzz), tolerance = on(Command::tolerance);

constexpr OptionRow rows[] = {
    {check, "--kernel", "KERNEL", Takes::one,
     "what to check: builtin:NAME, core:SCALAR, pytorch:NAME or ort:NAME (globs allowed), exec:COMMAND, or a path to a "
     "shared library; repeatable (default: builtin:* and pytorch:*)",
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
    {report | compare, "-o,--output", "FILE", Takes::one, "the file to write (compare: instead of showing it)",
     [](Options& o, Text t) { o.output = t; }},
    {merge, "-o,--output", "FILE", Takes::one,
     "the journal to write; with a slash at its end, a run's folder: the journal, the cases that the parts saved, the "
     "worst case of each cell of campaigns, and a report",
     [](Options& o, Text t) { o.output = t; }},
    {replay, "CASE", "", Takes::several, "the case file", [](Options& o, Text t) { o.inputs.emplace_back(t); }},
    {compare, "RUN", "", Takes::several,
     "two runs, the earlier one first: a run folder, a journal file or a file of tolerances each",
     [](Options& o, Text t) { o.inputs.emplace_back(t); }},
    {merge | report, "RUN", "", Takes::several, "run folders or journal files",
     [](Options& o, Text t) { o.inputs.emplace_back(t); }},
};

constexpr CommandRow commands[] = {
    {Command::check, "check", "attest check [OPTIONS]",
     "Checks kernels against every property and writes a run folder with a journal, cases, a summary and a report. The "
     "report counts what was drawn; a warning names each property that was judged on too few cases of the kind that it "
     "is "
     "about.",
     "attest check --kernel 'exec:python3 my_adapter.py' --dtype f32"},
    {Command::list, "list", "attest list [OPTIONS]", "Lists kernels, properties and number formats.",
     "attest list --properties --markdown"},
    {Command::replay, "replay", "attest replay CASE [OPTIONS]",
     "Runs a saved case again: exit 1 when the violation is reproduced, 0 when it is not. A case that names an exec: "
     "kernel starts that command.",
     "attest replay attest-run-001/cases/attention.oracle--exec-python3-mine-py--f32--k17.safetensors"},
    {Command::merge, "merge", "attest merge RUN... -o FILE",
     "Joins the parts of one run, shards or campaigns of one seed, into the canonical journal or a run's folder.",
     "attest merge shard-0 shard-1 -o merged/"},
    {Command::report, "report", "attest report RUN... -o FILE",
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
    {4, "inconclusive"},
    {130, "interrupted"},
};

const CommandRow& row_of(Command command) {
  return *std::ranges::find(commands, command, &CommandRow::command);
}

void refuse_leftovers(const CommandRow& command, const std::vector<std::string>& leftovers) {
  if (leftovers.empty()) return;
  const std::string word = leftovers.front().substr(0, leftovers.front().find('='));
  std::vector<std::string_view> known{"--help"};
  for (const OptionRow& row : rows) {
    if ((row.commands & on(command.command)) != 0 && row.flags.front() == '-') known.push_back(long_flag(row.flags));
  }
  if (word.starts_with("-")) {
    throw UsageError(fmt::format("unknown option {} of attest {}{}", in_quotes(word), command.name,
                                 suggestion(word, known, /*list_up_to=*/6)));
  }
  throw UsageError(fmt::format("unexpected argument {} of attest {}; see attest {} --help", in_quotes(word),
                               command.name, command.name));
}

/// The option of a command that is written so; null where there is none.
const OptionRow* option_written(const CommandRow& command, std::string_view word) {
  const auto is_it = [&](const OptionRow& row) {
    return (row.commands & on(command.command)) != 0 && std::ranges::count(spellings_of(row), word) > 0;
  };
  const auto* const row = std::ranges::find_if(rows, is_it);
  return row == std::end(rows) ? nullptr : row;
}

/// An option without the value that it takes, at the end of the line or before another option, which the parser would
/// take for the value; and a value for one that takes none.
void refuse_missing_values(std::span<const char* const> words) {
  const auto is_command = [](std::string_view word) {
    return std::ranges::count(commands, word, &CommandRow::name) > 0;
  };
  const auto first = std::ranges::find_if(words, is_command);
  if (first == words.end()) return;
  const CommandRow& command = *std::ranges::find(commands, std::string_view(*first), &CommandRow::name);
  const auto name_in = [](std::string_view word) { return word.substr(0, word.find('=')); };
  const auto is_option = [&](std::string_view word) {
    return word == "-h" || word == "--help" || option_written(command, name_in(word)) != nullptr;
  };
  for (auto at = first + 1; at != words.end() && command.command != Command::bench; ++at) {
    const std::string_view word = *at, name = name_in(word);
    const OptionRow* const row = option_written(command, name);
    if (row == nullptr || row->positional()) continue;
    const bool attached = word.size() > name.size();
    if (row->takes == Takes::nothing) {
      if (attached)
        throw UsageError(fmt::format("{} has a value, {}; it takes none: write {}", name,
                                     in_quotes(word.substr(name.size() + 1)), name));
      continue;
    }
    const bool last = at + 1 == words.end();
    const bool missing = attached ? word.size() == name.size() + 1 : last || is_option(at[1]);
    if (missing) {
      throw UsageError(fmt::format("{} has no value{}; it takes one: write {} {} (see attest {} --help)", name,
                                   attached || last ? "" : fmt::format(", {} follows it", in_quotes(at[1])), name,
                                   row->value, command.name));
    }
    if (!attached) ++at;
  }
}

void add_options(CLI::App& app, const CommandRow& command, Options& options) {
  app.set_help_flag();
  app.add_flag_function("-h,--help", [&options](std::int64_t) { options.help = true; });
  if (command.command == Command::bench) {
    app.prefix_command();
    return;
  }
  app.allow_extras();
  for (const OptionRow& row : rows) {
    if ((row.commands & on(command.command)) == 0) continue;
    const std::string flags = fmt::format("{}", fmt::join(spellings_of(row), ","));
    if (row.takes == Takes::nothing) {
      app.add_flag_function(flags, [&options, &row](std::int64_t) { row.apply(options, ""); });
      continue;
    }
    auto* option = app.add_option_function<std::vector<std::string>>(
        flags, [&options, &row](const std::vector<std::string>& values) {
          if (row.takes == Takes::one && !row.repeats && values.size() > 1) {
            throw UsageError(fmt::format("{} is given {} times; give it once", long_flag(row.flags), values.size()));
          }
          for (const std::string& value : values) row.apply(options, value);
        });
    option->take_all();
    if (row.takes == Takes::one) option->expected(1)->allow_extra_args(false);
  }
}

void refuse_contradictions(const Options& options) {
  if (options.resume && options.overwrite) throw UsageError("--resume and --overwrite exclude each other; give one");
  if (options.resume && options.out.empty())
    throw UsageError("--resume needs --out, the folder of the run to go on with");
  if (!options.case_files.empty() && (options.cases || options.time)) {
    throw UsageError(
        fmt::format("--case judges the files given; {} is for generated cases", options.cases ? "--cases" : "--time"));
  }
  if (!options.known.empty() && options.fail_fast) {
    throw UsageError(
        "--known and --fail-fast exclude each other: the first violation may be one that is expected; give one");
  }
  if (!options.baseline.empty() && options.fail_fast) {
    throw UsageError(
        "--baseline and --fail-fast exclude each other: a run that stops early covers less than any baseline; give "
        "one");
  }
  if (!options.baseline.empty() && options.shard.count > 1) {
    throw UsageError(
        "--baseline and --shard exclude each other: a part covers less than the whole; attest merge the parts, then "
        "attest compare");
  }
  if (!options.baseline.empty() && (options.json || options.csv))
    throw UsageError("--baseline is for the page; attest compare BASELINE RUN --json writes the comparison");
  if (options.alarm && !options.against.empty()) {
    throw UsageError(
        "--alarm and --against exclude each other: the alarm is about the distance from the exact result; give one");
  }
  if (options.without.empty() && !options.witnesses.empty())
    throw UsageError("--witness keeps the witnesses of --without; give a hypothesis with it");
  if (!options.without.empty() && (!options.shapes.empty() || !options.certificates.empty())) {
    throw UsageError(fmt::format("--without draws small cases of its own; {} is for proofs",
                                 options.shapes.empty() ? "--certificate" : "--shape"));
  }
  if (options.self_test && (!options.junit.empty() || !options.sarif.empty())) {
    throw UsageError(fmt::format("--self-test measures the search and judges no kernel; {} is for campaigns",
                                 options.junit.empty() ? "--sarif" : "--junit"));
  }
  const bool lists_more = options.list_kernels || options.list_dtypes || !options.list_properties;
  if (options.markdown && lists_more)
    throw UsageError("--markdown is for properties; use attest list --properties --markdown");
  if (options.csv && options.json) throw UsageError("--csv and --json exclude each other; give one");
  if (options.toml && (options.csv || options.json)) {
    throw UsageError(fmt::format("--toml and {} exclude each other; give one", options.csv ? "--csv" : "--json"));
  }
  if (options.markdown && options.json) throw UsageError("--markdown and --json exclude each other; give one");
}

void refuse_missing(const Options& options) {
  if (options.command == Command::replay && options.inputs.size() != 1) {
    throw UsageError(fmt::format("attest replay takes one CASE file, not {}", options.inputs.size()));
  }
  if (options.command == Command::fuzz && options.kernels.empty() && !options.self_test)
    throw UsageError("attest fuzz needs --kernel KERNEL, the kernel to search");
  if (options.command == Command::probe && options.kernels.empty())
    throw UsageError("attest probe needs --kernel KERNEL, the kernel to ask");
  if (options.command == Command::tolerance) {
    if (!options.atol || !options.rtol)
      throw UsageError(fmt::format("attest tolerance needs {} too; 0 is one", options.atol ? "--rtol" : "--atol"));
    if (options.kernels.empty())
      throw UsageError("attest tolerance needs --kernel KERNEL, whose right answers are tried");
  }
  if (options.command == Command::compare && options.inputs.size() != 2)
    throw UsageError(
        fmt::format("attest compare takes two RUNs, the earlier one first, not {}", options.inputs.size()));
  if (options.command != Command::merge && options.command != Command::report) return;
  const std::string_view name = row_of(options.command).name;
  if (options.inputs.empty())
    throw UsageError(fmt::format("attest {} needs a RUN: a run folder or a journal file", name));
  const bool table = options.json || options.csv || options.toml;
  const bool others = !options.junit.empty() || !options.sarif.empty() || !options.summary_file.empty();
  if (options.output.empty() && (table || !others || options.command == Command::merge))
    throw UsageError(fmt::format("attest {} needs -o FILE, the file to write", name));
}

std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t width = 100;
  std::string result;
  std::size_t column = indent;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view word(part.begin(), part.end());
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + '\n';
}

}  // namespace

std::span<const CommandRow> command_rows() {
  return commands;
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

KernelOptions Options::kernel_options() const {
  KernelOptions options;
  options.reply = timeout;
  options.first_reply = std::max(options.first_reply, timeout);
  options.interrupt = interrupt_descriptor();
  options.memory = memory;
  options.in_process = in_process;
  return options;
}

Options parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("", "attest");
  app.set_help_flag();
  for (const ProgramFlag& flag : flags_of_the_program) {
    app.add_flag_function(std::string(flag.flags), [&options, &flag](std::int64_t) { options.*flag.given = true; });
  }
  app.allow_extras();
  std::vector<std::pair<const CommandRow*, CLI::App*>> subcommands;
  for (const CommandRow& command : commands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name));
    add_options(*sub, command, options);
    subcommands.emplace_back(&command, sub);
  }
  if (argc > 0) refuse_missing_values(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const auto& [command, sub] : subcommands) {
    if (!sub->parsed()) continue;
    if (options.command != Command::none) {
      throw UsageError(
          fmt::format("attest runs one command, not {} and {}", row_of(options.command).name, command->name));
    }
    options.command = command->command;
    if (options.command == Command::bench) {
      options.passed_on = sub->remaining();
    } else {
      refuse_leftovers(*command, sub->remaining());
    }
  }
  if (const std::vector<std::string> leftovers = app.remaining(); !leftovers.empty()) {
    std::vector<std::string_view> names;
    for (const CommandRow& command : commands) names.push_back(command.name);
    const std::string& word = leftovers.front();
    if (word.starts_with("-")) {
      std::vector<std::string_view> known;
      for (const ProgramFlag& flag : flags_of_the_program) known.push_back(long_flag(flag.flags));
      throw UsageError(fmt::format("unknown option {}{}", in_quotes(word), suggestion(word, known)));
    }
    throw UsageError(fmt::format("unknown command {}{}", in_quotes(word), suggestion(word, names)));
  }
  if (options.help || options.version || options.man_page || options.bash_completion) return options;
  if (options.command == Command::none)
    throw UsageError(
        "no command given; attest check checks PyTorch's and the built-in kernels, attest --help lists the rest");
  refuse_contradictions(options);
  refuse_missing(options);
  return options;
}

std::string help_text(Command command) {
  if (command == Command::none) {
    std::string text =
        "Attest tells whether an attention kernel is right, and how right.\n\nusage: attest COMMAND "
        "[OPTIONS]\n\ncommands:\n";
    for (const CommandRow& row : commands) {
      text += fmt::format("  {:<10}", row.name) + wrapped(row.help, 12);
      text += fmt::format("{:12}example: {}\n", "", row.example);
    }
    text += '\n';
    for (const ProgramFlag& flag : flags_of_the_program)
      text += fmt::format("  {:<18} {}\n", comma_separated(flag.flags), flag.help);
    text += "\nexit status:\n";
    for (const ExitStatus& status : statuses) text += fmt::format("  {:<4} {}\n", status.status, status.means);
    return text;
  }
  const CommandRow& row = row_of(command);
  std::string text = fmt::format("usage: {}\n\n{}\n", row.usage, wrapped(row.help, 0));
  for (const OptionRow& option : rows) {
    if ((option.commands & on(command)) == 0) continue;
    const std::string name = option_usage(option);
    text += name.size() < 20 ? fmt::format("  {:<20}", name) : fmt::format("  {}\n{:22}", name, "");
    text += wrapped(option.help, 22);
  }
  text += fmt::format("  {:<20}this text\n\nexample: {}\n", "-h, --help", row.example);
  return text;
}

}  // namespace attest
