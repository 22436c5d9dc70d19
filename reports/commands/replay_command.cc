#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>

#include "core/bound/error_alarm.h"
#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/describe.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/proofs/weakened.h"
#include "properties/road/compare_kernels.h"
#include "properties/road/road.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/chosen_kernel.h"
#include "reports/commands/options/script_option.h"
#include "reports/page/element_text.h"
#include "reports/results/error_map.h"
#include "reports/results/saved_journal.h"
#include "reports/results/summary.h"
#include "reports/run/against.h"
#include "reports/run/engine.h"
#include "reports/run/interrupt.h"
#include "reports/run/open_limits.h"
#include "reports/run/preflight.h"
#include "reports/run/repetition.h"
#include "reports/run_folder/run_folder.h"
#include "reports/run_folder/started_in.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Numbers of a tensor that are printed; of a larger one how many there are.
constexpr std::int64_t numbers_shown = 32;
/// Elements that are printed with their neighbours; the rest is counted.
constexpr int elements_shown = 3;
/// Checks of a case that was violated now and then.
constexpr std::int64_t replays_of_what_comes_and_goes = 64;

struct ReplayOptions {
  std::optional<std::string> kernel;  ///< nothing: the one that the case names
  KernelProcess process;
  std::string against;  ///< the kernel to compare with; empty: as the case says
  bool alarm = false;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> cause;  ///< of a run's folder, from 1
  ScriptOption script;
  std::vector<std::filesystem::path> cases;

  void declare(OptionList& list) {
    list.option("--kernel", kernel, kernel_name(), "the kernel to run instead of the one the case names");
    process.declare(list);
    declare_against(list, against);
    declare_alarm(list, alarm);
    declare_rows(list, rows);
    list.option("--cause", cause, whole_number<std::int64_t>(1),
                "of a run's folder the case of this cause, as the run numbers them (default: 1)");
    script.declare(list);
    list.several("CASE", cases, any_text("CASE", files),
                 "the case file, or the folder of a run, whose first cause is replayed");
  }
  void refuse() const {
    refuse_alarm_against(alarm, against);
    refuse_if(cases.size() != 1, fmt::format("attest replay takes one CASE file, not {}", cases.size()));
    script.refuse();
  }
};

const Property& property_of(const Case& c, const std::filesystem::path& file) {
  // A captured tensor names no property: the oracle's is the one that says most.
  const std::string name =
      c.provenance.property.value_or(c.operation == Operation::attention ? "attention.oracle" : "multihead.oracle");
  const auto property = std::ranges::find(catalogue(), name, &Property::name);
  if (property != catalogue().end()) return **property;
  std::vector<std::string_view> names;
  for (const Property* known : catalogue()) names.push_back(known->name);
  throw UsageError(fmt::format("{}: is for the property {}, which this program does not have{}", file.string(),
                               in_quotes(name), suggestion(name, names, /*list_up_to=*/0)));
}

/// The folders in which the case's kernels were looked for.
using Places = std::vector<std::filesystem::path>;

/// Goes where the kernels that the case names are: from here, where the run was started, or beside the run's folder.
/// What the user names holds from here, and then nothing else is looked for elsewhere.
Places go_where_kernels_are(const ReplayOptions& options, const Case& c, const std::filesystem::path& file) {
  Places places{"."};
  if (options.kernel || !options.against.empty()) return places;
  places = folders_for_kernels(file);
  for (const Provenance::Word& kernel : {c.provenance.kernel, c.provenance.against}) {
    const std::filesystem::path folder = folder_with_kernel(kernel.value_or(""), places);
    if (folder == places.front()) continue;
    fmt::print(stderr, "note: {} is taken from {}, as the case names it from there\n", one_line(*kernel),
               one_line(folder.string()));
    std::error_code error;
    std::filesystem::current_path(folder, error);
    break;
  }
  return places;
}

