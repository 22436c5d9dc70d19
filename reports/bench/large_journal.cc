// Writes the journals of a campaign larger than one could wait for:
//   large_journal RUN FOLDER RECORDS SHARDS
// RUN is a run's folder. Its batches of 64 cases, with all that their tallies hold, are dealt out over as many ranges
// and shards as make RECORDS batches: FOLDER/shard-0/run.jsonl … are what that many shards of one run leave, in the
// order in which they write it, and of about the size. What a tally counts is that of other cases; it adds up all the
// same.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/journal.h"

namespace attest {
namespace {

constexpr std::int64_t small = 64;

/// Tallies of a run by subject, and what stands in front of its batches.
struct Pool {
  std::vector<std::string> head;
  std::map<Subject, std::vector<Tally>> tallies;
  std::vector<FindingRecord> findings;
};

Pool pool_of(const std::filesystem::path& run) {
  Pool pool;
  const Journal journal = read_journal(run);
  pool.head = {to_line(*journal.run), to_line(MetaRecord{"begin", {}})};
  for (const KernelRecord& kernel : journal.kernels) pool.head.push_back(to_line(kernel));
  pool.findings = journal.findings;
  for (const BatchRecord& batch : journal.batches)
    if (batch.tally.cases() == small) pool.tallies[batch.subject].push_back(batch.tally);
  if (pool.tallies.empty()) throw std::runtime_error("the run has no batch of 64 cases");
  return pool;
}

/// Tallies of so many cases.
std::vector<Tally> joined(const std::vector<Tally>& tallies, std::int64_t cases) {
  std::vector<Tally> all;
  for (std::size_t first = 0; first < std::min<std::size_t>(tallies.size(), 8); ++first) {
    Tally& tally = all.emplace_back();
    for (std::size_t next = first; tally.cases() < cases; ++next) tally.merge(tallies[next % tallies.size()]);
  }
  return all;
}

/// Every worst case is the one of that number.
void place(Tally& tally, std::int64_t k) {
  const auto move = [k](std::int64_t& worst) { worst = worst < 0 ? worst : k; };
  move(tally.worst_k);
  if (tally.alarm) move(tally.alarm->worst_k);
  for (auto& [key, cell] : tally.errors.cells) move(cell.worst_k), move(cell.error_k);
  for (auto& [key, cell] : tally.errors.ordinary) move(cell.worst_k), move(cell.error_k);
}

void write_shard(const Pool& pool, const std::filesystem::path& folder, const Shard& shard, std::int64_t ranges) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder / "run.jsonl", std::ios::binary);
  LineStamper stamper;
  for (const std::string& line : pool.head) file << stamper.stamp(line);
  for (const FindingRecord& finding : pool.findings) {
    if (shard.takes(finding.k)) file << stamper.stamp(to_line(finding));
  }
  std::map<std::pair<Subject, std::int64_t>, std::vector<Tally>> tallies;
  for (std::int64_t r = 0; r < ranges; ++r) {
    const std::int64_t cases = batch_start(r + 1) - batch_start(r), first = shard.count * batch_start(r);
    for (const auto& [subject, small_ones] : pool.tallies) {
      std::vector<Tally>& all = tallies[{subject, cases}];
      if (all.empty()) all = joined(small_ones, cases);
      BatchRecord batch{subject, first, shard.count * batch_start(r + 1), shard,
                        all[static_cast<std::size_t>(r * 7 + shard.index * 3) % all.size()]};
      place(batch.tally, first + shard.index);
      file << stamper.stamp(to_line(batch));
    }
  }
  file << stamper.stamp(to_line(MetaRecord{"end", {}}));
  if (!file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", folder.string()));
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  try {
    if (argc != 5) throw std::runtime_error("usage: large_journal RUN FOLDER RECORDS SHARDS");
    const attest::Pool pool = attest::pool_of(argv[1]);
    const std::int64_t records = std::stoll(argv[3]), shards = std::stoll(argv[4]);
    if (records < 1 || shards < 1) throw std::runtime_error("RECORDS and SHARDS must be at least 1");
    const std::int64_t lines_a_range = static_cast<std::int64_t>(pool.tallies.size()) * shards;
    const std::int64_t ranges = (records + lines_a_range - 1) / lines_a_range;
    for (std::int64_t i = 0; i < shards; ++i)
      attest::write_shard(pool, fmt::format("{}/shard-{}", argv[2], i), {i, shards}, ranges);
    fmt::print("{} batches in {} shards\n", ranges * lines_a_range, shards);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "large_journal: %s\n", error.what());
    return 2;
  }
  return 0;
}
