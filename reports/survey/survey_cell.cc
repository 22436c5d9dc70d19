#include "reports/survey/survey_cell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/isolation/child.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case_file.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"
#include "properties/road/watched_kernel.h"
#include "reports/results/cause_words.h"
#include "reports/results/saved_journal.h"
#include "reports/results/summary.h"
#include "reports/results/tolerance.h"
#include "reports/run/interrupt.h"
#include "reports/run_folder/run_folder.h"
#include "reports/text/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds no_limit = std::chrono::hours(24 * 365);

/// Runs it to its end, or until `most` has gone by, and appends what it prints to the log.
void run_to_end(std::vector<std::string> argv, const fs::path& log, std::chrono::milliseconds most = no_limit) {
  const process::Descriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file) throw UsageError(fmt::format("cannot write {}", in_quotes(log.string())));
  process::Launch launch;
  launch.argv = std::move(argv);
  launch.standard_output = launch.standard_error = file.get();
  process::Child child(launch);
  const auto until = process::Clock::now() + most;
  while (!child.has_ended() && process::Clock::now() < until) {
    if (interrupt_requested()) throw Abandoned();
    std::array<pollfd, 2> ends{pollfd{child.ended_descriptor(), POLLIN, 0}, pollfd{interrupt_descriptor(), POLLIN, 0}};
    ::poll(ends.data(), ends.size(), 500);
  }
  (void)child.end(process::Clock::now());
}

