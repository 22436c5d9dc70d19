#include <fmt/format.h>

#include <algorithm>

#include "properties/catalogue/property.h"
#include "reports/page/html_elements.h"
#include "reports/run/run_folder.h"
#include "reports/run/text.h"
#include "reports/sections/finding_card.h"
#include "reports/sections/html_sections.h"

namespace attest {
namespace {

/// Findings that are shown as cards; of the rest there is a line each, and of those behind them a count.
constexpr std::size_t most_cards = 60, most_lines = 600;

std::string statement_of(const std::string& name) {
  const auto property = std::ranges::find(catalogue(), name, &Property::name);
  return property == catalogue().end() ? std::string() : std::string((*property)->statement);
}

class Findings {
 public:
  /// `folder` of the run; empty: unknown.
  explicit Findings(const std::string& folder) : folder_(folder) {}

  void add(const KernelSummary& kernel, const PropertySummary& property) {
    const bool violated = property.verdict == Outcome::violated;
    if (!violated && property.findings.empty()) return;
    if (cards_ >= most_cards) return add_lines(kernel, property);
    const std::string statement = statement_of(property.name);
    html_ += fmt::format(
        "<article id=\"{}\"{}><h3>{} <span class=\"dtype\">{}</span> {} {}</h3>{}<p>{} of {} cases{}.</p>",
        anchor_of(kernel, property), tags(kernel_words(kernel), property.name, name_of(property.verdict)),
        escaped(kernel.name), escaped(kernel.dtype), violated ? "violates" : "is undecided for", escaped(property.name),
        statement.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", escaped(statement)),
        violated ? property.tally.violated : property.tally.inconclusive, property.tally.cases(),
        property.tally.worst_k < 0
            ? ""
            : fmt::format("; worst utilisation of the cases as drawn {}, of the saved ones below",
                          short_number(property.tally.worst_utilisation)));
    for (const FindingRecord& finding : property.findings) html_ += finding_card(finding, folder_);
    cards_ += property.findings.size();
    html_ += "</article>";
  }

  [[nodiscard]] std::string html() const {
    std::string html = html_;
    if (!lines_.empty()) {
      html += table_html("Further findings",
                         {{"kernel"}, {"dtype"}, {"property"}, {"class"}, {"utilisation, as saved", true}, {"replay"}},
                         lines_);
    }
    if (left_out_ > 0) html += fmt::format("<p>{} further findings are in summary.json and run.jsonl.</p>", left_out_);
    return html;
  }

 private:
  void add_lines(const KernelSummary& kernel, const PropertySummary& property) {
    for (std::size_t i = 0; i < property.findings.size(); ++i) {
      const FindingRecord& finding = property.findings[i];
      if (shown_lines_ >= most_lines) {
        ++left_out_;
        continue;
      }
      ++shown_lines_;
      lines_ += fmt::format("<tr{}{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>{}<td>{}</td></tr>",
                            i == 0 ? fmt::format(" id=\"{}\"", anchor_of(kernel, property)) : "",
                            tags(kernel_words(kernel), property.name, name_of(property.verdict)), escaped(kernel.name),
                            escaped(kernel.dtype), escaped(property.name), escaped(finding.kind()),
                            number_cell(short_number(finding.verdict.utilisation)),
                            folded_line(fmt::format("case {}", finding.k), replay_line(folder_, finding.case_file)));
    }
  }

  const std::string& folder_;
  std::string html_, lines_;
  std::size_t cards_ = 0, shown_lines_ = 0, left_out_ = 0;
};

}  // namespace

std::string findings_html(const Summary& summary, const std::string& folder) {
  Findings findings(folder);
  std::string explanations;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) findings.add(kernel, property);
    for (const KernelExplanation& one : kernel.explanations)
      explanations += fmt::format("<p class=\"explanation\"{}><b>{} <span class=\"dtype\">{}</span></b>: {}.</p>",
                                  tags(kernel_words(kernel), "", ""), escaped(kernel.name), escaped(kernel.dtype),
                                  escaped(one.text));
  }
  const std::string html = explanations + findings.html();
  return html.empty() ? "<p>None.</p>" : html;
}

}  // namespace attest
