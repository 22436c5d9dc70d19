#include "reports/page/html_elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/support/visible.h"
#include "reports/run/text.h"

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

/// An id of letters, digits and dashes.
std::string with_dashes(std::string_view name) {
  std::string id;
  for (const char c : name) id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return id;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : visible(text, "\uFFFD", "\n\t")) {
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
        html += c;
    }
  }
  return html;
}

std::string badge(Outcome outcome, std::string_view words) {
  return fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>", name_of(outcome),
                     sign_of(outcome), words.empty() ? name_of(outcome) : words);
}

std::string anchor_of(const KernelSummary& kernel) {
  return "k" + with_dashes(kernel.id + "-" + kernel.dtype);
}

std::string anchor_of(const KernelSummary& kernel, const PropertySummary& property) {
  return "f" + with_dashes(kernel.id + "-" + kernel.dtype + "-" + property.name);
}

std::string tags(std::string_view kernel, std::string_view property, std::string_view verdict) {
  std::string html;
  if (!kernel.empty()) html += fmt::format(" data-kernel=\"{}\"", escaped(kernel));
  if (!property.empty()) html += fmt::format(" data-property=\"{}\"", escaped(property));
  if (!verdict.empty()) html += fmt::format(" data-verdict=\"{}\"", escaped(verdict));
  return html;
}

std::string kernel_words(const KernelSummary& kernel) {
  return fmt::format("{}{} {}", kernel.name, kernel.id == kernel.name ? "" : " " + kernel.id, kernel.dtype);
}

namespace {

/// A row of headings over those of the columns; empty where no column has a group.
std::string groups_html(const std::vector<Column>& columns) {
  if (std::ranges::all_of(columns, [](const Column& column) { return column.group.empty(); })) return {};
  std::string html = "<tr>";
  for (std::size_t i = 0; i < columns.size();) {
    std::size_t behind = i + 1;
    while (behind < columns.size() && columns[behind].group == columns[i].group) ++behind;
    const std::size_t span = behind - i;
    html += columns[i].group.empty()
                ? fmt::format("<td colspan=\"{}\"></td>", span)
                : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>", span, escaped(columns[i].group));
    i = behind;
  }
  return html + "</tr>";
}

}  // namespace

std::string table_html(std::string_view caption, const std::vector<Column>& columns, const std::string& rows,
                       std::string_view kind) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table class=\"sortable{}{}\">",
      escaped(caption), kind.empty() ? "" : " ", kind);
  html += fmt::format("<caption>{}</caption><thead>{}<tr>", escaped(caption), groups_html(columns));
  for (const Column& column : columns)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", column.number ? " class=\"number\"" : "", escaped(column.name));
  return html + "</tr></thead><tbody>" + rows + "</tbody></table></div>";
}

std::string number_cell(std::string_view number) {
  return fmt::format("<td class=\"number\">{}</td>", number);
}

std::string number_cell(std::int64_t number) {
  return number_cell(std::to_string(number));
}

std::string folded_line(std::string_view label, std::string_view line) {
  return fmt::format("<details class=\"line\"><summary>{}</summary><code class=\"line\">{}</code></details>",
                     escaped(label), escaped(line));
}

std::string worst_text(const Tally& tally) {
  return tally.worst_k < 0 ? "–" : short_number(tally.worst_utilisation);
}

}  // namespace attest
