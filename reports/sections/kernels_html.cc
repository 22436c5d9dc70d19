#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/page/html_elements.h"
#include "reports/results/reach_text.h"
#include "reports/run/text.h"
#include "reports/sections/drawn_html.h"
#include "reports/sections/html_sections.h"

namespace attest {
namespace {

std::string quantile_text(const Tally& tally, double fraction) {
  if (tally.judged() == 0) return "–";
  const double bound = tally.quantile(fraction);
  return bound == 0.0 ? "0" : fmt::format("≤ {}", short_number(bound));
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

/// `open`: without being asked.
std::string kernel_section(const KernelSummary& kernel, bool open) {
  // Properties that compare bits have no utilisation: beside the others their zeros would be a wall.
  Tally all, measured;
  for (const PropertySummary& property : kernel.properties) {
    all.merge(property.tally);
    if (property.tally.worst_utilisation > 0.0) measured.merge(property.tally);
  }
  std::string html = fmt::format(
      "<details class=\"kernel\" id=\"{}\"{}{}><summary><h3>{} <span class=\"dtype\">{}</span> {}</h3></summary>",
      anchor_of(kernel), tags(kernel_words(kernel), "", ""), open ? " open" : "", escaped(kernel.name),
      escaped(kernel.dtype), badge(kernel.verdict));
  if (kernel.name != kernel.id) html += fmt::format("<p class=\"note\"><code>{}</code></p>", escaped(kernel.id));
  if (const std::string reach = reach_text(kernel); !reach.empty())
    html += fmt::format("<p class=\"note\">Reach: {} ({}).</p>", reach, reach_explained);
  std::string rows;
  std::int64_t skipped = 0;
  for (const PropertySummary& property : kernel.properties) {
    const Tally& tally = property.tally;
    if (property.verdict == Outcome::skipped && tally.cases() > 0) {
      ++skipped;
      continue;
    }
    rows +=
        fmt::format("<tr{}><th scope=\"row\">{}</th><td>{}</td>", tags("", property.name, name_of(property.verdict)),
                    escaped(property.name), badge(property.verdict));
    for (const std::int64_t count :
         {tally.cases(), tally.held, tally.violated, tally.skipped, tally.excused, tally.inconclusive})
      rows += number_cell(count);
    const std::string reach = reach_text(tally);
    rows += number_cell(worst_text(tally)) + number_cell(quantile_text(tally, 0.99)) +
            number_cell(quantile_text(tally, 0.5)) + fmt::format("<td>{}</td></tr>", reach.empty() ? "–" : reach);
  }
  html += table_html(fmt::format("Properties of {} in {}", kernel.name, kernel.dtype),
                     {{"property"},
                      {"verdict"},
                      {"cases", true},
                      {"held", true},
                      {"violated", true},
                      {"skipped", true},
                      {"excused", true},
                      {"inconclusive", true},
                      {"worst", true},
                      {"p99", true},
                      {"p50", true},
                      {"reach"}},
                     rows, "plain");
  if (skipped > 0) {
    html += fmt::format(
        "<p class=\"note\">{} more {} all of whose cases were skipped: see <a href=\"#not-covered\">what was not "
        "covered</a>.</p>",
        skipped, skipped == 1 ? "property," : "properties,");
  }
  html += unclaimed_bits_html(kernel);
  if (const std::string plot = histogram(measured, fmt::format("Utilisation of {} in {}, {} judged cases", kernel.name,
                                                               kernel.dtype, measured.judged()));
      !plot.empty()) {
    html += "<figure>" + plot +
            "<figcaption>Utilisation: error over allowed error, by judged case (heights as square roots). Right of the "
            "line is violated.</figcaption></figure>";
  }
  if (!all.reasons.empty())
    html += "<details><summary>Why cases were not judged</summary>" + reasons_list(all) + "</details>";
  return html + "</details>";
}

}  // namespace

std::string kernels_html(const Summary& summary) {
  std::string html;
  // Of many nobody reads every table.
  constexpr std::size_t few = 6;
  for (const KernelSummary& kernel : summary.kernels) html += kernel_section(kernel, summary.kernels.size() <= few);
  return html.empty() ? "<p>No kernel was checked.</p>" : html;
}

}  // namespace attest
