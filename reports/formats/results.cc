#include "reports/formats/results.h"

#include "core/support/folder.h"
#include "reports/formats/html.h"
#include "reports/formats/summary_markdown.h"
#include "reports/results/cause_words.h"
#include "reports/results/tolerance.h"

namespace attest {

void write_results(const std::filesystem::path& folder, const Journal& journal, const Summary& summary,
                   const Conclusion& conclusion) {
  const Folder files(folder);
  files.write("summary.json", to_json(summary, words_of_causes(summary, folder.string(), folder.string())));
  files.write("summary.md", to_markdown(summary, journal, folder.string(), conclusion));
  files.write("tolerances.json", tolerances_json(tolerance_rows(summary, journal), summary, journal));
  files.write("report.html", html_page(summary, journal, folder.string(), conclusion));
}

}  // namespace attest
