#include <fmt/format.h>

#include <algorithm>

#include "core/support/visible.h"
#include "reports/page/column_words.h"
#include "reports/page/formulas.h"
#include "reports/page/print.h"

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

/// ' name="value"'; empty for an empty value.
std::string attribute(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format(" {}=\"{}\"", name, escaped(value));
}

std::string attributes(const Tags& tags) {
  return attribute("data-kernel", tags.kernel) + attribute("data-property", tags.property) +
         attribute("data-verdict", tags.verdict);
}

std::string html_of(const Piece& piece) {
  std::string words = escaped(piece.words);
  const std::string more = escaped(piece.more);
  switch (piece.kind) {
    case Piece::Kind::own:
    case Piece::Kind::theirs:
      return words;
    case Piece::Kind::code:
      return "<code>" + words + "</code>";
    case Piece::Kind::strong:
      return "<b>" + words + "</b>";
    case Piece::Kind::soft:
      return "<span class=\"figure\">" + words + "</span>";
    case Piece::Kind::dtype:
      return "<span class=\"dtype\">" + words + "</span>";
    case Piece::Kind::below:
      return "<br><span class=\"reach\">" + words + "</span>";
    case Piece::Kind::badge:
      return fmt::format("<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
                         name_of(piece.outcome), sign_of(piece.outcome), words);
    case Piece::Kind::sign:
      return std::string(sign_of(piece.outcome));
    case Piece::Kind::noted:
      return fmt::format("<details class=\"line\"><summary>{}</summary><span>{}</span></details>", words, more);
    case Piece::Kind::line:
      return fmt::format("<details class=\"line\"><summary>{}</summary><code class=\"line\">{}</code></details>", words,
                         more);
    case Piece::Kind::unfolds:
      return fmt::format("<details><summary>{}</summary>{}</details>", words, more);
  }
  return {};
}

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

std::string html_of(const Column& column) {
  const std::string name = html_of(column.name);
  if (name.empty()) return "<td></td>";
  return fmt::format("<th scope=\"col\"{}{}>{}</th>",
                     attribute("class", column.upright  ? "upright"
                                        : column.number ? "number"
                                                        : ""),
                     attributes(column.tags) + attribute("data-about", column.about),
                     column.upright ? "<span>" + name + "</span>" : name);
}

std::string html_of(const TableCell& cell, bool number, bool heading) {
  return fmt::format("<{}{}{}{}>{}</{}>", heading ? "th scope=\"row\"" : "td",
                     attribute("class", cell.kind.empty() && number ? "number" : cell.kind),
                     attribute("title", cell.title),
                     cell.span == 1 ? std::string() : fmt::format(" colspan=\"{}\"", cell.span), html_of(cell.text),
                     heading ? "th" : "td");
}

/// What is said of the columns, each once, with the way to the formula of each number.
std::string explained(const std::vector<Column>& columns) {
  std::string html;
  std::vector<const ColumnWords*> said;
  for (const Column& column : columns) {
    const ColumnWords* const one =
        words_of_column(column.about.empty() ? terminal_text(column.name) : std::string(column.about));
    if (one == nullptr || std::ranges::find(said, one) != said.end()) continue;
    said.push_back(one);
    html += fmt::format("<dt>{}</dt><dd>{}{}</dd>", escaped(one->name), escaped(one->words),
                        one->formula.empty() ? std::string()
                                             : fmt::format(" <a href=\"#{}\">Formula</a>",
                                                           anchor_of_formula(std::string(one->formula))));
  }
  return html.empty()
             ? html
             : "<details class=\"columns\"><summary>What the columns say</summary><dl>" + html + "</dl></details>";
}

std::string html_of(const Table& table) {
  const std::string kind(table.kind), both = table.sorts ? "sortable" + (kind.empty() ? "" : " " + kind) : kind;
  std::string html = fmt::format("<div class=\"scroll{}\"", kind == "matrix" ? " matrix" : "");
  if (!table.caption.empty()) html += " tabindex=\"0\" role=\"group\"" + attribute("aria-label", table.caption);
  html += fmt::format("><table{}>", attribute("class", both));
  if (!table.caption.empty()) html += fmt::format("<caption>{}</caption>", escaped(table.caption));
  if (!table.columns.empty()) {
    html += "<thead>" + groups_html(table.columns) + "<tr>";
    for (const Column& column : table.columns) html += html_of(column);
    html += "</tr></thead>";
  }
  html += "<tbody>";
  for (const TableRow& row : table.rows) {
    html += fmt::format("<tr{}{}>", attribute("id", row.id), attributes(row.tags));
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      html += html_of(row.cells[i], i < table.columns.size() && table.columns[i].number, i == table.heading);
    html += "</tr>";
  }
  return html + "</tbody></table></div>" + explained(table.columns);
}

std::string html_of(const Heading& heading) {
  return fmt::format("<h{0}>{1}</h{0}>", heading.level, html_of(heading.text));
}

std::string html_of(const Paragraph& paragraph) {
  return fmt::format("<p{}{}{}>{}</p>", attribute("id", paragraph.id), attribute("class", paragraph.kind),
                     attributes(paragraph.tags), html_of(paragraph.text));
}

std::string html_of(const Facts& facts) {
  std::string html = "<dl>";
  for (const Fact& fact : facts.facts) {
    html += fmt::format("<dt>{}</dt>", html_of(fact.name));
    for (const Text& text : fact.said) html += fmt::format("<dd>{}</dd>", html_of(text));
  }
  return html + "</dl>";
}

std::string html_of(const Listing& listing) {
  std::string html = "<ul class=\"reasons\">";
  for (const Text& item : listing.items) html += fmt::format("<li>{}</li>", html_of(item));
  return html + "</ul>";
}

std::string html_of(const CodeLines& code) {
  return fmt::format("<pre{}>{}</pre>", attribute("class", code.shell ? "line" : ""),
                     escaped(fmt::format("{}", fmt::join(code.lines, "\n"))));
}

std::string html_of(const Drawing& drawing) {
  if (drawing.caption.empty()) return drawing.html;
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>", drawing.html, escaped(drawing.caption));
}

std::string html_of(const Group& group) {
  const std::string title = html_of(group.title), body = html_of(group.blocks),
                    marks = attribute("id", group.id) + attributes(group.tags) + (group.open ? " open" : "");
  switch (group.kind) {
    case Group::Kind::article:
      return fmt::format("<article{}><h3>{}</h3>{}</article>", marks, title, body);
    case Group::Kind::card:
      return "<div class=\"finding\">" + body + "</div>";
    case Group::Kind::tables:
      return "<div class=\"tables\">" + body + "</div>";
    case Group::Kind::folded:
      return fmt::format("<details{}><summary>{}</summary>{}</details>", marks, title, body);
    case Group::Kind::kernel:
      return fmt::format("<details class=\"kernel\"{}><summary><h3>{}</h3></summary>{}</details>", marks, title, body);
  }
  return {};
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

std::string html_of(const Text& text) {
  std::string html;
  for (const Piece& piece : text.pieces)
    html += piece.to.empty() ? html_of(piece) : fmt::format("<a href=\"#{}\">{}</a>", piece.to, html_of(piece));
  return html;
}

std::string html_of(const Blocks& blocks) {
  std::string html;
  for (const Block& block : blocks)
    html += std::visit([](const auto& one) { return html_of(one); }, static_cast<const AnyBlock&>(block));
  return html;
}

}  // namespace attest