std::string replaced(std::string text, std::string_view word, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

/// The last line of what a process printed that says something; empty where there is none.
std::string last_line(const fs::path& log) {
  if (!fs::exists(log)) return {};
  std::string text = read_file(log);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return cut_short(one_line(text.substr(text.rfind('\n') + 1)), 300);
}

/// A run that came to its end: nothing where there is none.
struct FinishedRun {
  fs::path folder;
  Journal journal;
  Summary summary;
  std::vector<ToleranceRow> errors;
};
std::optional<FinishedRun> finished_run(const fs::path& folder) {
  if (!fs::exists(folder / "summary.json")) return std::nullopt;
  FinishedRun run{.folder = folder, .journal = read_results(folder), .summary = {}, .errors = {}};
  run.summary = summarise(run.journal, folder);
  if (run.summary.unfinished || run.summary.interrupted) return std::nullopt;
  run.errors = tolerance_rows(run.summary, run.journal);
  return run;
}

/// The recipe that filled an installation, as it was then.
constexpr std::string_view recipe_kept = ".recipe";

/// Whether the library is there, by the recipe as it is now.
bool is_installed(const LibraryPath& path, const fs::path& folder) {
  return path.recipe.empty() ||
         (fs::exists(folder / recipe_kept) && read_file(folder / recipe_kept) == read_file(path.recipe));
}

void install(const LibraryPath& path, const SurveyPlan& plan) {
  const fs::path folder = plan.installation_of(path);
  if (is_installed(path, folder)) return;
  fs::create_directories(folder.parent_path());
  // Of several parts one installs, and the others wait for it.
  const process::Descriptor lock(::open((folder.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw UsageError(fmt::format("cannot write {}", in_quotes(folder.string() + ".lock")));
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR || interrupt_requested()) throw Abandoned();
  if (is_installed(path, folder)) return;
  plan.say(fmt::format("{} {}: {}", path.library, path.version, path.recipe.filename().string()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  // The copy stands there only where the recipe came to its end.
  const std::string script = R"(sh "$1" "$2" "$3" && cp -- "$1" "$2/$4")";
  run_to_end(
      {"sh", "-c", script, "recipe", path.recipe.string(), folder.string(), path.version, std::string(recipe_kept)},
      folder.string() + ".log");
}

std::string_view operation_of(const Property& property) {
  return property.backward != Backward::none ? "attention_backward" : name_of(property.operation);
}
const Property* property_named(std::string_view name) {
  const auto& all = catalogue();
  const auto found = std::ranges::find(all, name, &Property::name);
  return found == all.end() ? nullptr : *found;
}
std::string_view operation_of(std::string_view property) {
  const Property* const known = property_named(property);
  return known == nullptr ? "" : operation_of(*known);
}

/// What the rows of a cell have in common.
SurveyRow row_of(const SurveyCell& cell, const SurveyPlan& plan) {
  const LibraryPath& path = cell.path;
  SurveyRow row;
  row.library = path.library, row.version = path.version, row.path = path.path, row.dtype = name_of(cell.dtype);
  row.kernel = path.kernel, row.forced = path.forced, row.promises = path.promises, row.findings = path.findings;
  row.properties = path.properties;
  if (!path.recipe.empty()) row.recipe = path.recipe.lexically_relative(plan.list).generic_string();
  return row;
}

/// The run's kernel, which is one; null where it has none.
const KernelSummary* kernel_in(const std::optional<FinishedRun>& run) {
  return run && !run->summary.kernels.empty() ? &run->summary.kernels.front() : nullptr;
}

void add_facts(SurveyRow& row, const FinishedRun& run, const fs::path& found) {
  for (const MetaRecord& meta : run.journal.meta) {
    if (meta.event != "begin") continue;
    const auto fact = [&](const char* name) {
      const auto at = meta.facts.find(name);
      return at == meta.facts.end() ? std::string() : at->second;
    };
    row.processor = fact("processor"), row.attest = fact("version"), row.date = fact("time").substr(0, 10);
  }
  using nlohmann::json;
  const std::optional<Manifest> manifest = manifest_of(run.journal, run.summary.kernels.front().id);
  const auto arithmetic_in = [&](const std::string& text) {
    const json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!all.is_object() || !all.contains("arithmetic") || !all["arithmetic"].contains(row.dtype)) return std::string();
    return all["arithmetic"][row.dtype].dump();
  };
  if (manifest) {
    row.declared = arithmetic_in(to_json(*manifest));
    for (const Claim claim : manifest->claims) row.claims.emplace_back(name_of(claim));
  }
  if (fs::exists(found)) row.found = arithmetic_in(read_file(found));
}

/// Saves cases beside the table.
class Inputs {
 public:
  Inputs(const SurveyCell& cell, const SurveyPlan& plan) : cell_(cell), out_(plan.out) {}

  /// The name in the survey's folder; empty where there is no such file, or the case is one of several calls, which are
  /// in files of the run.
  [[nodiscard]] std::string save(const FinishedRun& run, const std::string& file, std::string_view which) const {
    if (file.empty() || !fs::exists(run.folder / file)) return {};
    AnsweredCase answered = load_named_case(run.folder / file);
    if (answered.value.provenance.calls_before) return {};
    answered.value.provenance.kernel = cell_.path.kernel;
    const std::string name =
        fmt::format("cases/{}.safetensors", file_name_of(fmt::format("{} {}", cell_.name(), which)));
    fs::create_directories(out_ / "cases");
    write_file_atomically(out_ / name, encode_case(answered));
    return name;
  }

 private:
  const SurveyCell& cell_;
  fs::path out_;
};

/// Adds what a run found of an operation: its verdict, its cases and its mistakes.
void add_verdict(SurveyRow& row, const FinishedRun& run, std::int64_t& cases) {
  for (const PropertySummary& property : run.summary.kernels.front().properties) {
    if (operation_of(property.name) != row.operation) continue;
    row.verdict = worse(row.verdict, property.verdict);
    cases += property.tally.judged();
    if (property.name.ends_with(".promised") && property.tally.judged() > 0)
      row.promise = worse(row.promise.value_or(Outcome::skipped), property.verdict);
  }
}

void add_causes(SurveyRow& row, const FinishedRun& run, const Inputs& inputs) {
  for (const CauseWords& words : words_of_causes(run.summary, run.folder.string(), "")) {
    if (words.cause->properties.empty() || operation_of(words.cause->properties.front()) != row.operation) continue;
    const auto same = std::ranges::find(row.wrong, words.what, &WrongPath::what);
    if (same != row.wrong.end()) continue;
    row.wrong.push_back(
        {.what = words.what,
         .when = words.when,
         .smallest = words.smallest,
         .found = words.found,
         .input = inputs.save(run, words.case_file, fmt::format("{} {}", row.operation, row.wrong.size() + 1))});
  }
}

/// Adds the errors that a run measured of the row's output; of what has no measure of errors the property's own figure.
void add_errors(SurveyRow& row, const FinishedRun& run, const std::string& name, bool searched, const Inputs& inputs) {
  const std::vector<PropertySummary>& properties = run.summary.kernels.front().properties;
  const auto property = std::ranges::find(properties, name, &PropertySummary::name);
  if (property == properties.end()) return;
  double share = property->tally.errors.empty() ? property->tally.worst_utilisation : 0;
  for (const ToleranceRow& errors : run.errors) {
    if (errors.property != name || errors.keys != "all") continue;
    if (errors.is_ordinary()) {
      row.ordinary_cases = errors.cell.cases;
      row.ordinary_share = errors.cell.quantile(0.999);
      row.ordinary_scaled = size_of_code(errors.cell.worst_scaled);
    }
    if (!errors.is_whole()) continue;
    row.worst_scaled = std::max(row.worst_scaled, size_of_code(errors.cell.worst_scaled));
    share = std::max(share, size_of_code(errors.cell.worst_normal));
  }
  for (const auto& [exponent, scaled] : property->tally.errors.octaves) {
    ScaledError& worst = row.by_keys[exponent];
    worst = std::max(worst, scaled);
  }
  if (share <= row.worst_share) return;
  row.worst_share = share, row.worst_was_searched = searched;
  row.worst_input = inputs.save(run, property->worst_case, fmt::format("{} {} worst", row.operation, row.output));
}

/// "out", or the gradient that the property is about.
std::string output_of(std::string_view property) {
  constexpr std::string_view before = "backward.oracle-";
  return property.starts_with(before) ? std::string(property.substr(before.size())) : "out";
}

}  // namespace

std::vector<SurveyCell> cells_of(const std::vector<LibraryPath>& paths) {
  std::vector<SurveyCell> cells;
  for (const LibraryPath& path : paths)
    for (const DType dtype : path.dtypes) cells.push_back({path, dtype});
  return cells;
}

fs::path SurveyPlan::installation_of(const LibraryPath& path) const {
  return fs::absolute(out) / "libraries" / file_name_of(path.library + "-" + path.version);
}

std::string SurveyPlan::kernel_of(const LibraryPath& path) const {
  const bool command = path.kernel.starts_with("exec:");
  const auto folder = [&](const fs::path& one) { return command ? shell_quoted(one.string()) : one.string(); };
  const std::string kernel = replaced(path.kernel, "{library}", folder(installation_of(path)));
  return replaced(kernel, "{list}", folder(fs::absolute(list).lexically_normal()));
}

fs::path SurveyPlan::folder_of(const SurveyCell& cell) const {
  return out / "cells" / file_name_of(cell.path.library + "-" + cell.path.version) / file_name_of(cell.path.path) /
         std::string(name_of(cell.dtype));
}

void run_cell(const SurveyCell& cell, const SurveyPlan& plan) {
  install(cell.path, plan);
  if (!is_installed(cell.path, plan.installation_of(cell.path))) return;
  const fs::path folder = plan.folder_of(cell), program = fs::read_symlink("/proc/self/exe");
  fs::create_directories(folder);
  const std::string dtype(name_of(cell.dtype));
  const auto step = [&](const std::string& command, const fs::path& made, std::vector<std::string> further,
                        std::chrono::milliseconds most = no_limit) {
    plan.say(fmt::format("{}: {}", cell.name(), command));
    std::vector<std::string> argv{program.string(), command, "--kernel", plan.kernel_of(cell.path),
                                  "--dtype",        dtype,   "--seed",   std::to_string(plan.seed)};
    std::ranges::move(further, std::back_inserter(argv));
    if (!cell.path.timeout.empty()) argv.insert(argv.end(), {"--timeout", cell.path.timeout});
    run_to_end(std::move(argv), folder / (made.stem().string() + ".log"), most);
  };
  const auto run = [&](const std::string& command, const std::string& name, std::vector<std::string> further) {
    if (finished_run(folder / name)) return;
    further.insert(further.end(), {"--out", (folder / name).string(), "--jobs", std::to_string(plan.jobs)});
    if (fs::exists(folder / name / "run.jsonl")) further.emplace_back("--resume");
    step(command, name, std::move(further));
  };
  const auto length = [&](const char* of_cases) {
    return plan.cases ? std::vector<std::string>{of_cases, std::to_string(*plan.cases)}
                      : std::vector<std::string>{"--time", fmt::format("{}ms", plan.time.count())};
  };
  std::vector<std::string> check = length("--cases");
  for (const std::string& glob : cell.path.properties) check.insert(check.end(), {"--property", glob});
  run("check", "check", std::move(check));
  if (!finished_run(folder / "check")) return;
  // Of a kernel that compiles each shape its questions take hours.
  if (!fs::exists(folder / "found.json"))
    step("probe", "found.json", {"-o", (folder / "found.json").string()}, plan.cases ? no_limit : plan.time);
  std::vector<std::string> search = length("--runs");
  search.insert(search.end(), {"--objective", "error", "--objective", "gradient"});
  run("fuzz", "search", std::move(search));
}

std::vector<SurveyRow> rows_of(const SurveyCell& cell, const SurveyPlan& plan) {
  const fs::path folder = plan.folder_of(cell);
  const std::optional<FinishedRun> check = finished_run(folder / "check"), search = finished_run(folder / "search");
  SurveyRow shared = row_of(cell, plan);
  const KernelSummary* const checked = kernel_in(check);
  const Inputs inputs(cell, plan);
  std::vector<SurveyRow> rows;
  // Of a slow kernel the check may have come to its end before it asked everything, which the search has asked then.
  std::set<std::string> outputs;
  for (const KernelSummary* const kernel : {checked, kernel_in(search)}) {
    if (kernel == nullptr) continue;
    for (const PropertySummary& property : kernel->properties)
      if (is_oracle(property.name) && property.tally.cases() > property.tally.skipped) outputs.insert(property.name);
  }
  if (checked != nullptr) add_facts(shared, *check, folder / "found.json");
  for (const std::string& output : outputs) {
    SurveyRow& row = rows.emplace_back(shared);
    row.operation = operation_of(output), row.output = output_of(output);
    if (checked != nullptr) {
      add_verdict(row, *check, row.judged);
      add_errors(row, *check, output, /*searched=*/false, inputs);
      add_causes(row, *check, inputs);
    }
    if (kernel_in(search) != nullptr) {
      add_verdict(row, *search, row.searched);
      add_errors(row, *search, output, /*searched=*/true, inputs);
      if (row.wrong.empty()) add_causes(row, *search, inputs);
    }
  }
  if (!rows.empty()) return rows;
  const fs::path log = folder / "check.log", of_recipe = plan.installation_of(cell.path).string() + ".log";
  const std::string said = last_line(fs::exists(log) ? log : of_recipe);
  shared.not_run = check ? "no case was judged against the exact answer"
                   : is_installed(cell.path, plan.installation_of(cell.path)) ? "it was not checked"
                                                                              : "it could not be installed";
  if (!said.empty() && !check) shared.not_run += ": " + said;
  return {std::move(shared)};
}

}  // namespace attest
