#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/journal/batch_join.h"
#include "core/journal/journal.h"
#include "core/journal/reader.h"
#include "core/problem/case.h"

namespace attest {
namespace {

[[noreturn]] void refuse_other_run(const RunRecord& run, const RunRecord& first, const std::string& source,
                                   const std::string& first_source) {
  if (run.alarm != first.alarm) {
    throw UsageError(fmt::format("{} and {} were not both run with --alarm; merge runs that were or runs that were not",
                                 source, first_source));
  }
  if (run.fuzz != first.fuzz) {
    throw UsageError(
        fmt::format("of {} and {} one is a fuzz campaign; merge campaigns or checks", source, first_source));
  }
  if (run.against != first.against) {
    throw UsageError(
        fmt::format("{} and {} were not run --against the same kernel; merge runs that were or runs that were not",
                    source, first_source));
  }
  if (run.shapes != first.shapes) {
    throw UsageError(fmt::format(
        "{} and {} did not draw the same shapes (--no-large, --shapes-only, --shape, --shapes, or a version before "
        "these); merge runs that did",
        source, first_source));
  }
  throw UsageError(
      run.seed != first.seed
          ? fmt::format("{} has the seed {} and {} has {}; merge runs of one seed", source, run.seed, first_source,
                        first.seed)
          : fmt::format("{} and {} judge other case files; merge runs of the same files", source, first_source));
}

/// The canonical form, from two rounds over all records: in the first one heads of batches stand for batches.
class Canonical {
 public:
  /// First round. `source` names where the record is from.
  void take(const RunRecord& run, const std::string& source) {
    if (!run_) {
      run_ = run;
      source_ = source;
    }
    if (run != *run_) refuse_other_run(run, *run_, source, source_);
  }
  void take(const KernelRecord& kernel, const std::string& source) {
    if (!kernel.files.empty()) builds_[kernel.id].push_back({kernel.files, source});
    KernelRecord& kept = kernels_.try_emplace(kernel.id, kernel).first->second;
    if (kept.manifest == kernel.manifest && kept.not_started == kernel.not_started) return;
    // A kernel that started in one part and not in another has started.
    if (kept.manifest.empty() || kernel.manifest.empty()) {
      if (kept.manifest.empty()) kept = kernel;
      return;
    }
    throw UsageError(
        fmt::format("kernel {} has two different manifests in these runs; merge runs of one kernel", kernel.id));
  }
  void take(const FindingRecord& finding) {
    const bool undecided = finding.verdict.outcome != Outcome::violated;
    auto& by_k = findings_[{finding.subject, undecided}];
    by_k.try_emplace(finding.k, finding);
    if (by_k.size() > findings_kept) by_k.erase(std::prev(by_k.end()));
  }
  void take(const ProofRecord& proof) { proofs_.insert(proof); }
  void take(const BatchHead& head) { batches_.note(head); }

  void end_first_round() { batches_.plan(); }
  /// Second round.
  void take(const BatchRecord& batch) { batches_.add(batch); }

  /// `accept_changed`: kernels whose files differ from part to part are merged all the same.
  [[nodiscard]] Journal journal(bool accept_changed) {
    accept_changed_ = accept_changed;
    Journal merged;
    merged.run = run_;
    for (auto& [id, kernel] : kernels_) {
      kernel.files = files_of(id);
      merged.kernels.push_back(kernel);
    }
    for (const auto& [subject, by_k] : findings_) {
      for (const auto& [k, finding] : by_k) merged.findings.push_back(finding);
    }
    merged.proofs.assign(proofs_.begin(), proofs_.end());
    merged.batches = batches_.take();
    return merged;
  }

 private:
  std::optional<RunRecord> run_;
  std::string source_;  ///< of run_
  struct Build {
    std::map<std::string, std::set<std::string>> files;
    std::string source;
  };
  using Files = std::map<std::string, std::set<std::string>>;

  /// The files of all parts. One of them has all of these, or somebody must accept it: a run that somebody resumed with
  /// another build says so in its record, and two runs of two builds do not.
  [[nodiscard]] Files files_of(const std::string& id) const {
    Files all;
    const auto builds = builds_.find(id);
    if (builds == builds_.end()) return all;
    for (const Build& build : builds->second)
      for (const auto& [name, hashes] : build.files) all[name].insert(hashes.begin(), hashes.end());
    const bool known = std::ranges::any_of(builds->second, [&](const Build& build) { return build.files == all; });
    if (!known && !accept_changed_) refuse_other_build(id, builds->second);
    return all;
  }