/// A kernel that cannot be loaded under the name that the case has for it, which may hold in another folder only.
[[noreturn]] void throw_as_named_by_case(const KernelLoadError& wrong, std::string_view option, const Places& places) {
  std::string looked;
  for (const std::filesystem::path& place : places)
    looked += (looked.empty() ? "here" : " and in ") + (looked.empty() ? "" : place.string());
  throw KernelLoadError(fmt::format("{}; the case names it so{}, {} names it as it is found from here", wrong.what(),
                                    places.size() > 1 ? fmt::format(" and it was looked for {}", looked) : "", option));
}

/// What the case was compared with when it was saved, or what is asked for now; null: with what is exact.
std::unique_ptr<Kernel> other_of(const ReplayOptions& options, const Case& c, const Places& places) {
  const std::string spec = options.against.empty() ? c.provenance.against.value_or("") : options.against;
  if (spec.empty()) return nullptr;
  try {
    return open_other_kernel(spec, options.process.options());
  } catch (const KernelLoadError& wrong) {
    if (interrupt_requested()) throw Abandoned();
    if (!options.against.empty()) throw;
    throw_as_named_by_case(wrong, "--against", places);
  }
}

std::unique_ptr<Kernel> kernel_of(const ReplayOptions& options, const Case& c, const Places& places) {
  if (!options.kernel && !c.provenance.kernel)
    throw UsageError(fmt::format("{}: names no kernel; give one with --kernel", options.cases.front().string()));
  try {
    // A law keeps within the limits that the run found: asked again, the kernel has the same.
    std::vector<MetaRecord> notes;
    return within_open_limits(
        open_chosen_kernel(options.kernel ? *options.kernel : *c.provenance.kernel, options.process, "replay runs one"),
        Journal(), notes);
  } catch (const KernelLoadError& wrong) {
    if (options.kernel) throw;
    throw_as_named_by_case(wrong, "--kernel", places);
  }
}

/// From the far end of the enclosure; NaN where either is.
double error_of(double found, const ElementFacts& facts) {
  return std::max(std::abs(found - facts.exact.lower), std::abs(found - facts.exact.upper));
}

bool accepted(double found, const ElementFacts& facts) {
  // Accept, never reject: NaN must fail.
  return !facts.required || error_of(found, facts) <= facts.allowed;
}

std::string element_lines(std::int64_t element, const Tensor& out, const ElementFacts& facts) {
  const double found = out[element];
  return fmt::format("  out{}\n    found    {}\n    exact    [{}, {}]\n    allowed  ± {}: [{}, {}]\n",
                     index_text(element, out.shape()), exact_text(found), exact_text(facts.exact.lower),
                     exact_text(facts.exact.upper), number_text(facts.allowed),
                     number_text(facts.exact.lower - facts.allowed), number_text(facts.exact.upper + facts.allowed));
}

/// An output of the case beside what is exact and what is allowed to that very output.
struct JudgedOutput {
  DType dtype;
  Tensor out;
  std::vector<ElementFacts> facts;
  double utilisation = 0;  ///< worst of its elements; NaN found counts as infinite
};

/// The outputs that the property judges: that in the case's own dtype, and of attention.oracle those in every further
/// one that the kernel offers. `ended`: how the call ended that gave none.
std::vector<JudgedOutput> outputs_of(const Property& property, Kernel& kernel, const Case& c, std::string& ended) {
  const Manifest& manifest = kernel.manifest();
  std::vector<DType> dtypes{c.dtype()};
  const auto further = manifest.out_dtypes.find(c.dtype());
  if (further != manifest.out_dtypes.end() && property.name == "attention.oracle")
    dtypes.insert(dtypes.end(), further->second.begin(), further->second.end());
  std::vector<JudgedOutput> outputs;
  for (const DType dtype : dtypes) {
    Reply reply = kernel.run(c, dtype, asks_lse(kernel.manifest(), c, /*wanted=*/false));
    if (reply.status != CallStatus::ok) {
      ended = ending_text(reply.status, reply.message);
      continue;
    }
    Arithmetic arithmetic = manifest.arithmetic_for(c);
    arithmetic.output = dtype;
    JudgedOutput& one =
        outputs.emplace_back(JudgedOutput{dtype, std::move(reply.out.tensor()), exact_elements(c, arithmetic)});
    for (std::size_t i = 0; i < one.facts.size(); ++i)
      one.utilisation =
          std::max(one.utilisation, share_of_allowed(one.out[static_cast<std::int64_t>(i)], one.facts[i]));
  }
  return outputs;
}

