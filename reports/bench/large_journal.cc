// Writes the journals of a campaign larger than one could wait for:
//   large_journal RUN FOLDER RECORDS SHARDS
// RUN is a run's folder. Its batches, with all that its tallies hold, are dealt out over as many ranges and shards as
// make RECORDS batches: FOLDER/shard-0/run.jsonl … are what that many shards of one run leave, in the order in which
// they write it, and of about the size. What a tally counts is that of another range; nothing that joins journals can
// tell.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "attest/journal.h"

namespace attest {
namespace {

/// A batch's line on both sides of its range and shard.
struct Stamp {
  std::string before, after;
};

/// Lines of a run by subject, and what stands in front of them.
struct Pool {
  std::string head;
  std::map<Subject, std::vector<Stamp>> stamps;
  std::vector<FindingRecord> findings;
};

Pool pool_of(const std::filesystem::path& run) {
  Pool pool;
  const Journal journal = read_journal(run);
  pool.head = to_line(*journal.run) + to_line(MetaRecord{"begin", {}});
  for (const KernelRecord& kernel : journal.kernels) pool.head += to_line(kernel);
  pool.findings = journal.findings;
  for (const BatchRecord& batch : journal.batches) {
    const std::string line = to_line(batch);
    const std::size_t range = line.find("\"first\":"), tally = line.find("\"held\":");
    pool.stamps[batch.subject].push_back({line.substr(0, range), line.substr(tally)});
  }
  if (pool.stamps.empty()) throw std::runtime_error("the run has no batch");
  return pool;
}

void write_shard(const Pool& pool, const std::filesystem::path& folder, const Shard& shard, std::int64_t ranges) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder / "run.jsonl", std::ios::binary);
  file << pool.head;
  for (const FindingRecord& finding : pool.findings) {
    if (shard.takes(finding.k)) file << to_line(finding);
  }
  std::string line;
  for (std::int64_t r = 0; r < ranges; ++r) {
    for (const auto& [subject, stamps] : pool.stamps) {
      const Stamp& stamp = stamps[static_cast<std::size_t>(r * 7 + shard.index * 3) % stamps.size()];
      line = stamp.before;
      fmt::format_to(std::back_inserter(line), "\"first\":{},\"last\":{},", shard.count * batch_start(r),
                     shard.count * batch_start(r + 1));
      if (shard.count != 1) fmt::format_to(std::back_inserter(line), "\"shard\":[{},{}],", shard.index, shard.count);
      file << (line += stamp.after);
    }
  }
  file << to_line(MetaRecord{"end", {}});
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
    const std::int64_t lines_a_range = static_cast<std::int64_t>(pool.stamps.size()) * shards;
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
