#include "reports/formats/html.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "core/support/folder.h"
#include "reports/page/html_elements.h"
#include "reports/page/plots.h"
#include "reports/results/tolerance.h"
#include "reports/run/embedded_files.h"
#include "reports/sections/drawn_html.h"
#include "reports/sections/html_sections.h"
#include "reports/sections/self_test_report.h"

namespace attest {
namespace {

/// What the content-security-policy lets run: nobody can have written it into a name beforehand.
std::string fresh_nonce() {
  std::random_device source;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return nonce;
}

/// The ranges of a campaign's runs as they were finished; `journal`, which is canonical, has joined them.
std::vector<BatchRecord> campaign_of(const Journal& journal, const std::filesystem::path& folder) {
  const std::optional<Folder> files = Folder::if_there(folder);
  if (!journal.run || !journal.run->fuzz || !files || !files->holds("run.jsonl")) return {};
  // Whoever asks for the page has read it, and said what is wrong with it.
  Journal whole = read_journal(folder, {.salvage = true});
  // The folder of a journal under another name may hold a run that is another.
  return whole.run == journal.run ? std::move(whole.batches) : std::vector<BatchRecord>();
}

/// A section of the page; without a body it is left out.
struct Section {
  std::string_view id, title, note;
  std::string body;
};

}  // namespace

std::string html_page(const Summary& summary, const Journal& journal, const std::string& folder,
                      const Conclusion& conclusion) {
  const std::string nonce = fresh_nonce();
  const PagePlots plots = page_plots(summary, campaign_of(journal, folder), nonce);
  // Vega compiles the expressions of its specifications, which are the program's own.
  const std::string_view may_compile = plots.script.empty() ? "" : " 'unsafe-eval'";
  const std::vector<Section> sections{
      {"verdicts", "Verdicts", "", verdicts_html(summary, folder)},
      {"changes", "What changed", "", conclusion.changes ? changes_html(*conclusion.changes) : ""},
      {"tolerances", "Tolerances", "", tolerances_html(tolerance_rows(summary, journal), summary)},
      {"plots", "Plots", "", plots.html},
      {"findings", "Findings", "", findings_html(summary, folder)},
      {"alarms", "Alarm",
       "Beyond the bound that holds if rounding errors of sums are random. Worth a look, and no verdict. Worst: error "
       "over that bound.",
       summary.alarm > 0 ? alarm_html(summary, folder) : ""},
      {"evidence", "Evidence",
       "✓ held on so many cases, ✗ violated by so many, ? undecided; an empty cell was not asked, – not judged. Proofs "
       "are "
       "about the real numbers, never about rounding; what only held on cases is not proved.",
       evidence_html(summary, journal)},
      {"kernels", "By kernel",
       "Skipped: the manifest rules the case out. Excused: outside the domain of definition, or the bound says "
       "nothing; "
       "never counted as held. p99 and p50: quantiles of utilisation over judged cases, as upper bounds.",
       kernels_html(summary)},
      {"worst-cases", "Worst known cases", "A lower bound on the true worst error: the worst that these cases showed.",
       worst_cases_html(summary, folder)},
      {"search", "Search", "", self_test_html(folder)},
      {"oracle", "Oracle", "How deep the certified answer had to go to decide each judged case.", oracle_html(summary)},
      {"environment", "Environment",
       "How each number of this page is computed stands in numbers.md: in the project's reports/, of an installation "
       "in "
       "share/doc/attest/.",
       environment_html(summary, journal)},
      {"drawn", "What was drawn",
       "Judged cases by how they were made, a case counted for every kernel that was judged on it; skipped, excused "
       "and "
       "inconclusive ones are not counted.",
       drawn_html(summary)},
      {"not-covered", "Not covered", "", uncovered_html(summary)}};
  const bool proofs_alone = holds_proofs_alone(summary, journal);
  const std::string headline =
      proofs_alone ? fmt::format("<p class=\"headline\">{}. No kernel was run.</p>", escaped(proofs_text(journal)))
                   : headline_html(summary, conclusion);
  std::string body, links;
  for (const Section& section : sections) {
    // What is about kernels would say that none was judged.
    const bool about_kernels = section.id != "evidence" && section.id != "environment";
    if (section.body.empty() || (proofs_alone && about_kernels)) continue;
    links += fmt::format("<a href=\"#{}\">{}</a> ", section.id, section.title);
    body +=
        fmt::format("<section id=\"{}\"><h2>{}</h2>{}{}</section>\n", section.id, section.title,
                    section.note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", section.note), section.body);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'nonce-{}'{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Attest: {}</title>\n<style>{}</style></head>\n"
      "<body><main>\n<header><h1>Attest report</h1>{}</header>\n<nav aria-label=\"Sections\">{}</nav>\n{}</main>\n"
      "<script nonce=\"{}\">{}</script>\n{}"
      "</body></html>\n",
      nonce, may_compile, proofs_alone ? "proofs" : conclusion.headline, embedded_file("page/style.css"), headline,
      links, body, nonce, embedded_file("page/script.js"), plots.script);
}

}  // namespace attest
