#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "attest/case.h"
#include "attest/journal.h"

namespace attest {
namespace {

/// Records of one subject and one shard, by range.
using Ranges = std::map<std::pair<std::int64_t, std::int64_t>, Tally>;

[[noreturn]] void overlap(const Subject& subject, std::int64_t k) {
  throw UsageError(fmt::format("case {} of {} on {} {} is in two of the runs; merge the shards of one run, each once",
                               k, subject.property, subject.kernel, subject.dtype));
}

void join_neighbours(const Subject& subject, Ranges& ranges) {
  Ranges joined;
  for (auto& [range, tally] : ranges) {
    if (!joined.empty()) {
      auto last = std::prev(joined.end());
      if (range.first < last->first.second) overlap(subject, range.first);
      if (range.first == last->first.second) {
        auto node = joined.extract(last);
        node.key().second = range.second;
        node.mapped().merge(tally);
        joined.insert(std::move(node));
        continue;
      }
    }
    joined.emplace(range, std::move(tally));
  }
  ranges = std::move(joined);
}

/// Replaces equal ranges of all n shards of n by the whole range.
void join_shards(std::map<Shard, Ranges>& by_shard) {
  std::map<std::int64_t, std::int64_t> present;
  for (const auto& [shard, ranges] : by_shard) ++present[shard.count];
  for (const auto& [count, shards] : present) {
    if (count == 1 || shards != count) continue;
    const Ranges first = by_shard[{0, count}];
    for (const auto& [range, tally] : first) {
      Tally whole = tally;
      bool everywhere = true;
      for (std::int64_t index = 1; index < count && everywhere; ++index) {
        const Ranges& ranges = by_shard[{index, count}];
        const auto same = ranges.find(range);
        everywhere = same != ranges.end();
        if (everywhere) whole.merge(same->second);
      }
      if (!everywhere) continue;
      for (std::int64_t index = 0; index < count; ++index) by_shard[{index, count}].erase(range);
      by_shard[{0, 1}].emplace(range, std::move(whole));
    }
  }
}

/// Two shards meet in a case exactly when their indices agree modulo the greatest common divisor of their counts.
bool can_meet(const Shard& a, const Shard& b) {
  const std::int64_t divisor = std::gcd(a.count, b.count);
  return a.index % divisor == b.index % divisor;
}

void refuse_overlaps(const Subject& subject, const std::map<Shard, Ranges>& by_shard) {
  for (auto a = by_shard.begin(); a != by_shard.end(); ++a) {
    for (auto b = std::next(a); b != by_shard.end(); ++b) {
      if (!can_meet(a->first, b->first)) continue;
      for (const auto& [left, ignored_left] : a->second) {
        for (const auto& [right, ignored_right] : b->second) {
          if (left.first < right.second && right.first < left.second)
            overlap(subject, std::max(left.first, right.first));
        }
      }
    }
  }
}

std::vector<BatchRecord> canonical_batches(std::span<const Journal> parts) {
  std::map<Subject, std::map<Shard, Ranges>> subjects;
  for (const Journal& part : parts) {
    for (const BatchRecord& batch : part.batches) {
      // The same batch twice is what a killed and resumed run, or a run given twice, leaves: the first counts.
      auto& by_shard = subjects[batch.subject];
      // An empty range says that the subject was planned and not reached.
      if (batch.first_k == batch.last_k) continue;
      by_shard[batch.shard].try_emplace({batch.first_k, batch.last_k}, batch.tally);
    }
  }
  std::vector<BatchRecord> batches;
  for (auto& [subject, by_shard] : subjects) {
    if (by_shard.empty()) batches.push_back({.subject = subject, .first_k = 0, .last_k = 0, .shard = {}, .tally = {}});
    // Twice: parts in batches join batch by batch, parts that are canonical already join whole.
    for (int pass = 0; pass < 2; ++pass) {
      join_shards(by_shard);
      for (auto& [shard, ranges] : by_shard) join_neighbours(subject, ranges);
    }
    refuse_overlaps(subject, by_shard);
    for (auto& [shard, ranges] : by_shard) {
      for (auto& [range, tally] : ranges)
        batches.push_back({subject, range.first, range.second, shard, std::move(tally)});
    }
  }
  return batches;
}

std::vector<KernelRecord> canonical_kernels(std::span<const Journal> parts) {
  std::map<std::string, KernelRecord> by_id;
  for (const Journal& part : parts) {
    for (const KernelRecord& kernel : part.kernels) {
      KernelRecord& kept = by_id.try_emplace(kernel.id, kernel).first->second;
      if (kept == kernel) continue;
      // A kernel that started in one part and not in another has started.
      if (kept.manifest.empty() || kernel.manifest.empty()) {
        if (kept.manifest.empty()) kept = kernel;
        continue;
      }
      throw UsageError(
          fmt::format("kernel {} has two different manifests in these runs; merge runs of one kernel", kernel.id));
    }
  }
  std::vector<KernelRecord> kernels;
  kernels.reserve(by_id.size());
  for (auto& [id, kernel] : by_id) kernels.push_back(std::move(kernel));
  return kernels;
}

std::vector<FindingRecord> canonical_findings(std::span<const Journal> parts) {
  std::map<std::pair<Subject, bool>, std::map<std::int64_t, FindingRecord>> subjects;
  for (const Journal& part : parts) {
    for (const FindingRecord& finding : part.findings) {
      const bool undecided = finding.verdict.outcome != Outcome::violated;
      subjects[{finding.subject, undecided}].try_emplace(finding.k, finding);
    }
  }
  std::vector<FindingRecord> findings;
  for (auto& [subject, by_k] : subjects) {
    std::size_t kept = 0;
    for (auto& [k, finding] : by_k) {
      if (kept++ < findings_kept) findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace

Journal canonical(std::span<const Journal> parts, std::span<const std::string> sources) {
  Journal merged;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!merged.run) merged.run = parts[i].run;
    if (!parts[i].run || *parts[i].run == *merged.run) continue;
    if (parts[i].run->alarm != merged.run->alarm) {
      throw UsageError(
          fmt::format("{} and {} were not both run with --alarm; merge runs that were or runs that were not",
                      sources[i], sources[0]));
    }
    if (parts[i].run->fuzz != merged.run->fuzz) {
      throw UsageError(
          fmt::format("of {} and {} one is a fuzz campaign; merge campaigns or checks", sources[i], sources[0]));
    }
    if (parts[i].run->against != merged.run->against) {
      throw UsageError(
          fmt::format("{} and {} were not run --against the same kernel; merge runs that were or runs that were not",
                      sources[i], sources[0]));
    }
    throw UsageError(
        parts[i].run->seed != merged.run->seed
            ? fmt::format("{} has the seed {} and {} has {}; merge runs of one seed", sources[i], parts[i].run->seed,
                          sources[0], merged.run->seed)
            : fmt::format("{} and {} judge other case files; merge runs of the same files", sources[i], sources[0]));
  }
  merged.kernels = canonical_kernels(parts);
  merged.findings = canonical_findings(parts);
  for (const Journal& part : parts) merged.proofs.insert(merged.proofs.end(), part.proofs.begin(), part.proofs.end());
  std::ranges::sort(merged.proofs);
  const auto [repeated, end] = std::ranges::unique(merged.proofs);
  merged.proofs.erase(repeated, end);
  merged.batches = canonical_batches(parts);
  return merged;
}

}  // namespace attest
