#include "html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "drawn_html.h"
#include "html_style.h"
#include "plots.h"
#include "progress.h"
#include "run_folder.h"
#include "self_test_report.h"
#include "text.h"
#include "tolerance.h"
#include "version.h"

namespace attest {
namespace {

std::string_view sign_of(Outcome outcome) {
  // A sign beside the colour: for print, and for eyes that see no red.
  switch (outcome) {
    case Outcome::held:
      return "✓";
    case Outcome::violated:
      return "✗";
    case Outcome::inconclusive:
      return "?";
    case Outcome::skipped:
    case Outcome::excused:
      return "–";
  }
  return "";
}

std::string badge(Outcome outcome) {
  return fmt::format("<span class=\"badge {0}\"><span aria-hidden=\"true\">{1}</span> {0}</span>", name_of(outcome),
                     sign_of(outcome));
}

std::string worst_text(const Tally& tally) {
  return tally.worst_k < 0 ? "–" : short_number(tally.worst_utilisation);
}

std::string quantile_text(const Tally& tally, double fraction) {
  if (tally.judged() == 0) return "–";
  const double bound = tally.quantile(fraction);
  return bound == 0.0 ? "0" : fmt::format("≤ {}", short_number(bound));
}

std::string anchor(const KernelSummary& kernel) {
  std::string id = "k";
  for (const char c : kernel.id + "-" + kernel.dtype) id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return id;
}

/// Kernels down, dtypes across.
std::string verdict_strip(const Summary& summary) {
  std::vector<std::string> dtypes, ids;
  std::map<std::pair<std::string, std::string>, const KernelSummary*> cells;
  for (const KernelSummary& kernel : summary.kernels) {
    if (std::ranges::find(dtypes, kernel.dtype) == dtypes.end()) dtypes.push_back(kernel.dtype);
    if (std::ranges::find(ids, kernel.id) == ids.end()) ids.push_back(kernel.id);
    cells[{kernel.id, kernel.dtype}] = &kernel;
  }
  const auto rank = [](const std::string& name) {
    return static_cast<int>(dtype_named(name).value_or(DType::boolean));
  };
  std::ranges::sort(dtypes, {}, rank);
  std::string html =
      "<div class=\"scroll\"><table class=\"strip\"><caption>Verdict and worst utilisation by kernel and "
      "dtype</caption>"
      "<thead><tr><th scope=\"col\">kernel</th>";
  for (const std::string& dtype : dtypes) html += fmt::format("<th scope=\"col\">{}</th>", escaped(dtype));
  html += "</tr></thead><tbody>";
  for (const std::string& id : ids) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(id));
    for (const std::string& dtype : dtypes) {
      const auto cell = cells.find({id, dtype});
      if (cell == cells.end()) {
        html += "<td class=\"none\">not offered</td>";
        continue;
      }
      const KernelSummary& kernel = *cell->second;
      const PropertySummary* worst = kernel.worst();
      html += fmt::format("<td><a href=\"#{}\">{}</a><br><span class=\"figure\">{}</span></td>", anchor(kernel),
                          badge(kernel.verdict), worst == nullptr ? "–" : short_number(worst->tally.worst_utilisation));
    }
    html += "</tr>";
  }
  for (const KernelRecord& kernel : summary.not_started) {
    html += fmt::format("<tr><th scope=\"row\">{}</th><td colspan=\"{}\">{} {}</td></tr>", escaped(kernel.id),
                        std::max<std::size_t>(dtypes.size(), 1), badge(Outcome::skipped), escaped(kernel.not_started));
  }
  return html + "</tbody></table></div>";
}

/// Utilisation of the judged cases of a kernel in a dtype, 64 quarter-octave bins, with the line at 1.
std::string histogram(const Tally& tally, const std::string& title) {
  constexpr int bar = 8, height = 90, limit_bin = 56;
  const std::int64_t most = *std::ranges::max_element(tally.histogram);
  if (most == 0) return {};
  const int width = bar * static_cast<int>(tally.histogram.size());
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>", width,
                                height + 22, escaped(title), escaped(title));
  for (std::size_t i = 0; i < tally.histogram.size(); ++i) {
    const std::int64_t count = tally.histogram[i];
    if (count == 0) continue;
    // Square root: a single case beside thousands must still be seen.
    const double tall = std::max(2.0, height * std::sqrt(static_cast<double>(count) / static_cast<double>(most)));
    const double edge = std::exp2((static_cast<double>(i) - limit_bin) / 4);
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}{}: {} cases</title></rect>",
        i >= limit_bin ? "over" : "bar", bar * static_cast<int>(i), height - tall, bar - 1, tall,
        i == 0 ? "up to " : "from ", i == 0 ? "8e-05" : short_number(edge), count);
  }
  svg += fmt::format("<line class=\"limit\" x1=\"{0}\" x2=\"{0}\" y1=\"0\" y2=\"{1}\"/>", limit_bin * bar, height);
  svg += fmt::format("<line class=\"axis\" x1=\"0\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", width, height, height);
  for (const auto& [bin, label] :
       {std::pair{0, "0"}, std::pair{16, "0.001"}, std::pair{29, "0.01"}, std::pair{43, "0.1"}, std::pair{56, "1"}}) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", bin * bar, height + 16,
                       bin == 0 ? "start" : "middle", label);
  }
  return svg + "</svg>";
}

