#include "reports/sections/drawn_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/measure/bit_classes.h"
#include "properties/generators/recipe.h"
#include "reports/page/html_elements.h"

namespace attest {
namespace {

std::string row_of(const std::string& name, std::int64_t cases, std::int64_t judged) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                     escaped(name), cases, judged == 0 ? "–" : share_text(cases, judged));
}

/// Groups and kinds in the generators' order, then what this version does not know.
using Groups = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_word(Groups& groups, const std::string& word) {
  const std::size_t colon = word.find(':');
  const std::string group = word.substr(0, colon), kind = word.substr(std::min(colon, word.size() - 1) + 1);
  auto found = std::ranges::find(groups, group, &Groups::value_type::first);
  if (found == groups.end()) found = groups.insert(groups.end(), {group, {}});
  if (std::ranges::find(found->second, kind) == found->second.end()) found->second.push_back(kind);
}

bool draws_any(const DrawnCounts& counts, std::string_view group) {
  return std::ranges::any_of(counts, [&](const auto& one) { return one.first.starts_with(group); });
}

Groups groups_of(const DrawnCounts& counts) {
  Groups groups;
  for (const Operation operation : {Operation::attention, Operation::multihead}) {
    if (!draws_any(counts, operation == Operation::attention ? "scores:" : "matrices:")) continue;
    for (const std::string& word : all_kinds(operation)) add_word(groups, word);
  }
  for (const auto& [word, cases] : counts) {
    if (!word.starts_with("bits:")) add_word(groups, word);
  }
  return groups;
}

std::string kinds_tables(const DrawnTotals::Part& run) {
  std::string html = "<div class=\"tables\">";
  for (const auto& [group, kinds] : groups_of(run.counts)) {
    html += fmt::format(
        "<table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"number\">cases</th><th scope=\"col\" "
        "class=\"number\">share</th></tr></thead><tbody>",
        escaped(group));
    std::int64_t all = 0;
    std::vector<std::int64_t> cases;
    for (const std::string& kind : kinds) {
      const auto found = run.counts.find(fmt::format("{}:{}", group, kind));
      cases.push_back(found == run.counts.end() ? 0 : found->second);
      all += cases.back();
    }
    // A group of one word is there or is not: its share is of all cases.
    if (kinds.size() == 1) all = run.judged;
    for (std::size_t i = 0; i < kinds.size(); ++i) html += row_of(kinds[i], cases[i], all);
    html += "</tbody></table>";
  }
  return html + "</div>";
}

std::string bits_table(const DrawnTotals& totals, const std::vector<std::string>& dtypes) {
  std::string html =
      "<div class=\"scroll\"><table><caption>Judged cases with such a number in what the kernel was sent as q, k and "
      "v</caption><thead><tr><th scope=\"col\">bits</th>";
  for (const std::string& dtype : dtypes)
    html += fmt::format("<th scope=\"col\" class=\"number\">{}</th>", escaped(dtype));
  html += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < static_cast<std::size_t>(BitClass::count); ++i) {
    const std::string_view name = name_of(static_cast<BitClass>(i));
    html += fmt::format("<tr><th scope=\"row\">{}</th>", name);
    for (const std::string& dtype : dtypes) {
      const DrawnTotals::Part& part = totals.by_dtype.at(dtype);
      const auto found = part.counts.find(fmt::format("bits:{}", name));
      const std::int64_t cases = found == part.counts.end() ? 0 : found->second;
      html += fmt::format("<td class=\"number\">{} ({})</td>", cases,
                          share_text(cases, std::max<std::int64_t>(part.judged, 1)));
    }
    html += "</tr>";
  }
  html += "<tr><th scope=\"row\">all judged cases</th>";
  for (const std::string& dtype : dtypes)
    html += fmt::format("<td class=\"number\">{}</td>", totals.by_dtype.at(dtype).judged);
  return html + "</tr></tbody></table></div>";
}

std::string scarce_table(const Summary& summary) {
  if (summary.scarce.empty()) return {};
  std::string html =
      "<p class=\"warning\">Too few judged cases had what these properties are about: that they held says little.</p>"
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">property</th><th scope=\"col\">kernel</th><th "
      "scope=\"col\">dtype</th><th scope=\"col\">cases with</th><th scope=\"col\" class=\"number\">judged</th><th "
      "scope=\"col\" class=\"number\">of</th><th scope=\"col\" class=\"number\">enough</th></tr></thead><tbody>";
  for (const Scarce& one : summary.scarce) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
        escaped(one.property), escaped(one.kernel), escaped(one.dtype),
        escaped(one.what) + (one.ruled_out ? " (ruled out by the manifest)" : ""), one.cases, one.judged, one.enough);
  }
  return html + "</tbody></table></div>";
}

}  // namespace

std::string drawn_html(const Summary& summary) {
  const DrawnTotals totals = summary.drawn();
  if (totals.run.counts.empty()) return {};
  std::vector<std::string> dtypes;
  for (const KernelSummary& kernel : summary.kernels) {
    if (totals.by_dtype.contains(kernel.dtype) && std::ranges::find(dtypes, kernel.dtype) == dtypes.end())
      dtypes.push_back(kernel.dtype);
  }
  std::ranges::sort(dtypes, {}, [](const std::string& name) { return named<DType>(name).value_or(DType::boolean); });
  return scarce_table(summary) + kinds_tables(totals.run) + bits_table(totals, dtypes);
}

std::string unclaimed_bits_html(const KernelSummary& kernel) {
  if (kernel.bits_compared() == 0) return {};
  std::string html =
      "<div class=\"scroll\"><table class=\"bits\"><caption>Laws about bits that the kernel does not claim: reported, "
      "never judged</caption><tbody>";
  for (const PropertySummary& property : kernel.properties) {
    if (property.tally.bits_compared == 0) continue;
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}, not claimed</td></tr>", escaped(property.name),
                        bits_text(property.tally));
  }
  return html + "</tbody></table></div>";
}

}  // namespace attest
