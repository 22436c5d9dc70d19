#include "reports/run_folder/changed_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/kernels/kernel_files.h"
#include "core/support/errors.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"

namespace attest {
namespace {

constexpr const char* remedy =
    "start a new run, or accept it with --accept-changed-kernel: the verdicts are then of both";

void add(FileHashes& files, const FileHashes& more) {
  for (const auto& [name, hashes] : more) files[name].insert(hashes.begin(), hashes.end());
}

FileHashes earlier_files(const Journal& earlier, const std::string& id) {
  FileHashes files;
  for (const KernelRecord& kernel : earlier.kernels)
    if (kernel.id == id) add(files, kernel.files);
  return files;
}

bool has(const Journal& earlier, const std::string& id) {
  return std::ranges::any_of(earlier.kernels,
                             [&](const KernelRecord& kernel) { return kernel.id == id && kernel.not_started.empty(); });
}

/// "1a2b3c4d5e6f…": enough to tell two apart.
std::string shortened(const std::set<std::string>& hashes) {
  std::vector<std::string> texts;
  texts.reserve(hashes.size());
  for (const std::string& hash : hashes) texts.push_back(hash.size() > 12 ? hash.substr(0, 12) + "…" : hash);
  return fmt::format("{}", fmt::join(texts, " and "));
}

/// Of the first file that is not what it was; empty where all are.
std::string difference(const FileHashes& before, const FileHashes& now) {
  for (const auto& [name, hashes] : now) {
    const auto known = before.find(name);
    if (known == before.end()) return fmt::format("{} is new", one_line(name));
    if (std::ranges::includes(known->second, hashes)) continue;
    return fmt::format("{} has changed (SHA-256 {}, now {})", one_line(name), shortened(known->second),
                       shortened(hashes));
  }
  for (const auto& [name, hashes] : before)
    if (!now.contains(name)) return fmt::format("{} is gone", one_line(name));
  return {};
}

std::set<std::string> builds_in(std::span<const MetaRecord> meta) {
  std::set<std::string> builds;
  for (const MetaRecord& record : meta) {
    const auto build = record.facts.find("build");
    if (record.event == "begin" && build != record.facts.end()) builds.insert(build->second);
  }
  return builds;
}

}  // namespace

void add_files(std::span<KernelRecord> records, const std::string& against) {
  for (KernelRecord& record : records) {
    if (!record.not_started.empty()) continue;
    add(record.files, kernel_files(record.id));
    if (!against.empty()) add(record.files, kernel_files(against));
  }
}

std::vector<MetaRecord> refuse_changed_files(const Journal& earlier, std::span<KernelRecord> records, bool accepted,
                                             const std::string& where) {
  std::vector<MetaRecord> notes;
  const std::set<std::string> builds = builds_in(earlier.meta);
  if (!accepted && !builds.empty() && !builds.contains(build_id())) {
    throw UsageError(fmt::format("attest itself has changed since the run in {} (build {}, now {}); {}", where,
                                 shortened(builds), shortened({build_id()}), remedy));
  }
  for (KernelRecord& record : records) {
    if (!record.not_started.empty() || !has(earlier, record.id)) continue;
    const FileHashes before = earlier_files(earlier, record.id);
    if (before.empty()) {
      if (record.files.empty()) continue;
      notes.push_back({"note",
                       {{"kernel", record.id},
                        {"text",
                         "the run was begun by an attest that kept no hash of its files; whether it has "
                         "changed since cannot be told"}}});
      continue;
    }
    const std::string changed = difference(before, record.files);
    if (!changed.empty() && !accepted)
      throw UsageError(
          fmt::format("kernel {}: {} since the run in {}; {}", one_line(record.id), changed, where, remedy));
    add(record.files, before);
  }
  return notes;
}

std::vector<KernelRecord> changed_meanwhile(std::span<const KernelRecord> records, const std::string& against) {
  std::vector<KernelRecord> changed;
  for (const KernelRecord& record : records) {
    std::vector<KernelRecord> now{record};
    add_files(now, against);
    if (now.front().files != record.files) changed.push_back(std::move(now.front()));
  }
  return changed;
}

std::string changed_text(const KernelRecord& record) {
  std::vector<std::string> names;
  for (const auto& [name, hashes] : record.files)
    if (hashes.size() > 1) names.push_back(one_line(name));
  if (names.empty()) return {};
  return fmt::format("{} changed within this run: its verdicts are of more than one build", fmt::join(names, ", "));
}

std::string changed_program_text(std::span<const MetaRecord> meta) {
  const std::set<std::string> builds = builds_in(meta);
  if (builds.size() < 2) return {};
  return fmt::format("{} builds of attest itself made this run ({}): its verdicts are of all of them", builds.size(),
                     shortened(builds));
}

}  // namespace attest
