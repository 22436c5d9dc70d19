#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/folder.h"
#include "core/support/names.h"
#include "reports/commands/commands.h"
#include "reports/commands/options/ci_files.h"
#include "reports/commands/options/shared_options.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/html.h"
#include "reports/formats/results.h"
#include "reports/formats/summary_markdown.h"
#include "reports/formats/table.h"
#include "reports/results/saved_journal.h"
#include "reports/results/tolerance.h"
#include "reports/run/fuzz_progress.h"
#include "reports/run_folder/journal_rules.h"
#include "reports/run_folder/run_folder.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Of both commands: the runs, and how their journals are read.
struct JoinedRuns {
  bool accept_changed_kernel = false;
  bool salvage = false;  ///< leave out what is damaged in journals
  std::vector<fs::path> runs;

  void declare(OptionList& list) {
    list.flag("--accept-changed-kernel", accept_changed_kernel,
              "join runs though a file of a kernel is not the same in all of them; the verdicts are then of all its "
              "builds, and the report says so");
    list.flag(
        "--salvage", salvage,
        "read the sound lines of damaged journals, and say which are left out (default: a damaged line is an error)");
  }
  /// Behind all options.
  void declare_runs(OptionList& list) {
    list.several("RUN", runs, any_text("RUN", files), "run folders or journal files");
  }
  void refuse(std::string_view command, const fs::path& output) const {
    refuse_if(runs.empty(), fmt::format("attest {} needs a RUN: a run folder or a journal file", command));
    refuse_if(output == "-", "-o is \"-\"; it must name a file");
  }
};

struct MergeOptions {
  JoinedRuns joined;
  fs::path known;  ///< file of the violations that are expected; empty: none are
  CiFiles ci_files;
  fs::path output;

  void declare(OptionList& list) {
    joined.declare(list);
    declare_known(list, known);
    ci_files.declare(list);
    list.option("-o,--output", output, any_text("FILE", files),
                "the journal to write; with a slash at its end, a run's folder: the journal, the cases that the parts "
                "saved, the worst case of each cell of campaigns, and a report");
    joined.declare_runs(list);
  }
  void refuse() const {
    joined.refuse("merge", output);
    refuse_if(output.empty(), "attest merge needs -o FILE, the file to write");
  }
};

struct ReportOptions {
  JoinedRuns joined;
  fs::path baseline;  ///< the run to compare with; empty: none
  bool json = false, csv = false, toml = false;
  CiFiles ci_files;
  fs::path summary, output;  ///< empty: none

  void declare(OptionList& list) {
    joined.declare(list);
    list.option("--baseline", baseline, baseline_name(),
                "an earlier run, its tolerances.json or its folder: the page says what changed");
    list.flag("--json", json,
              "write the tolerance table as JSON instead, every class of cases, with what --baseline compares");
    list.flag("--csv", csv, "write the tolerance table as CSV instead");
    list.flag("--toml", toml,
              "write the suggested atol and rtol of each kernel and dtype as TOML instead, for a test-suite");
    ci_files.declare(list);
    list.option("--summary", summary, file_name(),
                "write the summary there in Markdown, at most 64 KiB; a run's folder has it as summary.md");
    list.option("-o,--output", output, any_text("FILE", files),
                "the file to write (default: report.html in the RUN, where it is one run's folder; a table goes to "
                "standard output)");
    joined.declare_runs(list);
  }
  void refuse() const {
    refuse_if(!baseline.empty() && (json || csv),
              "--baseline is for the page; attest compare BASELINE RUN --json writes the comparison");
    refuse_if(csv && json, "--csv and --json exclude each other; give one");
    refuse_if(toml && (csv || json),
              fmt::format("--toml and {} exclude each other; give one", csv ? "--csv" : "--json"));
    joined.refuse("report", output);
  }
};

struct Merged {
  Journal journal;                ///< canonical, with the meta records of all parts
  std::vector<fs::path> folders;  ///< of the parts, in order
  std::vector<JournalPart> parts;
  bool whole = false;  ///< is_whole
};

/// Nothing of a merged run is missing: every subject has one range of cases from 0 on, in no shard, the same for all of
/// them, and no part was stopped before its end.
bool is_whole(const MergedJournals& merged) {
  const auto stopped = [](const JournalPart& part) {
    // A canonical journal, of parts that were merged before, has no meta and does not say.
    return part.torn ||
           (!part.meta.empty() && (part.meta.back().event != "end" || part.meta.back().facts.contains("interrupted")));
  };
  if (std::ranges::any_of(merged.parts, stopped)) return false;
  std::set<Subject> subjects;
  for (const BatchRecord& batch : merged.journal.batches) {
    const bool first = subjects.insert(batch.subject).second;
    if (!first || batch.first_k != 0 || batch.shard != Shard{} || batch.last_k == 0) return false;
    if (batch.last_k != merged.journal.batches.front().last_k) return false;
  }
  return !subjects.empty();
}