/// The output that the verdict is about; null where there is none.
const JudgedOutput* worst_of(const std::vector<JudgedOutput>& outputs) {
  const auto worst = std::ranges::max_element(outputs, {}, &JudgedOutput::utilisation);
  return worst == outputs.end() ? nullptr : &*worst;
}

/// The elements of one output that lie outside of what is allowed. `counts`: none is worth saying too.
void print_elements(const JudgedOutput& output, bool counts) {
  const auto count = static_cast<std::int64_t>(output.facts.size());
  std::int64_t offending = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (accepted(output.out[i], output.facts[static_cast<std::size_t>(i)])) continue;
    if (offending++ >= elements_shown) continue;
    fmt::print("{}", element_lines(i, output.out, output.facts[static_cast<std::size_t>(i)]));
    for (const std::int64_t neighbour : {i - 1, i + 1}) {
      if (neighbour < 0 || neighbour >= count) continue;
      const ElementFacts& beside = output.facts[static_cast<std::size_t>(neighbour)];
      fmt::print("    beside out{}: found {}, exact {}, allowed ± {}\n", index_text(neighbour, output.out.shape()),
                 number_text(output.out[neighbour]), number_text(beside.exact.lower), short_number(beside.allowed));
    }
  }
  if (offending > 0 || counts) fmt::print("{} of {} elements lie outside what is allowed\n", offending, count);
}

/// Each output under its own heading where there are several: what is allowed to one is not what is to another.
/// `counts`: the verdict is about one element. Where none lies outside, it is one of another call than this.
void print_outputs(const std::vector<JudgedOutput>& outputs, bool counts, const Verdict& verdict,
                   std::string_view property) {
  const auto is_right = [](const JudgedOutput& output) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(output.facts.size()); ++i)
      if (!accepted(output.out[i], output.facts[static_cast<std::size_t>(i)])) return false;
    return true;
  };
  if (!outputs.empty() && std::ranges::all_of(outputs, is_right)) {
    if (counts)
      fmt::print("{}\n",
                 verdict.violation == Violation::lse
                     ? "the output itself is right; it is the log-sum-exp that is wrong"
                     : fmt::format("the answer to the saved case lies within its bound; {} judges another call, "
                                   "or by a rule of its own",
                                   property));
    return;
  }
  for (const JudgedOutput& output : outputs) {
    if (outputs.size() > 1)
      fmt::print("output in {}, utilisation {}:\n", name_of(output.dtype), short_number(output.utilisation));
    print_elements(output, counts || outputs.size() > 1);
  }
}

/// The manifest that the kernel of the case had in the run in whose cases/ the file stands.
std::optional<Manifest> manifest_beside(const Case& c, const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path().parent_path();
  std::error_code error;
  if (file.parent_path().filename() != "cases" || !std::filesystem::exists(folder / "run.jsonl", error))
    return std::nullopt;
  try {
    const Journal journal = read_results(folder);
    const auto kernel = std::ranges::find(journal.kernels, c.provenance.kernel.value_or(""), &KernelRecord::id);
    if (kernel == journal.kernels.end() || kernel->manifest.empty()) return std::nullopt;
    return parse_manifest(kernel->manifest, kernel->id);
  } catch (const UsageError&) {
    return std::nullopt;  // what is wrong is that the kernel is not there
  }
}

