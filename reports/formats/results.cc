#include "reports/formats/results.h"

#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "reports/formats/html.h"
#include "reports/formats/summary_markdown.h"
#include "reports/results/cause_words.h"
#include "reports/results/tolerance.h"

namespace attest {
namespace {

/// What a program is told of what follows from the verdicts.
std::string concluded_json(const Conclusion& conclusion) {
  JsonWriter json;
  json.begin_object().member("exit_status", conclusion.exit_status).member("headline", conclusion.headline);
  json.key("problems").begin_array();
  for (const std::string& problem : conclusion.problems) json.value(problem);
  json.end_array().key("worse").begin_array();
  if (conclusion.changes) {
    for (const Difference& one : conclusion.changes->differences) {
      if (one.direction != Direction::worse) continue;
      json.begin_object().member("kernel", one.kernel).member("dtype", one.dtype).member("property", one.property);
      json.member("words", line_of(one)).end_object();
    }
  }
  return json.end_array().end_object().text();
}

}  // namespace

void write_results(const std::filesystem::path& folder, const Journal& journal, const Summary& summary,
                   const Conclusion& conclusion) {
  const Folder files(folder);
  files.write("summary.json",
              to_json(summary, words_of_causes(summary, folder.string(), folder.string()), concluded_json(conclusion)));
  files.write("summary.md", to_markdown(summary, journal, folder.string(), conclusion));
  files.write("tolerances.json", tolerances_json(tolerance_rows(summary, journal), summary, journal));
  files.write("report.html", html_page(summary, journal, folder.string(), conclusion));
}

}  // namespace attest