std::string reasons_list(const Tally& tally) {
  if (tally.reasons.empty()) return {};
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  sorted.reserve(tally.reasons.size());
  for (const auto& [reason, count] : tally.reasons) sorted.emplace_back(-count, reason);
  std::ranges::sort(sorted);
  constexpr std::size_t shown = 12;
  std::string html = "<ul class=\"reasons\">";
  for (std::size_t i = 0; i < std::min(sorted.size(), shown); ++i) {
    html += fmt::format("<li>{} × {}</li>", -sorted[i].first, escaped(sorted[i].second));
  }
  if (sorted.size() > shown) html += fmt::format("<li>and {} further reasons</li>", sorted.size() - shown);
  return html + "</ul>";
}

std::string kernel_section(const KernelSummary& kernel) {
  // Properties that compare bits have no utilisation: beside the others their zeros would be a wall.
  Tally all, measured;
  for (const PropertySummary& property : kernel.properties) {
    all.merge(property.tally);
    if (property.tally.worst_utilisation > 0.0) measured.merge(property.tally);
  }
  std::string html = fmt::format("<section id=\"{}\"><h3>{} <span class=\"dtype\">{}</span> {}</h3>", anchor(kernel),
                                 escaped(kernel.name), escaped(kernel.dtype), badge(kernel.verdict));
  if (kernel.name != kernel.id) html += fmt::format("<p class=\"note\"><code>{}</code></p>", escaped(kernel.id));
  html += "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">property</th><th scope=\"col\">verdict</th>";
  for (const char* heading :
       {"cases", "held", "violated", "skipped", "excused", "inconclusive", "worst", "p99", "p50"}) {
    html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", heading);
  }
  html += "</tr></thead><tbody>";
  for (const PropertySummary& property : kernel.properties) {
    const Tally& tally = property.tally;
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", escaped(property.name), badge(property.verdict));
    for (const std::int64_t count :
         {tally.cases(), tally.held, tally.violated, tally.skipped, tally.excused, tally.inconclusive}) {
      html += fmt::format("<td class=\"number\">{}</td>", count);
    }
    html += fmt::format("<td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                        worst_text(tally), quantile_text(tally, 0.99), quantile_text(tally, 0.5));
  }
  html += "</tbody></table></div>" + unclaimed_bits_html(kernel);
  if (const std::string plot = histogram(measured, fmt::format("Utilisation of {} in {}, {} judged cases", kernel.name,
                                                               kernel.dtype, measured.judged()));
      !plot.empty()) {
    html += "<figure>" + plot +
            "<figcaption>Utilisation: error over allowed error, by judged case (heights as square roots). Right of the "
            "line is violated.</figcaption></figure>";
  }
  if (!all.reasons.empty())
    html += "<details><summary>Why cases were not judged</summary>" + reasons_list(all) + "</details>";
  return html + "</section>";
}

std::string replay_line(const std::string& folder, const std::string& case_file) {
  return command_name() + " replay " + shell_quoted(folder.empty() ? case_file : folder + "/" + case_file);
}

std::string findings_section(const Summary& summary, const std::string& folder) {
  std::string html;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      const bool violated = property.verdict == Outcome::violated;
      if (!violated && property.findings.empty()) continue;
      html += fmt::format("<article><h3>{} <span class=\"dtype\">{}</span> {} {}</h3><p>{} of {} cases.</p>",
                          escaped(kernel.name), escaped(kernel.dtype), violated ? "violates" : "is undecided for",
                          escaped(property.name), violated ? property.tally.violated : property.tally.inconclusive,
                          property.tally.cases());
      for (const FindingRecord& finding : property.findings) {
        html +=
            fmt::format("<div class=\"finding\"><p><b>Case {}</b>, {}, utilisation {}</p><p>{}</p><pre>{}</pre></div>",
                        finding.k, escaped(std::string(finding.kind())), short_number(finding.verdict.utilisation),
                        escaped(finding.verdict.reason), escaped(replay_line(folder, finding.case_file)));
      }
      html += "</article>";
    }
    for (const KernelExplanation& one : kernel.explanations)
      html += fmt::format("<p class=\"explanation\"><b>{} <span class=\"dtype\">{}</span></b>: {}.</p>",
                          escaped(kernel.name), escaped(kernel.dtype), escaped(one.text));
  }
  return html.empty() ? "<p>None.</p>" : html;
}

