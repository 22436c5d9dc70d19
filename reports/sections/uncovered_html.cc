#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"
#include "reports/page/html_elements.h"
#include "reports/sections/html_sections.h"

namespace attest {
namespace {

std::string entry(std::string_view what, const std::string& body) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>", what, body);
}

std::string joined(const std::set<std::string>& words) {
  std::string html;
  for (const std::string& word : words) html += (html.empty() ? "" : ", ") + escaped(word);
  return html;
}

/// As joined; a long list is folded.
std::string list(const std::set<std::string>& words, std::string_view of_what) {
  constexpr std::size_t open = 12;
  if (words.size() <= open) return joined(words);
  return fmt::format("<details><summary>{} {}</summary>{}</details>", words.size(), of_what, joined(words));
}

/// Properties none of whose cases was judged, by the reason, with where that was.
std::string unjudged(const Summary& summary) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> by_reason;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties) {
      if (property.tally.judged() == 0)
        by_reason[property.reason][property.name].insert(kernel.name + " " + kernel.dtype);
    }
  }
  std::string rows;
  for (const auto& [reason, properties] : by_reason) {
    for (const auto& [property, kernels] : properties) {
      rows += fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>", tags("", property, ""),
                          escaped(property), list(kernels, "kernels × dtypes"), escaped(reason));
    }
  }
  if (rows.empty()) return {};
  return table_html("Properties of which no case was judged", {{"property"}, {"kernels"}, {"why"}}, rows);
}

/// Kinds of cases that the generators know and no judged case was of.
std::set<std::string> never_drawn(const DrawnCounts& counts) {
  std::set<std::string> never;
  for (const Operation operation : {Operation::attention, Operation::multihead}) {
    const std::string_view first = operation == Operation::attention ? "scores:" : "matrices:";
    if (std::ranges::none_of(counts, [&](const auto& one) { return one.first.starts_with(first); })) continue;
    for (const std::string& word : all_kinds(operation))
      if (!counts.contains(word)) never.insert(word);
  }
  return never;
}

}  // namespace

std::string uncovered_html(const Summary& summary) {
  std::string facts;
  for (const KernelRecord& kernel : summary.not_started)
    facts += entry("not started", fmt::format("{}: {}", escaped(kernel.id), escaped(kernel.not_started)));
  const std::vector<std::string> none = summary.judged_by_none();
  if (!none.empty())
    facts += entry("judged on no kernel", list(std::set<std::string>(none.begin(), none.end()), "properties"));
  std::set<std::string> asked, left_out;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) asked.insert(property.name);
  for (const Property* property : catalogue())
    if (!asked.contains(std::string(property->name))) left_out.insert(std::string(property->name));
  if (!left_out.empty()) facts += entry("not asked", list(left_out, "properties of the catalogue"));
  const std::set<std::string> never = never_drawn(summary.drawn().run.counts);
  if (!never.empty()) facts += entry("never drawn", list(never, "kinds of cases"));
  if (!summary.scarce.empty()) {
    facts +=
        entry("too few cases", fmt::format("{} properties × kernels × dtypes were judged on too few cases of the kind "
                                           "that they are about: see <a href=\"#drawn\">what was drawn</a>",
                                           summary.scarce.size()));
  }
  std::map<std::string, std::int64_t> reasons;
  for (const KernelSummary& kernel : summary.kernels) {
    for (const PropertySummary& property : kernel.properties)
      for (const auto& [reason, cases] : property.tally.reasons) reasons[reason] += cases;
  }
  std::vector<std::pair<std::int64_t, std::string>> commonest;
  commonest.reserve(reasons.size());
  for (const auto& [reason, cases] : reasons) commonest.emplace_back(-cases, reason);
  std::ranges::sort(commonest);
  constexpr std::size_t shown = 12;
  std::string rows;
  for (std::size_t i = 0; i < std::min(shown, commonest.size()); ++i)
    rows += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>", escaped(commonest[i].second),
                        number_cell(-commonest[i].first));
  std::string html = facts.empty() ? "" : "<dl>" + facts + "</dl>";
  html += unjudged(summary);
  if (!rows.empty()) {
    html += table_html(
        commonest.size() > shown
            ? fmt::format("Why cases were not judged: the {} commonest of {} reasons", shown, commonest.size())
            : std::string("Why cases were not judged"),
        {{"reason"}, {"cases", true}}, rows);
  }
  return html +
         "<p class=\"note\">No run covers the backward pass, dropout, softcap, sliding windows, attention sinks and "
         "paged "
         "keys. What held here held on these inputs; only what is proved holds on all.</p>";
}

}  // namespace attest
