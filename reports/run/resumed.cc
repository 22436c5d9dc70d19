#include "reports/run/resumed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/run/shape_options.h"
#include "reports/run_folder/journal_rules.h"
#include "reports/run_folder/run_folder.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// The words of a line that shell_quoted() wrote, quoted as they are.
std::vector<std::string> quoted_words(std::string_view line) {
  std::vector<std::string> words;
  bool quoted = false, within = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ' && !quoted) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    words.back() += line[i];
    if (line[i] == '\'') quoted = !quoted;
    if (line[i] == '\\' && !quoted && i + 1 < line.size()) words.back() += line[++i];
  }
  return words;
}

std::string with_line(const std::string& line) {
  return line.empty() ? "" : fmt::format("; go on with it by {}", line);
}

/// The kernels of one side that the other has neither started nor named as one that did not start.
std::vector<std::string> missing(std::span<const KernelRecord> here, std::span<const KernelRecord> there) {
  std::vector<std::string> names;
  for (const KernelRecord& kernel : here) {
    const auto known = [&](const KernelRecord& other) {
      return other.id == kernel.id || (!other.not_started.empty() && glob_match(other.id, kernel.id));
    };
    if (kernel.not_started.empty() && std::ranges::none_of(there, known)) names.push_back(kernel.id);
  }
  return names;
}

/// At most three of them.
std::string listed(std::span<const KernelRecord> kernels) {
  constexpr std::size_t shown = 3;
  std::set<std::string> ids;
  for (const KernelRecord& kernel : kernels) ids.insert(one_line(kernel.id));
  const std::vector<std::string> names(ids.begin(), ids.end());
  const std::span<const std::string> first(names.data(), std::min(names.size(), shown));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
}

}  // namespace

Journal earlier_journal(const RunFolder& folder, bool salvage, const RunRecord& run, const Shard& shard) {
  if (!folder.resumes()) return {};
  JournalNotes notes[] = {{folder.journal(), {}}};
  if (salvage) notes[0].notes = salvage_journal(folder.journal(), journal_rules());
  Journal journal = read_journal(folder.path(), journal_rules());
  notes[0].notes.insert(notes[0].notes.end(), journal.notes.begin(), journal.notes.end());
  say_notes(notes);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} {}", folder.path().string(), why));
  };
  const RunRecord& before = *journal.run;
  if (before.fuzz && !run.fuzz) refuse("holds a fuzz campaign; resume it with attest fuzz");
  if (!before.fuzz && run.fuzz) refuse("holds no fuzz campaign; resume it with attest check");
  if (before.seed != run.seed)
    refuse(fmt::format("was run with --seed {}; resume it with the same, not {}", before.seed, run.seed));
  if (before.case_files != run.case_files) refuse("was run on other cases; resume it with the same --case files");
  if (before.shapes != run.shapes)
    refuse(fmt::format("draws other shapes; resume it {}",
                       shape_options(before.shapes).empty()
                           ? "without --no-large, --shapes-only, --shape and --shapes"
                           : "with" + shape_options(before.shapes) + " and no other option of shapes"));
  if (before.alarm != run.alarm)
    refuse(fmt::format("was run {} --alarm; resume it the same way", before.alarm > 0 ? "with" : "without"));
  if (before.against != run.against)
    refuse(fmt::format("was run {}; resume it the same way",
                       before.against.empty() ? "without --against" : "--against " + in_quotes(before.against)));
  for (const BatchRecord& batch : journal.batches) {
    if (batch.first_k == batch.last_k || batch.shard == shard || (run.fuzz && shard.count == 1)) continue;
    refuse(fmt::format("was run with --shard {}/{}; resume it with the same", batch.shard.index, batch.shard.count));
  }
  return journal;
}

void look_after_cases(const RunFolder& folder, const Journal& earlier) {
  const std::filesystem::path folders[] = {folder.path()};
  fmt::print(stderr, "{}", missing_cases_text(earlier.findings, folders));
  remove_unnamed_cases(folder.files(), earlier);
}

void refuse_other_kernels(const Journal& earlier, std::span<const KernelRecord> asked, const std::string& where) {
  // A run that was killed before its first batch may not have named all of its kernels.
  if (earlier.batches.empty() && earlier.findings.empty()) return;
  if (missing(earlier.kernels, asked).empty() && missing(asked, earlier.kernels).empty()) return;
  throw UsageError(fmt::format("{} holds a run of {}, and not of {}{}", where, listed(earlier.kernels), listed(asked),
                               with_line(resume_line(earlier, where))));
}

void refuse_fewer_cases(const Journal& earlier, std::int64_t cases, std::string_view option, const std::string& where) {
  std::int64_t had = 0;
  for (const BatchRecord& batch : earlier.batches) had = std::max(had, batch.last_k);
  if (had <= cases) return;
  throw UsageError(fmt::format("{} has {} of a property already, more than the {} of {}{}", where, had, cases, option,
                               with_line(resume_line(earlier, where))));
}

std::string resume_line(const Journal& earlier, const std::string& where) {
  const auto begin = std::ranges::find(earlier.meta.rbegin(), earlier.meta.rend(), "begin", &MetaRecord::event);
  if (begin == earlier.meta.rend() || !begin->facts.contains("arguments")) return {};
  std::string line = command_name();
  bool folder_follows = false;
  for (const std::string& word : quoted_words(begin->facts.at("arguments"))) {
    const bool folder = folder_follows || word.starts_with("--out=") || word.starts_with("-o");
    folder_follows = !folder_follows && (word == "--out" || word == "-o");
    if (!folder && !folder_follows && word != "--resume" && word != "--overwrite" && word != "--accept-changed-kernel")
      line += " " + word;
  }
  return line + " --resume --out " + shell_quoted(where);
}

}  // namespace attest
