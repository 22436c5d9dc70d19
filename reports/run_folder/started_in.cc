#include "reports/run_folder/started_in.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/journal/journal.h"
#include "core/kernels/kernel_files.h"
#include "core/support/errors.h"
#include "core/support/folder.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Nothing where the journal does not say it, or cannot be read: it is no reason not to replay a case.
std::optional<std::string> told_by_journal(const fs::path& run) {
  try {
    // The run and its begin, of a journal that may be long.
    std::string text(std::size_t{1} << 16U, '\0');
    const Descriptor journal = Folder(run).open("run.jsonl");
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(journal.number(), text.data(), text.size()))));
    const std::size_t first = text.find('\n');
    const std::size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
    if (second == std::string::npos) return std::nullopt;
    for (const MetaRecord& record : parse_journal(std::string_view(text).substr(0, second + 1), "run.jsonl").meta)
      if (const auto at = record.facts.find("started_in"); at != record.facts.end()) return at->second;
    return std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;  // whoever reads the journal says what is wrong with it
  }
}

bool holds_file(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored);
}

/// The words that may be paths from where one stands.
std::vector<std::string> relative_names(const std::string& kernel) {
  constexpr std::string_view exec = "exec:";
  std::vector<std::string> names;
  if (!kernel.starts_with(exec)) {
    names.push_back(kernel);
  } else {
    for (const CommandWord& word : command_words(std::string_view(kernel).substr(exec.size())))
      if (!word.program || word.text.find('/') != std::string::npos) names.push_back(word.text);
  }
  std::erase_if(names, [](const std::string& name) { return name.empty() || fs::path(name).is_absolute(); });
  return names;
}

}  // namespace

std::string started_in(const fs::path& run) {
  std::error_code error;
  const fs::path here = fs::current_path(error), folder = fs::canonical(run, error);
  return error ? std::string() : here.lexically_relative(folder).string();
}

std::vector<fs::path> folders_for_kernels(const fs::path& case_file) {
  std::error_code error;
  std::vector<fs::path> folders{"."};
  const fs::path cases = fs::canonical(case_file.has_parent_path() ? case_file.parent_path() : fs::path("."), error);
  if (error || cases.filename() != "cases") return folders;
  const fs::path run = cases.parent_path();
  std::vector<fs::path> wanted;
  if (const auto told = told_by_journal(run)) wanted.push_back(run / *told);
  wanted.push_back(run.parent_path());
  for (const fs::path& folder : wanted) {
    const fs::path whole = fs::canonical(folder, error);
    if (error || !fs::is_directory(whole, error)) continue;
    const auto same = [&](const fs::path& other) { return fs::equivalent(other, whole, error); };
    if (std::ranges::none_of(folders, same)) folders.push_back(whole);
  }
  return folders;
}

fs::path folder_with_kernel(const std::string& kernel, const std::vector<fs::path>& folders) {
  if (!is_from_outside(kernel)) return folders.front();
  std::vector<std::string> names = relative_names(kernel);
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::none_of(folders, [&](const fs::path& folder) { return holds_file(folder, name); });
  });
  const auto whole = [&](const fs::path& folder) {
    return std::ranges::all_of(names, [&](const std::string& name) { return holds_file(folder, name); });
  };
  const auto found = std::ranges::find_if(folders, whole);
  return found == folders.end() ? folders.front() : *found;
}

}  // namespace attest