std::string worst_cases(const Summary& summary, const std::string& folder) {
  std::string rows;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.worst_case.empty() || property.tally.worst_utilisation == 0.0) continue;
      rows += fmt::format(
          "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td "
          "class=\"number\">{}</td><td><code>{}</code></td></tr>",
          escaped(kernel.name), escaped(kernel.dtype), escaped(property.name), worst_text(property.tally),
          escaped(replay_line(folder, property.worst_case)));
    }
  }
  if (rows.empty()) return "<p>None was judged.</p>";
  return "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">kernel</th><th scope=\"col\">dtype</th><th "
         "scope=\"col\">property</th>"
         "<th scope=\"col\" class=\"number\">utilisation</th><th scope=\"col\">replay</th></tr></thead><tbody>" +
         rows + "</tbody></table></div>";
}

std::string oracle_section(const Summary& summary) {
  Tally all;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) all.merge(property.tally);
  }
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">deepest level</th><th scope=\"col\" "
      "class=\"number\">cases</th></tr></thead><tbody>";
  constexpr std::string_view names[] = {"none: no number was judged", "double with a certificate", "double-double",
                                        "Arb balls"};
  for (std::size_t level = 0; level < all.level.size(); ++level) {
    html +=
        fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td></tr>", names[level], all.level[level]);
  }
  html += fmt::format("<tr><th scope=\"row\">undecided at the last level</th><td class=\"number\">{}</td></tr>",
                      all.inconclusive);
  return html + "</tbody></table></div>";
}

std::string alarm_section(const Summary& summary, const std::string& folder) {
  const Alarm all = summary.alarms();
  std::string html = fmt::format(
      "<p>{} of {} elements lie beyond the probabilistic bound. At p = {} at most {} are expected of correct kernels; "
      "{} more elements are not covered: equal keys or truncated sums, where rounding errors are not random.</p>",
      all.beyond, all.elements, short_number(summary.alarm), short_number(summary.false_alarms_expected()),
      all.uncovered);
  std::string rows;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (!property.tally.alarm) continue;
      const AlarmTally& alarm = *property.tally.alarm;
      rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", escaped(kernel.name),
                          escaped(kernel.dtype), escaped(property.name));
      for (const std::int64_t count : {alarm.all.elements, alarm.all.uncovered, alarm.all.beyond, alarm.cases})
        rows += fmt::format("<td class=\"number\">{}</td>", count);
      rows += fmt::format("<td class=\"number\">{}</td><td>{}</td></tr>",
                          alarm.worst_k < 0 ? "–" : short_number(alarm.all.worst),
                          property.alarm_case.empty()
                              ? ""
                              : "<code>" + escaped(replay_line(folder, property.alarm_case) + " --alarm") + "</code>");
    }
  }
  if (rows.empty()) return html;
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (const char* heading : {"kernel", "dtype", "property"}) html += fmt::format("<th scope=\"col\">{}</th>", heading);
  for (const char* heading : {"elements", "not covered", "beyond", "cases", "worst"})
    html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", heading);
  return html + "<th scope=\"col\">replay</th></tr></thead><tbody>" + rows + "</tbody></table></div>";
}

std::string environment_section(const Summary& summary, const Journal& journal) {
  std::map<std::string, std::set<std::string>> facts;
  for (const MetaRecord& meta : journal.meta) {
    if (meta.event != "begin" && meta.event != "end") continue;
    for (const auto& [name, fact] : meta.facts)
      facts[meta.event == "end" && name == "time" ? "end" : name].insert(fact);
  }
  std::string html = fmt::format("<dl><dt>seed</dt><dd>{}</dd>", summary.seed);
  for (const auto& [name, values] : facts) {
    html += fmt::format("<dt>{}</dt>", escaped(name));
    for (const std::string& value : values) html += fmt::format("<dd>{}</dd>", escaped(value));
  }
  if (journal.run && !journal.run->case_files.empty()) {
    html += "<dt>case files</dt>";
    for (const std::string& file : journal.run->case_files) html += fmt::format("<dd>{}</dd>", escaped(file));
  }
  html += fmt::format("<dt>written by</dt><dd>attest {}</dd></dl>", escaped(version()));
  for (const KernelRecord& kernel : journal.kernels) {
    if (kernel.manifest.empty()) continue;
    html += fmt::format("<details><summary>manifest of {}</summary><pre>{}</pre></details>", escaped(kernel.id),
                        escaped(kernel.manifest));
  }
  return html;
}

