#include "reports/run_folder/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "core/kernels/kernel_files.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "core/support/visible.h"
#include "reports/run_folder/journal_rules.h"
#include "reports/text/text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_to_resume(const fs::path& path) {
  throw UsageError(fmt::format("{}: holds no run to resume; leave --resume out to start one", path.string()));
}

fs::path next_free() {
  for (int number = 1; number < 1'000'000; ++number) {
    const fs::path candidate = fmt::format("attest-run-{:03}", number);
    std::error_code error;
    // create_directory is the test and the taking in one, so two runs started together get two folders.
    if (fs::create_directory(candidate, error)) return candidate;
    if (error) {
      throw UsageError(fmt::format("{}: cannot be made in {}: {}; choose a folder with --out", candidate.string(),
                                   fs::current_path().string(), error.message()));
    }
  }
  throw UsageError("no attest-run-NNN is free here; choose a folder with --out");
}

constexpr std::string_view journal_name = "run.jsonl";

/// The files of a run in its folder; those of an audit and of a self-test stand beside them.
constexpr std::array files_of_run{journal_name, std::string_view("summary.json"), std::string_view("summary.md"),
                                  std::string_view("tolerances.json"), std::string_view("report.html")};
constexpr std::array files_of_others{std::string_view("audit.json"), std::string_view("audit.md"),
                                     std::string_view("self-test.json"), std::string_view("self-test.md")};
/// Its folders, and what their files end with.
struct Part {
  std::string_view name, extension;
};
constexpr Part logs_of_run{"logs", ".log"};
constexpr std::array folders_of_run{Part{"cases", ".safetensors"}, logs_of_run, Part{"archive", ".jsonl"}};

/// Names in a folder of the run that are a run's.
std::vector<std::string> names_in(const Folder& folder, const Part& part) {
  std::vector<std::string> names;
  for (const std::string& name : folder.names(part.name))
    if (name.ends_with(part.extension)) names.push_back(fmt::format("{}/{}", part.name, name));
  return names;
}

/// Throws ForeignEntry where something else than a file stands under a name of a run.
void refuse_foreign(const Folder& folder) {
  for (const std::string_view name : files_of_run) (void)folder.holds(name);
  for (const Part& part : folders_of_run)
    for (const std::string& name : names_in(folder, part)) (void)folder.holds(name);
}

void remove_run(const Folder& folder) {
  for (const std::string_view name : files_of_run) folder.remove(name);
  for (const Part& part : folders_of_run)
    for (const std::string& name : names_in(folder, part)) folder.remove(name);
}

