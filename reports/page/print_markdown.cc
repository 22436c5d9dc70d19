#include <fmt/format.h>

#include <algorithm>

#include "reports/page/print.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// The longest text of others that is shown; a line for a shell is never cut.
constexpr std::size_t longest_text = 400;

std::size_t longest_run_of_backticks(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  return longest;
}

std::string_view sign_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::held:
      return "✅";
    case Outcome::violated:
      return "❌";
    case Outcome::inconclusive:
      return "❔";
    case Outcome::skipped:
    case Outcome::excused:
      return "➖";
  }
  return "";
}

/// Where a cell of a table ends is up to the table.
std::string with_bars(std::string_view text, std::string_view bar) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? bar : std::string_view(&c, 1);
  return cell;
}

std::string markdown_of(const Piece& piece, bool in_table) {
  switch (piece.kind) {
    case Piece::Kind::theirs:
    case Piece::Kind::code:
      return code_span(piece.words, in_table);
    case Piece::Kind::strong:
      return "**" + piece.words + "**";
    case Piece::Kind::badge:
      return fmt::format("{} {}", sign_of(piece.outcome), piece.words);
    case Piece::Kind::sign:
      return std::string(sign_of(piece.outcome));
    default:
      return in_table ? with_bars(piece.words, "\\|") : piece.words;
  }
}

std::string row_of(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

MarkdownEntries entries_of(const Table& table) {
  MarkdownEntries all;
  std::vector<std::string> names;
  std::string rule = "|";
  for (const Column& column : table.columns) {
    names.push_back(markdown_of(column.name, /*in_table=*/true));
    rule += column.number ? "--:|" : "---|";
  }
  all.before = row_of(names) + rule + '\n';
  for (const TableRow& row : table.rows) {
    std::vector<std::string> cells;
    cells.reserve(row.cells.size());
    for (const TableCell& cell : row.cells) cells.push_back(markdown_of(cell.text, /*in_table=*/true));
    all.entries.push_back(row_of(cells));
  }
  return all;
}

MarkdownEntries entries_of(const CodeLines& code) {
  std::size_t longest = 2;
  for (const std::string& line : code.lines) longest = std::max(longest, longest_run_of_backticks(line));
  const std::string fence(longest + 1, '`');
  MarkdownEntries all{fence + (code.shell ? "sh\n" : "\n"), {}, fence + '\n'};
  for (const std::string& line : code.lines) all.entries.push_back(line + '\n');
  return all;
}

MarkdownEntries entries_of(const Listing& listing) {
  MarkdownEntries all;
  for (const Text& item : listing.items) all.entries.push_back("- " + markdown_of(item) + '\n');
  return all;
}

MarkdownEntries one_entry(std::string text) {
  return {{}, {std::move(text)}, {}};
}

MarkdownEntries entries_of(const Heading& heading) {
  return one_entry(std::string(static_cast<std::size_t>(heading.level), '#') + ' ' + markdown_of(heading.text) + '\n');
}

MarkdownEntries entries_of(const Paragraph& paragraph) {
  return one_entry(markdown_of(paragraph.text) + '\n');
}

MarkdownEntries entries_of(const Group& group) {
  return one_entry(markdown_of(group.blocks));
}

MarkdownEntries entries_of(const Facts& facts) {
  MarkdownEntries all;
  for (const Fact& fact : facts.facts)
    for (const Text& text : fact.said)
      all.entries.push_back(fmt::format("- {}: {}\n", markdown_of(fact.name), markdown_of(text)));
  return all;
}

/// Only the page shows it.
MarkdownEntries entries_of(const Drawing& /*drawing*/) {
  return {};
}

MarkdownEntries entries_of(const Block& block) {
  return std::visit([](const auto& one) { return entries_of(one); }, static_cast<const AnyBlock&>(block));
}

}  // namespace

std::string code_line(std::string_view text) {
  return one_line(cut_short(text, longest_text));
}

std::string code_span(std::string_view text, bool in_table) {
  std::string line = code_line(text);
  if (line.find_first_not_of(' ') == std::string::npos) return "(empty)";
  if (in_table) line = with_bars(line, "¦");
  const std::string fence(longest_run_of_backticks(line) + 1, '`');
  // One space at both ends is taken away again.
  const bool padded = line.front() == '`' || line.back() == '`' || (line.front() == ' ' && line.back() == ' ');
  return fence + (padded ? " " : "") + line + (padded ? " " : "") + fence;
}

std::string markdown_of(const Text& text, bool in_table) {
  std::string line;
  for (const Piece& piece : text.pieces) line += markdown_of(piece, in_table);
  return line;
}

std::string markdown_of(const Blocks& blocks) {
  std::string text;
  for (const Block& block : blocks) {
    const MarkdownEntries one = entries_of(block);
    text += fmt::format("{}{}{}\n", one.before, fmt::join(one.entries, ""), one.after);
  }
  return text;
}

MarkdownEntries markdown_entries(const Blocks& blocks) {
  MarkdownEntries all;
  for (const Block& block : blocks) {
    MarkdownEntries one = entries_of(block);
    const bool apart = std::holds_alternative<Paragraph>(block) && !all.entries.empty();
    if (apart) one.entries.front().insert(0, 1, '\n');
    all.before += one.before;
    all.entries.insert(all.entries.end(), one.entries.begin(), one.entries.end());
    all.after += one.after;
  }
  return all;
}

}  // namespace attest
