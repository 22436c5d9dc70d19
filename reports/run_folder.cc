#include "run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "attest/case.h"
#include "attest/names.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

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

void remove_run(const fs::path& path) {
  std::error_code ignored;
  for (const char* name : {"run.jsonl", "summary.json", "summary.md", "tolerances.json", "report.html"})
    fs::remove(path / name, ignored);
  for (const auto& [folder, extension] :
       {std::pair{"cases", ".safetensors"}, std::pair{"logs", ".log"}, std::pair{"archive", ".jsonl"}}) {
    for (const auto& entry : fs::directory_iterator(path / folder, ignored)) {
      if (entry.path().extension() == extension) fs::remove(entry.path(), ignored);
    }
  }
}

/// A journal without one whole line is what a run leaves that was killed as it began: there is nothing to lose in it.
bool holds_line(const fs::path& journal) {
  std::ifstream file(journal, std::ios::binary);
  std::string line;
  return std::getline(file, line) && !file.eof();
}

/// The folder of a run that was killed before it had a journal: what the constructor makes, or less of it.
bool is_left_by_kill(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename() != "cases" && entry.path().filename() != "logs") return false;
  return !error;
}

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

}  // namespace

RunFolder::RunFolder(const fs::path& path, Mode mode) : path_(path.empty() ? next_free() : path) {
  std::error_code error;
  const bool there = fs::exists(journal(), error), holds_run = there && holds_line(journal());
  resumes_ = mode == Mode::resume && holds_run;
  if (mode == Mode::resume && !there && !is_left_by_kill(path_)) {
    throw UsageError(fmt::format("{}: holds no run to resume; leave --resume out to start one", path_.string()));
  }
  if (mode == Mode::fresh && holds_run) refuse_second();
  fs::create_directories(path_ / "cases", error);
  if (!error) fs::create_directories(logs(), error);
  if (error)
    throw UsageError(fmt::format("{}: cannot be made: {}; choose another --out", path_.string(), error.message()));
  if (::access(path_.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("{}: is not writable; choose another --out", path_.string()));
  }
  if (mode != Mode::overwrite) return;
  // Takes the lock for a moment: a run that is still writing is not removed under its feet.
  if (there) JournalWriter probe(journal());
  remove_run(path_);
}

void RunFolder::refuse_second() const {
  throw UsageError(fmt::format(
      "{}: holds a run already; go on with it by --resume, replace it by --overwrite, or choose another --out",
      path_.string()));
}

void RunFolder::begin(JournalWriter& writer, const RunRecord& run) const {
  if (resumes_) {
    // From here on its lines have checksums.
    if (writer.wants_run()) writer.append(run);
    return;
  }
  // Another run may have come and gone while this one opened its kernels.
  std::error_code ignored;
  if (fs::file_size(journal(), ignored) > 0) refuse_second();
  writer.append(run);
}

void RunFolder::discard_if_empty() const {
  std::error_code ignored;
  for (const auto& log : fs::directory_iterator(logs(), ignored)) {
    if (fs::file_size(log.path(), ignored) == 0) fs::remove(log.path(), ignored);
  }
  // remove takes away a folder only when it is empty.
  for (const fs::path& folder : {logs(), path_ / "cases", path_}) fs::remove(folder, ignored);
}

std::vector<fs::path> RunFolder::kept_logs() const {
  std::vector<fs::path> kept;
  std::error_code ignored;
  for (const auto& log : fs::directory_iterator(logs(), ignored)) {
    if (fs::file_size(log.path(), ignored) > 0) kept.push_back(log.path());
  }
  std::ranges::sort(kept);
  return kept;
}

std::string case_file_name(const Subject& subject, const std::string& which) {
  constexpr std::size_t longest = 40;
  std::string slug;
  bool changed = subject.kernel.size() > longest;
  for (const char c : subject.kernel.substr(0, longest)) {
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

std::filesystem::path folder_with_cases(const std::vector<std::filesystem::path>& folders) {
  if (folders.size() == 1) return folders.front();
  std::filesystem::path found;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    const std::filesystem::directory_iterator first(folder / "cases", error);
    if (error || first == std::filesystem::directory_iterator()) continue;
    if (!found.empty()) return {};
    found = folder;
  }
  return found;
}

std::string shell_quoted(const std::string& word) {
  const auto harmless = [](char c) { return plain(c) || c == '/' || c == ':' || c == '=' || c == ',' || c == '+'; };
  if (!word.empty() && std::ranges::all_of(word, harmless)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string replay_line(const std::string& folder, const std::string& case_file) {
  return command_name() + " replay " + shell_quoted(folder.empty() ? case_file : folder + "/" + case_file);
}

std::string command_name() {
  const char* const launcher = std::getenv("ATTEST_COMMAND");
  return launcher == nullptr || *launcher == '\0' ? "attest" : shell_quoted(launcher);
}

}  // namespace attest
