#include "html.h"

#include <fmt/format.h>

#include <random>

#include "drawn_html.h"
#include "html_elements.h"
#include "html_sections.h"
#include "html_style.h"
#include "plots.h"
#include "self_test_report.h"
#include "tolerance.h"

namespace attest {
namespace {

/// What the content-security-policy lets run: nobody can have written it into a name beforehand.
std::string fresh_nonce() {
  std::random_device source;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return nonce;
}

}  // namespace

std::string html_page(const Summary& summary, const Journal& journal, const std::string& folder) {
  const std::string drawn = drawn_html(summary);
  const std::string nonce = fresh_nonce(), plots = plots_html(summary), scripts = plots_script(summary, nonce);
  // Vega compiles the expressions of its specifications, which are the program's own.
  const std::string may_run = scripts.empty() ? "" : fmt::format("; script-src 'nonce-{}' 'unsafe-eval'", nonce);
  const std::string tolerances = tolerances_html(tolerance_rows(summary, journal), summary);
  const std::string self_test = self_test_html(folder);
  const auto part = [](std::string_view title, std::string_view note, const std::string& body) {
    return fmt::format("<section><h2>{}</h2>{}{}</section>\n", title,
                       note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", note), body);
  };
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'{}\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
             "content=\"light dark\">\n"
             "<title>Attest: {}</title>\n<style>{}</style></head>\n<body><main>\n<header><h1>Attest "
             "report</h1>{}</header>\n",
             may_run, name_of(summary.verdict), html_style, headline_html(summary)) +
         part("Verdicts",
              "Below each verdict: the worst utilisation, error over the proved allowed error. At most 1 is held.",
              verdicts_html(summary)) +
         (tolerances.empty() ? std::string() : part("Tolerances", "", tolerances)) +
         (plots.empty() ? std::string() : part("Plots", "", plots)) +
         part("Findings", "", findings_html(summary, folder)) +
         (summary.alarm > 0 ? part("Alarm",
                                   "Beyond the bound that holds if rounding errors of sums are random. Worth a look, "
                                   "and no verdict. Worst: error over that bound.",
                                   alarm_html(summary, folder))
                            : std::string()) +
         part("By kernel",
              "Skipped: the manifest rules the case out. Excused: outside the domain of definition, or the bound says "
              "nothing; never counted "
              "as held. p99 and p50: quantiles of utilisation over judged cases, as upper bounds.",
              kernels_html(summary)) +
         part("Worst known cases", "A lower bound on the true worst error: the worst that these cases showed.",
              worst_cases_html(summary, folder)) +
         (self_test.empty() ? std::string() : part("Search", "", self_test)) +
         part("Oracle", "How deep the certified answer had to go to decide each judged case.", oracle_html(summary)) +
         (journal.proofs.empty()
              ? std::string()
              : part("Proofs",
                     "What was established over the real numbers, by property, the strongest first. Each line is about "
                     "its own subject; none is about rounding.",
                     proofs_html(journal))) +
         (drawn.empty() ? std::string()
                        : part("What was drawn",
                               "Judged cases by how they were made, a case counted for every kernel that was judged on "
                               "it; skipped, excused and inconclusive ones are not counted.",
                               drawn)) +
         part("Environment", "", environment_html(summary, journal)) + "</main>\n" + scripts + "</body></html>\n";
}

}  // namespace attest