Merged merge(const JoinedRuns& options) {
  MergedJournals journals = merge_journals(options.runs, journal_rules(options.salvage), options.accept_changed_kernel);
  std::vector<JournalNotes> notes;
  notes.reserve(journals.parts.size());
  for (std::size_t i = 0; i < journals.parts.size(); ++i) notes.push_back({options.runs[i], journals.parts[i].notes});
  say_notes(notes);
  const bool whole = is_whole(journals);
  Merged merged{
      .journal = std::move(journals.journal), .folders = {}, .parts = std::move(journals.parts), .whole = whole};
  for (const fs::path& input : options.runs) {
    const fs::path folder = fs::is_directory(input) ? input : input.parent_path();
    merged.folders.push_back(folder.empty() ? "." : folder);
  }
  // What was merged into a file has its cases where its parts are.
  if (std::ranges::all_of(options.runs, [](const fs::path& input) { return fs::is_directory(input); }))
    fmt::print(stderr, "{}", missing_cases_text(merged.journal.findings, merged.folders));
  for (JournalPart& part : merged.parts) {
    drop_overtaken(part.meta);
    merged.journal.meta.insert(merged.journal.meta.end(), part.meta.begin(), part.meta.end());
  }
  return merged;
}

void copy_if_there(const Folder& from, const Folder& to, const std::string& name) {
  if (from.holds(name)) to.write(name, from.read(name));
}

/// The worst case of a subject is that of the part whose tally has it.
void copy_worst_cases(const Merged& merged, const Folder& to) {
  std::map<Subject, std::pair<double, std::size_t>> worst;
  for (std::size_t i = 0; i < merged.parts.size(); ++i) {
    for (const auto& [subject, utilisation] : merged.parts[i].worst) {
      if (!utilisation) continue;
      const auto [known, added] = worst.try_emplace(subject, *utilisation, i);
      if (!added && *utilisation > known->second.first) known->second = {*utilisation, i};
    }
  }
  for (const auto& [subject, where] : worst) {
    const Folder from(merged.folders[where.second]);
    const std::string file = saved_case(from, subject, name_of_kernel(merged.journal, subject.kernel), "worst");
    if (!file.empty()) copy_if_there(from, to, file);
  }
}

/// Of each cell the worst case that any part has.
void join_archives(const Merged& merged, const Folder& to) {
  std::map<Subject, Archive> archives;
  for (std::size_t i = 0; i < merged.parts.size(); ++i) {
    const Folder from(merged.folders[i]);
    for (const auto& [subject, ignored] : merged.parts[i].worst) {
      const std::string file = archive_file_name(subject);
      if (!from.holds(file)) continue;
      const std::vector<const Property*> properties = properties_matching(subject.property);
      const std::optional<DType> dtype = named<DType>(subject.dtype);
      // A property of another version: its cases are not drawn any more.
      if (properties.empty() || !dtype) continue;
      const Archive part = parse_archive(from.read(file), (from.path() / file).string(), *properties.front(), *dtype);
      for (const Archive::Entry& entry : part.entries()) archives[subject].offer(entry);
    }
  }
  if (!archives.empty()) to.make_folder("archive");
  for (const auto& [subject, archive] : archives) to.write(archive_file_name(subject), to_text(archive));
}

/// The cases of all parts, in a run's folder of their own.
void copy_cases(const Merged& merged, const fs::path& path) {
  const RunFolder folder(path, RunFolder::Mode::fresh);
  remove_leftovers(folder.files());
  for (const fs::path& part : merged.folders) {
    const Folder from(part);
    for (const FindingRecord& finding : merged.journal.findings) {
      copy_if_there(from, folder.files(), finding.case_file);
      if (!finding.repetition) continue;
      for (const std::string& file : finding.repetition->before) copy_if_there(from, folder.files(), file);
    }
  }
  copy_worst_cases(merged, folder.files());
  join_archives(merged, folder.files());
}

/// "3 findings", "1 finding".
std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

/// A file that stays. What a pipe or a device such as /dev/stdout was given is another program's to read, and nothing
/// else may stand in it.
bool stays(const fs::path& file) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  return type == fs::file_type::regular || type == fs::file_type::directory;
}

/// "wrote whole.jsonl: 12 batches, 3 findings of 2 kernels".
void say_what_was_merged(const fs::path& output, const Journal& journal) {
  if (!stays(output)) return;
  std::set<std::string> kernels;
  for (const BatchRecord& batch : journal.batches) kernels.insert(batch.subject.kernel);
  fmt::print("wrote {}: {}{}, {} of {}\n", output.string(), counted(journal.batches.size(), "batch"),
             journal.proofs.empty() ? "" : ", " + counted(journal.proofs.size(), "proof"),
             counted(journal.findings.size(), "finding"), counted(kernels.size(), "kernel"));
}

/// "wrote report.html, junit.xml".
void say_what_was_written(const std::vector<fs::path>& files) {
  std::string names;
  for (const fs::path& file : files)
    if (stays(file)) names += (names.empty() ? "" : ", ") + file.string();
  if (!names.empty()) fmt::print("wrote {}\n", names);
}

constexpr std::string_view page_name = "report.html";

