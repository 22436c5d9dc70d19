#include "reports/results/saved_journal.h"

#include "reports/results/explanations.h"
#include "reports/run/journal_rules.h"

namespace attest {

Journal read_results(const std::filesystem::path& folder) {
  const std::filesystem::path folders[] = {folder};
  MergedJournals merged = merge_journals(folders, journal_rules());
  Journal& journal = merged.journal;
  journal.meta = std::move(merged.parts[0].meta);
  journal.notes = std::move(merged.parts[0].notes);
  drop_overtaken(journal.meta);
  return journal;
}

}  // namespace attest