/// What the kernel answered when the case was saved, for who has the case and not the kernel. What a kernel that cannot
/// be asked would have been allowed stands in its run alone.
void print_kept(const AnsweredCase& kept, const std::filesystem::path& file) {
  const Case& c = kept.value;
  if (!kept.found.present() || c.operation != Operation::attention) return;
  const std::optional<Manifest> manifest = manifest_beside(c, file);
  if (!manifest || !error_map(kept, *manifest)) return;
  Arithmetic arithmetic = manifest->arithmetic_for(c);
  arithmetic.output = kept.found.dtype();
  fmt::print("{}what the kernel answered when the case was saved:\n", describe(c, numbers_shown));
  print_elements({kept.found.dtype(), kept.found, exact_elements(c, arithmetic)}, /*counts=*/true);
}

/// The last line: the verdict beside the one that the case was saved with.
std::string beside_saved(const Case& c, Outcome now) {
  const bool violated = now == Outcome::violated;
  if (!c.provenance.expected) return violated ? "reproduced" : "saved without a verdict: nothing to reproduce";
  const std::string& then = *c.provenance.expected;
  const bool same = then == name_of(now);
  if (then != name_of(Outcome::held)) return violated || same ? "reproduced" : "not reproduced";
  return same ? "held, as when it was saved" : fmt::format("{}; it was held when it was saved", name_of(now));
}

/// A witness against a theorem without one of its hypotheses: of the core in Arb balls, whatever kernel there is.
int replay_without(const ReplayOptions& options, const Case& c, const std::filesystem::path& file) {
  refuse_if(options.script.given(), "--script: the case is a witness about real numbers, and no kernel is wrong in it");
  if (options.kernel || !options.against.empty() || options.alarm) {
    throw UsageError(
        fmt::format("{}: is a witness about real numbers, shown by the core in Arb balls; no other kernel "
                    "is asked",
                    file.string()));
  }
  Verdict verdict;
  try {
    verdict = replay_witness(c);
  } catch (const UsageError& wrong) {
    throw UsageError(fmt::format("{}: {}", file.string(), wrong.what()));
  }
  const bool reproduced = verdict.outcome == Outcome::violated;
  fmt::print("{}{} without {}: {}\n{}\n", describe(c), one_line(c.provenance.property.value()),
             one_line(c.provenance.without.value()),
             reproduced ? fmt::format("refuted, the enclosures are apart: {}", one_line(verdict.reason))
                        : fmt::format("not refuted by this case ({})", name_of(verdict.outcome)),
             reproduced ? "reproduced" : "not reproduced");
  return reproduced ? 1 : 0;
}

/// The case that a run's folder stands for: that of a cause, or of the first finding where there is none.
std::filesystem::path case_of_run(const std::filesystem::path& folder, std::int64_t number) {
  const Journal journal = read_results(folder);
  const Summary summary = summarise(journal, folder);
  const auto of = [&](const Subject& subject, std::int64_t k) {
    const auto finding = std::ranges::find_if(journal.findings, [&](const FindingRecord& one) {
      return one.subject == subject && one.k == k && !one.case_file.empty();
    });
    if (finding == journal.findings.end())
      throw UsageError(fmt::format("{}: its journal does not have the case of cause {}; those that it has are in {}",
                                   folder.string(), number, (folder / "cases").string()));
    return folder / finding->case_file;
  };
  const auto causes = std::ssize(summary.causes);
  if (number > std::max<std::ptrdiff_t>(causes, 1))
    throw UsageError(
        fmt::format("--cause {}: {} has {} cause{}", number, folder.string(), causes, causes == 1 ? "" : "s"));
  if (causes > 0) {
    const Cause& cause = summary.causes[static_cast<std::size_t>(number - 1)];
    return of(cause.example, cause.example_k);
  }
  if (journal.findings.empty())
    throw UsageError(fmt::format("{}: nothing was found in this run, so there is nothing to replay", folder.string()));
  return of(journal.findings.front().subject, journal.findings.front().k);
}