/// Without -o: the page of the one run's folder; nothing where other files are asked for alone. Throws UsageError where
/// nobody can know.
fs::path page_of(const ReportOptions& options) {
  if (!options.ci_files.first_option().empty() || !options.summary.empty()) return {};
  const std::vector<fs::path>& runs = options.joined.runs;
  if (runs.size() == 1 && fs::is_directory(runs.front())) return runs.front() / page_name;
  // A run that is not there is what is to be said, by who reads it.
  if (!std::ranges::all_of(runs, [](const fs::path& run) { return fs::exists(run); })) return {};
  throw UsageError(fmt::format("attest report needs -o FILE, the page to write: {}",
                               runs.size() == 1 ? in_quotes(runs.front().native(), 300) + " is no run's folder"
                                                : fmt::format("there are {} RUNs", runs.size())));
}

int merge_runs(const MergeOptions& options) {
  // Read first: a mistake in it is no reason to wait for the journals.
  const std::vector<KnownFinding> known =
      options.known.empty() ? std::vector<KnownFinding>() : read_known_findings(options.known);
  const Merged merged = merge(options.joined);
  const bool into_file = options.output.has_filename();
  if (!into_file) copy_cases(merged, options.output.parent_path());
  // Where the cases are that the lines to copy replay.
  const fs::path folder = into_file ? folder_with_cases(merged.folders) : options.output.parent_path();
  const Summary summary = summarise(merged.journal, folder);
  Expectations expectations;
  if (!options.known.empty())
    expectations.known = compare_with_known(known, options.known.string(), summary, merged.whole);
  const Conclusion conclusion = conclude(summary, std::move(expectations));
  if (into_file) {
    write_file_atomically(options.output, to_text(merged.journal));
  } else {
    write_results(folder, merged.journal, summary, conclusion);
    // Last: a folder with a journal is whole, and one without is merged into again. It can be reported, replayed from
    // and, of a campaign, resumed.
    Folder(folder).write("run.jsonl", to_text(merged.journal));
  }
  say_what_was_merged(options.output, merged.journal);
  options.ci_files.write(summary, merged.journal, folder.string(), conclusion);
  fmt::print("{}", wrapped(expectations_text(conclusion, /*quiet=*/false), terminal_columns()));
  fmt::print(stderr, "{}", wrapped(passed_over_text(conclusion, /*quiet=*/false), terminal_columns()));
  // To join what was found is no judgement of it.
  return conclusion.known ? conclusion.exit_status : 0;
}

int report_runs(const ReportOptions& options) {
  const bool table = options.json || options.csv || options.toml;
  const bool in_folder = !table && options.output.empty();
  const fs::path output = in_folder ? page_of(options) : options.output;
  const Merged merged = merge(options.joined);
  const fs::path folder = folder_with_cases(merged.folders);
  const Summary summary = summarise(merged.journal, folder);
  Expectations expectations;
  if (!options.baseline.empty()) {
    expectations.changes = compare(read_figures(options.baseline), figures_of(summary, merged.journal));
    expectations.changes->baseline = options.baseline.string();
  }
  const Conclusion conclusion = conclude(summary, std::move(expectations));
  options.ci_files.write(summary, merged.journal, folder.string(), conclusion);
  if (!options.summary.empty()) {
    write_file_atomically(options.summary, to_markdown(summary, merged.journal, folder.string(), conclusion));
  }
  if (table) {
    const std::vector<ToleranceRow> rows = tolerance_rows(summary, merged.journal);
    if (rows.empty() && !options.json) {
      throw UsageError(
          "no error was measured in these runs: attention.oracle measures them, against the exact answer (not with "
          "--against), since journals have held them");
    }
    const std::string text = options.json  ? tolerances_json(rows, summary, merged.journal)
                             : options.csv ? tolerances_csv(rows, summary)
                                           : tolerances_toml(rows, summary);
    if (output.empty()) {
      fmt::print("{}", text);
      return 0;  // nothing else stands beside a table that another program reads
    }
    write_file_atomically(output, text);
  } else if (!output.empty()) {
    const std::string page = html_page(summary, merged.journal, folder.string(), conclusion);
    if (in_folder) {
      const Folder run(options.joined.runs.front());
      remove_leftovers(run);
      run.write(page_name, page);
    } else {
      write_file_atomically(output, page);
    }
  }
  std::vector<fs::path> written{output};
  std::ranges::copy(options.ci_files.files, std::back_inserter(written));
  written.push_back(options.summary);
  std::erase(written, fs::path());
  say_what_was_written(written);
  return 0;
}

}  // namespace

Command merge_command() {
  return {with_options<MergeOptions>(merge_runs), "merge", "attest merge RUN... -o FILE",
          "Joins the parts of one run, shards or campaigns of one seed, into the canonical journal or a run's folder.",
          "attest merge shard-0 shard-1 -o merged/"};
}

Command report_command() {
  return {with_options<ReportOptions>(report_runs), "report", "attest report RUN... [OPTIONS]",
          "Draws one HTML page from runs, or writes the table of tolerances to compute with: how large the errors of "
          "each kernel, dtype and class of cases were. JUnit XML, SARIF and the summary in Markdown are written "
          "besides, or alone where there is no -o.",
          "attest report attest-run-001 -o report.html"};
}

}  // namespace attest
