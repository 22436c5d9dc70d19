#include "known_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "text.h"

namespace attest {

int status_with_known(const Options& options, const KnownComparison& comparison) {
  for (const std::string& problem : comparison.problems) fmt::print("{}\n", one_line(problem));
  if (!options.quiet) {
    for (const std::string& remark : comparison.remarks) fmt::print(stderr, "note: {}\n", one_line(remark));
    fmt::print("known: {} expected, {} new or gone ({})\n", comparison.expected, comparison.problems.size(),
               options.known.string());
  }
  return comparison.problems.empty() ? exit_status(comparison.rest, options.inconclusive_held) : 1;
}

bool is_whole(const MergedJournals& merged) {
  const auto stopped = [](const JournalPart& part) {
    // A canonical journal, of parts that were merged before, has no meta and does not say.
    return part.torn ||
           (!part.meta.empty() && (part.meta.back().event != "end" || part.meta.back().facts.contains("interrupted")));
  };
  if (std::ranges::any_of(merged.parts, stopped)) return false;
  std::set<Subject> subjects;
  for (const BatchRecord& batch : merged.journal.batches) {
    const bool first = subjects.insert(batch.subject).second;
    if (!first || batch.first_k != 0 || batch.shard != Shard{} || batch.last_k == 0) return false;
    if (batch.last_k != merged.journal.batches.front().last_k) return false;
  }
  return !subjects.empty();
}

}  // namespace attest