/// A journal, a folder without one, or nothing at all, is no case.
void refuse_no_case(const std::filesystem::path& file) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(file, error);
  if (folder || file.extension() == ".jsonl") {
    throw UsageError(fmt::format(
        "{}: is {}, and attest replay takes a case, or the folder of a run; its cases are in {}", file.string(),
        folder ? "a folder without a run" : "a journal", ((folder ? file : file.parent_path()) / "cases").string()));
  }
  // A link that leads nowhere is something; what reads it says what.
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
    throw UsageError(fmt::format("cannot read {}: there is no such case; those of a run are in its folder's cases/",
                                 in_quotes(file.native(), 300)));
  }
}

/// The verdict now. What comes and goes is given as many chances as make it come back for certain if it does once in
/// eight times.
Verdict checked_again(const std::function<Verdict()>& check, const std::optional<Repetition>& repetition) {
  Verdict verdict = check();
  if (!repetition || !repetition->before.empty()) return verdict;
  std::int64_t violations = verdict.outcome == Outcome::violated, checks = 1;
  for (; checks < replays_of_what_comes_and_goes; ++checks) {
    Verdict again = check();
    if (again.outcome != Outcome::violated) continue;
    if (violations++ == 0) verdict = std::move(again);
  }
  fmt::print("not repeatable: violated in {} of {} checks now, in {} of {} when it was found\n", violations, checks,
             repetition->again, repetition->of);
  return verdict;
}

/// What is measured in the verdict. `outputs`: as outputs_of gave them, or none.
void print_measures(const Verdict& verdict, const std::vector<JudgedOutput>& outputs, const Manifest& manifest) {
  const JudgedOutput* const about = worst_of(outputs);
  if (verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated) {
    fmt::print(
        "utilisation {}{}{}\n", short_number(verdict.utilisation),
        verdict.allowed > 0
            ? fmt::format(": error {}, allowed {}", short_number(verdict.error), short_number(verdict.allowed))
            : "",
        outputs.size() > 1 && verdict.element >= 0 ? fmt::format(", of the output in {}", name_of(about->dtype)) : "");
  }
  if (verdict.alarm) {
    fmt::print("alarm: {} of {} elements beyond the probabilistic bound, worst {} times it; {} not covered\n",
               verdict.alarm->beyond, verdict.alarm->elements, short_number(verdict.alarm->worst),
               verdict.alarm->uncovered);
  }
  // Of a law; an element that is off by itself is among those that follow.
  if (verdict.compared.size() > 1) {
    for (const ComparedRecord& side : compared_elements(verdict, manifest)) fmt::print("  {}\n", element_text(side));
  }
}

/// 1 where the case is violated, or undecided as it was when it was saved.
int status_of(const Case& c, Outcome now) {
  const bool undecided = c.provenance.expected == name_of(Outcome::inconclusive);
  return now == Outcome::violated || (undecided && now == Outcome::inconclusive) ? 1 : 0;
}

