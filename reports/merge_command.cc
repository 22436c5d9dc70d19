#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/folder.h"
#include "attest/names.h"
#include "case_files.h"
#include "ci_files.h"
#include "commands.h"
#include "compare.h"
#include "fuzz_progress.h"
#include "html.h"
#include "journal_rules.h"
#include "known_status.h"
#include "results.h"
#include "run_folder.h"
#include "summary.h"
#include "summary_markdown.h"
#include "tolerance.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct Merged {
  Journal journal;                ///< canonical, with the meta records of all parts
  std::vector<fs::path> folders;  ///< of the parts, in order
  std::vector<JournalPart> parts;
  bool whole = false;  ///< is_whole
};

Merged merge(const Options& options) {
  MergedJournals journals =
      merge_journals(options.inputs, journal_rules(options.salvage), options.accept_changed_kernel);
  std::vector<JournalNotes> notes;
  for (std::size_t i = 0; i < journals.parts.size(); ++i) notes.push_back({options.inputs[i], journals.parts[i].notes});
  say_notes(notes);
  const bool whole = is_whole(journals);
  Merged merged{
      .journal = std::move(journals.journal), .folders = {}, .parts = std::move(journals.parts), .whole = whole};
  for (const fs::path& input : options.inputs) {
    const fs::path folder = fs::is_directory(input) ? input : input.parent_path();
    merged.folders.push_back(folder.empty() ? "." : folder);
  }
  // What was merged into a file has its cases where its parts are.
  if (std::ranges::all_of(options.inputs, [](const fs::path& input) { return fs::is_directory(input); }))
    fmt::print(stderr, "{}", missing_cases_text(merged.journal.findings, merged.folders));
  for (JournalPart& part : merged.parts) {
    drop_overtaken_explanations(part.meta);
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
    copy_if_there(Folder(merged.folders[where.second]), to, case_file_name(subject, "worst"));
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
      const std::optional<DType> dtype = dtype_named(subject.dtype);
      // A property of another version: its cases are not drawn any more.
      if (properties.empty() || !dtype) continue;
      const Archive part = parse_archive(from.read(file), (from.path() / file).string(), *properties.front(), *dtype);
      for (const Archive::Entry& entry : part.entries()) archives[subject].offer(entry);
    }
  }
  if (!archives.empty()) to.make_folder("archive");
  for (const auto& [subject, archive] : archives) to.write(archive_file_name(subject), to_text(archive));
}

/// A run's folder of what all parts found, which can be reported, replayed from and, of a campaign, resumed.
void write_folder(const Merged& merged, const fs::path& path) {
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
  write_results(path, merged.journal);
  // Last: a folder with a journal is whole, and one without is merged into again.
  folder.files().write("run.jsonl", to_text(merged.journal));
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
fs::path page_of(const Options& options) {
  if (!options.junit.empty() || !options.sarif.empty() || !options.summary_file.empty()) return {};
  const std::vector<fs::path>& runs = options.inputs;
  if (runs.size() == 1 && fs::is_directory(runs.front())) return runs.front() / page_name;
  // A run that is not there is what is to be said, by who reads it.
  if (!std::ranges::all_of(runs, [](const fs::path& run) { return fs::exists(run); })) return {};
  throw UsageError(fmt::format("attest report needs -o FILE, the page to write: {}",
                               runs.size() == 1 ? in_quotes(runs.front().native(), 300) + " is no run's folder"
                                                : fmt::format("there are {} RUNs", runs.size())));
}

}  // namespace

int merge_command(const Options& options) {
  // Read first: a mistake in it is no reason to wait for the journals.
  const std::vector<KnownFinding> known =
      options.known.empty() ? std::vector<KnownFinding>() : read_known_findings(options.known);
  const Merged merged = merge(options);
  // Where the cases are that the lines to copy replay.
  fs::path folder = options.output.parent_path();
  if (options.output.has_filename()) {
    write_file_atomically(options.output, to_text(merged.journal));
    folder = folder_with_cases(merged.folders);
  } else {
    write_folder(merged, folder);
  }
  say_what_was_merged(options.output, merged.journal);
  const bool for_ci = !options.junit.empty() || !options.sarif.empty();
  if (options.known.empty() && !for_ci) return 0;
  const Summary summary = summarise(merged.journal, folder);
  std::optional<KnownComparison> expected;
  if (!options.known.empty()) expected = compare_with_known(known, options.known.string(), summary, merged.whole);
  write_ci_files(options, summary, merged.journal, folder.string(), expected);
  return expected ? status_with_known(options, *expected) : 0;
}

int report_command(const Options& options) {
  const bool table = options.json || options.csv || options.toml;
  const bool in_folder = !table && options.output.empty();
  const fs::path output = in_folder ? page_of(options) : options.output;
  const Merged merged = merge(options);
  const fs::path folder = folder_with_cases(merged.folders);
  const Summary summary = summarise(merged.journal, folder);
  write_ci_files(options, summary, merged.journal, folder.string());
  std::optional<Comparison> changes;
  if (!options.baseline.empty()) {
    changes = compare(read_figures(options.baseline), figures_of(summary, merged.journal));
    changes->baseline = options.baseline.string();
  }
  const Comparison* const compared = changes ? &*changes : nullptr;
  if (!options.summary_file.empty()) {
    write_file_atomically(options.summary_file, to_markdown(summary, merged.journal, folder.string(), compared));
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
    const std::string page = html_page(summary, merged.journal, folder.string(), compared);
    if (in_folder) {
      const Folder run(options.inputs.front());
      remove_leftovers(run);
      run.write(page_name, page);
    } else {
      write_file_atomically(output, page);
    }
  }
  std::vector<fs::path> written;
  for (const fs::path& file : {output, options.junit, options.sarif, options.summary_file})
    if (!file.empty()) written.push_back(file);
  say_what_was_written(written);
  return 0;
}

}  // namespace attest
