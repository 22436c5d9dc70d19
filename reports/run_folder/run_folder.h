// The folder of a run: the one place that knows its paths.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case_file.h"
#include "core/support/folder.h"

namespace attest {

class RunFolder {
 public:
  enum class Mode { fresh, resume, overwrite };

  /// Opens `path` for a run, or the next free attest-run-NNN for an empty path. Throws UsageError where the folder
  /// cannot be made or written, holds a run without resume or overwrite, or holds none to resume, and ForeignEntry
  /// where something that no run puts there stands under a name that a run uses: before the run, not at its end.
  RunFolder(const std::filesystem::path& path, Mode mode);

  /// Goes on with a run: asked for, and there is one. Asked for in a folder whose run was killed before its first line
  /// was whole, or before it had a journal, there is none, and one begins.
  [[nodiscard]] bool resumes() const { return resumes_; }
  /// Writes the first line, unless a run is resumed whose lines have checksums, and removes what killed processes left
  /// half written. `writer` holds the folder's lock. Throws UsageError where another run has begun here since.
  void begin(JournalWriter& writer, const RunRecord& run) const;

  /// Removes what the constructor made, where nothing but empty logs has been put into it.
  void discard_if_empty() const;
  /// The logs that are not empty, by name.
  [[nodiscard]] std::vector<std::filesystem::path> kept_logs() const;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Where every file of the run is read and written.
  [[nodiscard]] const Folder& files() const { return files_; }
  [[nodiscard]] std::filesystem::path journal() const { return path_ / "run.jsonl"; }
  [[nodiscard]] std::filesystem::path summary() const { return path_ / "summary.json"; }
  [[nodiscard]] std::filesystem::path report() const { return path_ / "report.html"; }
  /// Standard error of processes.
  [[nodiscard]] std::filesystem::path logs() const { return path_ / "logs"; }

 private:
  [[noreturn]] void refuse_second() const;

  std::filesystem::path path_;
  Folder files_;
  bool resumes_ = false;
};

/// "note: 2 case files that run/run.jsonl names are missing: …", with its newline; empty where every finding's case
/// file is in one of the folders.
[[nodiscard]] std::string missing_cases_text(std::span<const FindingRecord> findings,
                                             std::span<const std::filesystem::path> folders);

/// Removes from a run's folder what a killed run saved of batches that it did not finish: case files of findings,
/// …--k12.safetensors, that none of the journal's names. To be called where the journal's lock is held; `earlier` is
/// the journal as it was read before.
void remove_unnamed_cases(const Folder& folder, const Journal& earlier);

/// Removes the temporaries of a run's files that killed processes left in its folder.
void remove_leftovers(const Folder& folder);

/// The case of a file that the user named. One in a run's cases/ is a file of that run's folder: a link, a pipe or a
/// device there throws ForeignEntry.
[[nodiscard]] AnsweredCase load_named_case(const std::filesystem::path& file);

/// What a kernel is called: its id, or, of a program and of a library, the name in its manifest.
[[nodiscard]] std::string called(const Kernel& kernel);

/// "cases/PROPERTY--NAME--DTYPE--WHICH.safetensors", relative to the run's folder. `name`: what the kernel is called,
/// foreign words. Distinct for distinct kernels, whatever characters their ids and names hold, in every run alike: a
/// name that is not the id, or is not kept as it is, is followed by a hash of the id.
[[nodiscard]] std::string case_file_name(const Subject& subject, std::string_view name, std::string_view which);

/// The file of that name in a run's folder, or that of an earlier version, which named every kernel by its id; empty
/// where there is none.
[[nodiscard]] std::string saved_case(const Folder& folder, const Subject& subject, std::string_view name,
                                     std::string_view which);

/// Of the folders that a report is made from the one that has cases; the only one, with or without. Empty where several
/// have some.
[[nodiscard]] std::filesystem::path folder_with_cases(const std::vector<std::filesystem::path>& folders);

/// The word quoted for a POSIX shell where it needs it; with characters that are not seen (visible.h) as $'\xNN'.
[[nodiscard]] std::string shell_quoted(const std::string& word);

/// The name of a run's folder within the one that holds it: what reports call it, which are read where it was unpacked.
/// Empty for an empty path and for the root.
[[nodiscard]] std::string name_of_folder(const std::filesystem::path& folder);

/// The line of a report that runs a saved case again, typed beside the run's folder, wherever that lies by then; empty
/// for the current one.
[[nodiscard]] std::string replay_line(const std::string& folder, const std::string& case_file);

/// How the user starts this program, quoted: $ATTEST_COMMAND, by which the launcher names itself, or "attest".
[[nodiscard]] std::string command_name();

}  // namespace attest