int replay_case(const ReplayOptions& options) {
  std::filesystem::path file = options.cases.front();
  std::error_code error;
  if (std::filesystem::is_directory(file, error) &&
      std::filesystem::exists(std::filesystem::symlink_status(file / "run.jsonl", error)))
    file = case_of_run(file, options.cause.value_or(1));
  else
    refuse_if(options.cause.has_value(), "--cause is of a run's folder; this is a case by itself");
  refuse_no_case(file);
  const std::filesystem::path whole_name = std::filesystem::absolute(file);
  const AnsweredCase answered = load_named_case(file);
  const Case& c = answered.value;
  if (c.provenance.without) return replay_without(options, c, file);
  const Property& property = property_of(c, file);
  handle_signals();
  const Places places = go_where_kernels_are(options, c, file);
  std::unique_ptr<Kernel> opened;
  try {
    opened = kernel_of(options, c, places);
  } catch (const KernelLoadError&) {
    if (!options.kernel) print_kept(answered, whole_name);
    throw;
  }
  const std::unique_ptr<Kernel> other = other_of(options, c, places);
  WatchedKernel kernel(*opened, interrupt_requested);
  fmt::print("{} by {} in {}\n{}", property.name, one_line(kernel.id()), name_of(c.dtype()),
             describe(c, numbers_shown));
  if (other) fmt::print("against {}\n", one_line(other->id()));
  const std::optional<Repetition> repetition = repetition_of(c);
  if (repetition) {
    for (const Call& call : calls_before(*repetition, whole_name)) make(call, kernel);
    if (!repetition->before.empty()) fmt::print("after {} other calls, as it was found\n", repetition->before.size());
  }
  Road road = without_projection(road_judging(
      {.alarm = options.alarm ? alarm_probability : 0.0, .rows = options.rows.value_or(Judging::by_size)}));
  if (other) {
    road.check = [&](const Property&, Kernel& of, const Case& problem) { return check_against(of, *other, problem); };
  }
  const auto check = [&] { return walk(road, property, kernel, [&] { return Case(c); }).verdict; };
  Verdict verdict = checked_again(check, repetition);
  const std::string at_load = c.provenance.at_load ? opened->load_finding() : std::string();
  if (!at_load.empty()) add_load_finding(verdict, at_load);
  fmt::print("{}{}{}\n", name_of(verdict.outcome), verdict.reason.empty() ? "" : ": ", one_line(verdict.reason));
  const bool whole = verdict.rows_judged == verdict.rows;
  if (!whole) fmt::print("{}\n", rows_text(verdict));
  const bool violated = verdict.outcome == Outcome::violated;
  // Errors are measured where the elements of this very output were judged: elsewhere an index is one of a law's sides.
  const bool shows_worst = verdict.outcome == Outcome::held && verdict.errors && verdict.element >= 0;
  std::string ended;
  std::vector<JudgedOutput> outputs;
  // Of a gradient the reason says it all.
  const bool has_elements = c.operation == Operation::attention && !asks_for_gradients(c);
  if (whole && has_elements && ((violated && at_load.empty()) || shows_worst))
    outputs = outputs_of(property, kernel, c, ended);
  print_measures(verdict, outputs, kernel.manifest());
  if (!ended.empty()) fmt::print("the kernel's call ended as {}\n", one_line(ended));
  // What is wrong with a plain problem, too, is easier to see there.
  if (violated && at_load.empty() && !repetition) {
    const DType dtype = c.dtype();
    (void)look_before_the_run(std::span(&opened, 1), std::span(&dtype, 1), Amount());
  }
  // A law may be violated between two calls of which each is within its bound, and a log-sum-exp is no element.
  // What comes and goes, or takes calls before it, another call would not show.
  if (violated && !repetition) print_outputs(outputs, /*counts=*/verdict.compared.size() == 1, verdict, property.name);
  if (const JudgedOutput* const about = worst_of(outputs); shows_worst && about != nullptr)
    fmt::print("{}",
               element_lines(verdict.element, about->out, about->facts.at(static_cast<std::size_t>(verdict.element))));
  if (options.script.given()) {
    refuse_if(!at_load.empty(), "--script: the finding is about the loading of the kernel, and a script calls it");
    options.script.write(c, property, verdict, kernel, repetition, file);
  } else if (violated && !repetition && !outputs.empty() && worst_of(outputs)->utilisation > 1) {
    fmt::print("--script FILE.py or FILE.c writes this down for those who do not have attest\n");
  } else if (violated && !repetition && verdict.compared.size() == 1 && verdict.compared[0].gradient) {
    fmt::print("--script FILE.py writes this down for those who do not have attest\n");
  }
  fmt::print("{}\n", beside_saved(c, verdict.outcome));
  return status_of(c, verdict.outcome);
}

}  // namespace

Command replay_command() {
  return {with_options<ReplayOptions>(replay_case), "replay", "attest replay CASE|RUN [OPTIONS]",
          "Runs a saved case again: exit 1 when it is violated (again), 0 when it is not. A case that names an exec: "
          "kernel starts that command. A kernel that the case names by a relative path is looked for here, where the "
          "run was started, and beside the run's folder. Of a run's folder the case of its first cause.",
          "attest replay attest-run-001"};
}

}  // namespace attest
