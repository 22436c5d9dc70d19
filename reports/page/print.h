// Printers of blocks: the page, Markdown and a terminal. They decide nothing but how a thing looks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/page/block.h"

namespace attest {

/// Whatever the words are, nothing of them is markup.
[[nodiscard]] std::string html_of(const Text& text);
[[nodiscard]] std::string html_of(const Blocks& blocks);
/// The text with & < > " ' as entities, and U+FFFD for what is not seen (visible.h) but line breaks and tabs.
[[nodiscard]] std::string escaped(std::string_view text);

/// In a table's cell a '|' reads '¦', for a cell ends at the one that it should have.
[[nodiscard]] std::string markdown_of(const Text& text, bool in_table = false);
/// A blank line behind each.
[[nodiscard]] std::string markdown_of(const Blocks& blocks);
/// Words of others for a line of a block of code: one line, and not a long one.
[[nodiscard]] std::string code_line(std::string_view text);
/// Text as Markdown's inline code on one line, whatever it holds; in a table's cell as above.
[[nodiscard]] std::string code_span(std::string_view text, bool in_table = false);

/// Blocks as entries of which any number from the first on may be shown: paragraphs, groups, rows, items, lines.
struct MarkdownEntries {
  std::string before;  ///< the heading of a table, or the beginning of a block of code
  std::vector<std::string> entries;
  std::string after;
};
[[nodiscard]] MarkdownEntries markdown_entries(const Blocks& blocks);

[[nodiscard]] std::string terminal_text(const Text& text);
/// Aligned columns under their headings.
[[nodiscard]] std::string terminal_text(const Table& table);

}  // namespace attest