/// A journal without one whole line is what a run leaves that was killed as it began: there is nothing to lose in it.
bool holds_line(const Folder& folder) {
  const Descriptor journal = folder.open(journal_name);
  std::array<char, 65536> bytes{};
  for (;;) {
    const ssize_t got = ::read(journal.number(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (std::string_view(bytes.data(), static_cast<std::size_t>(got)).find('\n') != std::string_view::npos) return true;
  }
}

/// The folder, made where it is missing; one to be resumed is there.
Folder made(const fs::path& path, RunFolder::Mode mode) {
  std::error_code error;
  if (mode == RunFolder::Mode::resume && !fs::exists(path, error)) refuse_to_resume(path);
  fs::create_directories(path, error);
  if (error)
    throw UsageError(fmt::format("{}: cannot be made: {}; choose another --out", path.string(), error.message()));
  return Folder(path);
}

/// The folder of a run that was killed before it had a journal: what the constructor makes, or less of it.
bool is_left_by_kill(const Folder& folder) {
  return std::ranges::all_of(folder.names(""),
                             [](const std::string& name) { return name == "cases" || name == "logs"; });
}

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/// …--k12.safetensors, …--k12-before3.safetensors
bool is_of_finding(std::string_view name) {
  constexpr std::string_view extension = ".safetensors";
  if (!name.ends_with(extension)) return false;
  name.remove_suffix(extension.size());
  const std::size_t k = name.rfind("--k");
  if (k == std::string_view::npos || k + 3 == name.size()) return false;
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::string_view which = name.substr(k + 3);
  constexpr std::string_view before = "-before";
  const std::size_t end = which.find(before);
  return is_number(which.substr(0, end)) &&
         (end == std::string_view::npos || is_number(which.substr(end + before.size())));
}

/// Of its case, and of the calls in front of it.
std::vector<std::string> files_of(const FindingRecord& finding) {
  std::vector<std::string> files{finding.case_file};
  if (finding.repetition)
    files.insert(files.end(), finding.repetition->before.begin(), finding.repetition->before.end());
  return files;
}

std::vector<std::string> unnamed_cases(const Folder& folder, const Journal& journal) {
  std::set<std::string> named;
  for (const FindingRecord& finding : journal.findings) {
    const std::vector<std::string> files = files_of(finding);
    named.insert(files.begin(), files.end());
  }
  std::vector<std::string> unnamed;
  for (const std::string& name : folder.names("cases"))
    if (is_of_finding(name) && !named.contains("cases/" + name)) unnamed.push_back("cases/" + name);
  return unnamed;
}

}  // namespace

RunFolder::RunFolder(const fs::path& path, Mode mode)
    : path_(path.empty() ? next_free() : path), files_(made(path_, mode)) {
  refuse_foreign(files_);
  const bool there = files_.holds(journal_name), holds_run = there && holds_line(files_);
  resumes_ = mode == Mode::resume && holds_run;
  if (mode == Mode::resume && !there && !is_left_by_kill(files_)) refuse_to_resume(path_);
  if (mode == Mode::fresh && holds_run) refuse_second();
  try {
    for (const char* const folder : {"cases", "logs"}) files_.make_folder(folder);
  } catch (const ForeignEntry&) {
    throw;
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}; choose another --out", error.what()));
  }
  if (::access(path_.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("{}: is not writable; choose another --out", path_.string()));
  }
  if (mode != Mode::overwrite) return;
  // Takes the lock for a moment: a run that is still writing is not removed under its feet.
  if (there) JournalWriter probe(journal());
  remove_run(files_);
}

void RunFolder::refuse_second() const {
  throw UsageError(fmt::format(
      "{}: holds a run already; go on with it by --resume, replace it by --overwrite, or choose another --out",
      path_.string()));
}

void RunFolder::begin(JournalWriter& writer, const RunRecord& run) const {
  // Under the lock, so that nobody but a report writes here now.
  remove_leftovers(files_);
  if (resumes_) {
    // From here on its lines have checksums.
    if (writer.wants_run()) writer.append(run);
    return;
  }
  // Another run may have come and gone while this one opened its kernels.
  if (files_.size(journal_name).value_or(0) > 0) refuse_second();
  writer.append(run);
}

void RunFolder::discard_if_empty() const {
  for (const std::string& log : names_in(files_, logs_of_run))
    if (files_.size(log).value_or(0) == 0) files_.remove(log);
  // A folder that is not empty stays, and a link to one too.
  for (const char* const folder : {"logs", "cases"}) files_.remove(folder);
  ::rmdir(path_.c_str());
}

std::vector<fs::path> RunFolder::kept_logs() const {
  std::vector<fs::path> kept;
  for (const std::string& log : names_in(files_, logs_of_run))
    if (files_.size(log).value_or(0) > 0) kept.push_back(path_ / log);
  return kept;
}

void remove_leftovers(const Folder& folder) {
  folder.remove_leftovers("", [](std::string_view name) {
    return std::ranges::find(files_of_run, name) != files_of_run.end() ||
           std::ranges::find(files_of_others, name) != files_of_others.end();
  });
  for (const Part& part : folders_of_run)
    folder.remove_leftovers(part.name, [&](std::string_view name) { return name.ends_with(part.extension); });
}

AnsweredCase load_named_case(const fs::path& file) {
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const fs::path name = file.filename();
  const auto bytes = [&] {
    if (folder.filename() == "cases") return Folder(folder.parent_path()).read(fmt::format("cases/{}", name.native()));
    // "x", typed in a run's cases/.
    if (fs::canonical(folder, ignored).filename() == "cases") return Folder(folder).read(name.native());
    return read_file(file);
  };
  return decode_answered_case(bytes(), file.native());
}