  [[noreturn]] static void refuse_other_build(const std::string& id, const std::vector<Build>& builds) {
    const Build& first = builds.front();
    for (const Build& other : builds) {
      const auto file = std::ranges::find_if(other.files, [&](const auto& one) {
        const auto same = first.files.find(one.first);
        return same == first.files.end() || same->second != one.second;
      });
      if (file == other.files.end()) continue;
      throw UsageError(
          fmt::format("kernel {}: its file {} is not the same in {} and {}; merge runs of one build, or accept it with "
                      "--accept-changed-kernel",
                      id, file->first, first.source, other.source));
    }
    throw UsageError(
        fmt::format("kernel {}: its files are not the same in {} and {}; merge runs of one build, or accept it with "
                    "--accept-changed-kernel",
                    id, first.source, builds.back().source));
  }

  std::map<std::string, KernelRecord> kernels_;
  std::map<std::string, std::vector<Build>> builds_;  ///< by kernel
  bool accept_changed_ = false;
  std::map<std::pair<Subject, bool>, std::map<std::int64_t, FindingRecord>> findings_;
  std::set<ProofRecord> proofs_;
  BatchJoin batches_;
};

template <class... Of>
struct Overloaded : Of... {
  using Of::operator()...;
};

}  // namespace

Journal canonical(std::span<const Journal> parts, std::span<const std::string> sources) {
  Canonical merged;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].run) merged.take(*parts[i].run, sources[i]);
    for (const KernelRecord& kernel : parts[i].kernels) merged.take(kernel, sources[i]);
    for (const FindingRecord& finding : parts[i].findings) merged.take(finding);
    for (const ProofRecord& proof : parts[i].proofs) merged.take(proof);
    for (const BatchRecord& batch : parts[i].batches)
      merged.take(BatchHead{batch.subject, batch.first_k, batch.last_k, batch.shard});
  }
  merged.end_first_round();
  for (const Journal& part : parts) {
    for (const BatchRecord& batch : part.batches) merged.take(batch);
  }
  return merged.journal(/*accept_changed=*/false);
}

MergedJournals merge_journals(std::span<const std::filesystem::path> files_or_folders, const JournalRules& rules,
                              bool accept_changed) {
  MergedJournals result;
  std::vector<std::unique_ptr<LineFile>> files;
  Canonical merged;
  // A batch whose tally is damaged is none: to be left out, it has to be looked at before it is planned with.
  const ReadScope first_round = rules.salvage ? ReadScope::whole : ReadScope::heads;
  for (const std::filesystem::path& input : files_or_folders) {
    const std::filesystem::path name = journal_file(input);
    const LineFile& file = *files.emplace_back(std::make_unique<LineFile>(lines_of_journal(input)));
    JournalPart& part = result.parts.emplace_back();
    const Lines lines = [&](const auto& use) { return file.for_each_line(use, rules.salvage); };
    ReadEnd end = read_records(lines, name.string(), first_round, rules, [&](Record&& record) {
      std::visit(Overloaded{[&](const RunRecord& run) { merged.take(run, input.string()); },
                            [&](MetaRecord& meta) { part.meta.push_back(std::move(meta)); },
                            [&](const KernelRecord& kernel) { merged.take(kernel, input.string()); },
                            [&](const BatchRecord& batch) {
                              merged.take(BatchHead{batch.subject, batch.first_k, batch.last_k, batch.shard});
                            },
                            [&](const auto& other) { merged.take(other); }},
                 record);
    });
    part.torn = end.torn;
    part.notes = std::move(end.notes);
  }
  merged.end_first_round();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Lines lines = [&](const auto& use) { return files[i]->for_each_line(use, rules.salvage); };
    SubjectMap<std::optional<double>> worsts;
    read_records(lines, journal_file(files_or_folders[i]).string(), ReadScope::batches, rules, [&](Record&& record) {
      const auto& batch = std::get<BatchRecord>(record);
      merged.take(batch);
      std::optional<double>& worst = worsts.at(batch.subject);
      if (batch.tally.worst_k >= 0) worst = std::max(worst.value_or(0), batch.tally.worst_utilisation);
    });
    worsts.for_each(
        [&](const Subject& subject, std::optional<double> worst) { result.parts[i].worst[subject] = worst; });
  }
  result.journal = merged.journal(accept_changed);
  return result;
}

}  // namespace attest