std::string headline(const Summary& summary) {
  std::int64_t judged = 0, excused = 0;
  for (const KernelSummary& kernel : summary.kernels) {
    excused += kernel.excused();
    for (const PropertySummary& property : kernel.properties) judged += property.tally.judged();
  }
  std::string html =
      fmt::format("<p class=\"headline\">{} {} cases, {} judged, {} excused, on {} kernels × dtypes.</p>",
                  badge(summary.verdict), summary.cases(), judged, excused, summary.kernels.size());
  if (!summary.against.empty()) {
    html += fmt::format(
        "<p>Every kernel is compared with <code>{}</code> on the same cases: violated is where they differ by more "
        "than "
        "both are allowed. Which of the two is wrong, a run without <code>--against</code> tells.</p>",
        escaped(summary.against));
  }
  if (!summary.scarce.empty()) {
    html +=
        "<p class=\"warning\">Some properties were judged on too few cases of the kind that they are about: see <a "
        "href=\"#drawn\">what was drawn</a>.</p>";
  }
  for (const KernelNote& note : summary.notes)
    html += fmt::format("<p class=\"warning\">Note on {}: {}.</p>", escaped(note.kernel), escaped(note.text));
  if (summary.interrupted)
    html += "<p class=\"warning\">This run was interrupted: the figures are of the batches that were finished.</p>";
  if (summary.unfinished) {
    html +=
        "<p class=\"warning\">This run has not come to its end: the figures are of the batches that were finished.</p>";
  }
  return html;
}

std::string proofs_section(const Journal& journal) {
  constexpr std::array<std::string_view, 9> strongest_first{"DIFFERENT",  "coq-all-shapes", "symbolic",
                                                            "particular", "probabilistic",  "abstract",
                                                            "refuted",    "tested",         "untreated"};
  const auto rank = [&](const ProofRecord& proof) {
    return std::tuple(proof.property, std::ranges::find(strongest_first, proof.level) - strongest_first.begin(),
                      proof.subject, proof.words);
  };
  std::vector<ProofRecord> proofs = journal.proofs;
  std::ranges::sort(proofs, {}, rank);
  std::string rows;
  std::string_view last;
  for (const ProofRecord& proof : proofs) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        proof.property == last ? "" : escaped(proof.property), escaped(proof.level),
                        escaped(proof.subject), escaped(proof.words));
    last = proof.property;
  }
  return "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">property</th><th scope=\"col\">evidence</th><th "
         "scope=\"col\">about</th><th scope=\"col\">words</th></tr>"
         "</thead><tbody>" +
         rows + "</tbody></table></div>";
}

/// What the content-security-policy lets run: nobody can have written it into a name beforehand.
std::string fresh_nonce() {
  std::random_device source;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += fmt::format("{:08x}", static_cast<std::uint32_t>(source()));
  return nonce;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          html += "\xEF\xBF\xBD";
        } else {
          html += c;
        }
    }
  }
  return html;
}

std::string html_page(const Summary& summary, const Journal& journal, const std::string& folder) {
  std::string kernels;
  for (const KernelSummary& kernel : summary.kernels) kernels += kernel_section(kernel);
  if (kernels.empty()) kernels = "<p>No kernel was checked.</p>";
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
             may_run, name_of(summary.verdict), html_style, headline(summary)) +
         part("Verdicts",
              "Below each verdict: the worst utilisation, error over the proved allowed error. At most 1 is held.",
              verdict_strip(summary)) +
         (tolerances.empty() ? std::string() : part("Tolerances", "", tolerances)) +
         (plots.empty() ? std::string() : part("Plots", "", plots)) +
         part("Findings", "", findings_section(summary, folder)) +
         (summary.alarm > 0 ? part("Alarm",
                                   "Beyond the bound that holds if rounding errors of sums are random. Worth a look, "
                                   "and no verdict. Worst: error over that bound.",
                                   alarm_section(summary, folder))
                            : std::string()) +
         part("By kernel",
              "Skipped: the manifest rules the case out. Excused: outside the domain of definition, or the bound says "
              "nothing; never counted "
              "as held. p99 and p50: quantiles of utilisation over judged cases, as upper bounds.",
              kernels) +
         part("Worst known cases", "A lower bound on the true worst error: the worst that these cases showed.",
              worst_cases(summary, folder)) +
         (self_test.empty() ? std::string() : part("Search", "", self_test)) +
         part("Oracle", "How deep the certified answer had to go to decide each judged case.",
              oracle_section(summary)) +
         (journal.proofs.empty()
              ? std::string()
              : part("Proofs",
                     "What was established over the real numbers, by property, the strongest first. Each line is about "
                     "its own subject; none is about rounding.",
                     proofs_section(journal))) +
         (drawn.empty() ? std::string()
                        : part("What was drawn",
                               "Judged cases by how they were made, a case counted for every kernel that was judged on "
                               "it; skipped, excused and inconclusive ones are not counted.",
                               drawn)) +
         part("Environment", "", environment_section(summary, journal)) + "</main>\n" + scripts + "</body></html>\n";
}

}  // namespace attest