std::string called(const Kernel& kernel) {
  return is_from_outside(kernel.id()) ? kernel.manifest().name : kernel.id();
}

std::string case_file_name(const Subject& subject, std::string_view name, std::string_view which) {
  constexpr std::size_t longest = 40;
  std::string slug;
  bool changed = name != subject.kernel || name.size() > longest;
  for (const char c : name.substr(0, longest)) {
    const bool keep = plain(c);
    changed = changed || (!keep && c != ':');
    if (keep || slug.empty() || slug.back() != '-') slug += keep ? c : '-';
  }
  if (changed) {
    std::uint32_t hash = 0x811c9dc5;  // FNV-1a
    for (const char c : subject.kernel) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
    slug += fmt::format("-{:08x}", hash);
  }
  return fmt::format("cases/{}--{}--{}--{}.safetensors", subject.property, slug, subject.dtype, which);
}

std::string saved_case(const Folder& folder, const Subject& subject, std::string_view name, std::string_view which) {
  for (const std::string_view kernel : {name, std::string_view(subject.kernel)})
    if (std::string file = case_file_name(subject, kernel, which); folder.holds(file)) return file;
  return {};
}

std::filesystem::path folder_with_cases(const std::vector<std::filesystem::path>& folders) {
  if (folders.size() == 1) return folders.front();
  std::filesystem::path found;
  for (const std::filesystem::path& folder : folders) {
    const std::optional<Folder> files = Folder::if_there(folder);
    if (!files || files->names("cases").empty()) continue;
    if (!found.empty()) return {};
    found = folder;
  }
  return found;
}

std::string shell_quoted(const std::string& word) {
  const auto harmless = [](char c) { return plain(c) || c == '/' || c == ':' || c == '=' || c == ',' || c == '+'; };
  if (!word.empty() && std::ranges::all_of(word, harmless)) return word;
  if (visible(word) != word) {
    // The same word to bash, zsh and every shell of POSIX 2024, and seen as it is.
    std::string escaped = "$'";
    for (const char c : word) {
      const bool seen = c >= ' ' && c <= '~' && c != '\'' && c != '\\';
      escaped += seen ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return escaped + "'";
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string name_of_folder(const fs::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string replay_line(const std::string& folder, const std::string& case_file) {
  const std::string name = name_of_folder(folder);
  return command_name() + " replay " + shell_quoted(name.empty() ? case_file : name + "/" + case_file);
}

std::string command_name() {
  const char* const launcher = std::getenv("ATTEST_COMMAND");
  return launcher == nullptr || *launcher == '\0' ? "attest" : shell_quoted(launcher);
}

std::string missing_cases_text(std::span<const FindingRecord> findings, std::span<const fs::path> folders) {
  std::set<std::string> missing;
  for (const FindingRecord& finding : findings) {
    for (const std::string& file : files_of(finding)) {
      const auto has = [&](const fs::path& folder) {
        const std::optional<Folder> files = Folder::if_there(folder);
        return files && files->holds(file);
      };
      if (std::ranges::none_of(folders, has)) missing.insert(file);
    }
  }
  if (missing.empty()) return {};
  return fmt::format("note: {} that the journal names {} missing from {}: {}; what replays a finding needs its file\n",
                     missing.size() == 1 ? "a case file" : fmt::format("{} case files", missing.size()),
                     missing.size() == 1 ? "is" : "are",
                     folders.size() == 1 ? one_line(folders.front().string()) : "the runs' folders", some_of(missing));
}

void remove_unnamed_cases(const Folder& folder, const Journal& earlier) {
  if (unnamed_cases(folder, earlier).empty()) return;
  // Another run may have come and gone since the journal was read.
  for (const std::string& name : unnamed_cases(folder, read_journal(folder.path(), journal_rules())))
    folder.remove(name);
}

}  // namespace attest
