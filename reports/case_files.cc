#include "case_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "journal_rules.h"
#include "text.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

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

std::vector<fs::path> unnamed_cases(const fs::path& folder, const Journal& journal) {
  std::set<std::string> named;
  for (const FindingRecord& finding : journal.findings) {
    named.insert(finding.case_file);
    if (finding.repetition) named.insert(finding.repetition->before.begin(), finding.repetition->before.end());
  }
  std::vector<fs::path> unnamed;
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(folder / "cases", ignored))) return unnamed;
  for (const auto& entry : fs::directory_iterator(folder / "cases", ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_of_finding(name) && fs::is_regular_file(entry.symlink_status(ignored)) && !named.contains("cases/" + name))
      unnamed.push_back(entry.path());
  }
  return unnamed;
}

}  // namespace

std::string missing_cases_text(std::span<const FindingRecord> findings, std::span<const fs::path> folders) {
  std::set<std::string> missing;
  for (const FindingRecord& finding : findings) {
    const auto has = [&](const fs::path& folder) {
      std::error_code ignored;
      return fs::exists(fs::symlink_status(folder / finding.case_file, ignored));
    };
    if (std::ranges::none_of(folders, has)) missing.insert(finding.case_file);
  }
  if (missing.empty()) return {};
  return fmt::format("note: {} that the journal names {} missing from {}: {}; what replays a finding needs its file\n",
                     missing.size() == 1 ? "a case file" : fmt::format("{} case files", missing.size()),
                     missing.size() == 1 ? "is" : "are",
                     folders.size() == 1 ? one_line(folders.front().string()) : "the runs' folders", some_of(missing));
}

void remove_unnamed_cases(const fs::path& folder, const Journal& earlier) {
  if (unnamed_cases(folder, earlier).empty()) return;
  // Another run may have come and gone since the journal was read.
  std::error_code ignored;
  for (const fs::path& file : unnamed_cases(folder, read_journal(folder, journal_rules()))) fs::remove(file, ignored);
}

}  // namespace attest
