#include "reports/run/case_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "reports/run/journal_rules.h"
#include "reports/run/text.h"

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
