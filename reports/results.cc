#include "results.h"

#include "attest/folder.h"
#include "html.h"
#include "journal_rules.h"
#include "summary_markdown.h"
#include "tolerance.h"

namespace attest {

Journal read_results(const std::filesystem::path& folder) {
  const std::filesystem::path folders[] = {folder};
  MergedJournals merged = merge_journals(folders, journal_rules());
  Journal& journal = merged.journal;
  journal.meta = std::move(merged.parts[0].meta);
  journal.notes = std::move(merged.parts[0].notes);
  drop_overtaken_explanations(journal.meta);
  return journal;
}

Summary write_results(const std::filesystem::path& folder, const Journal& journal, const Comparison* changes) {
  Summary summary = summarise(journal, folder);
  const Folder files(folder);
  files.write("summary.json", to_json(summary));
  files.write("summary.md", to_markdown(summary, journal, folder.string(), changes));
  files.write("tolerances.json", tolerances_json(tolerance_rows(summary, journal), summary, journal));
  files.write("report.html", html_page(summary, journal, folder.string(), changes));
  return summary;
}

}  // namespace attest
