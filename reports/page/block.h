// What a section of a report says, whatever prints it: the page, Markdown or a terminal (print.h). Words may come from
// anywhere; whoever prints them makes them harmless.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/measure/verdict.h"

namespace attest {

/// Words that stand out in one way.
struct Piece {
  enum class Kind {
    own,      ///< the program's words
    theirs,   ///< words of a kernel, a manifest or a path: in Markdown code, so that nothing of them is Markdown
    code,     ///< what one types, and files
    strong,   ///< what the eye is to find
    soft,     ///< a figure beside what it belongs to
    dtype,    ///< beside a kernel's name
    below,    ///< small, on a line of its own
    badge,    ///< an outcome with its sign, on the page coloured
    sign,     ///< an outcome's sign alone; on a terminal nothing
    noted,    ///< unfolds `more`, which explains them
    line,     ///< a label; unfolds `more`, a line for a shell
    unfolds,  ///< a label; unfolds `more`, a long list
  };
  template <std::convertible_to<std::string_view> Words>
  Piece(const Words& all, Kind piece_kind = Kind::own, std::string_view rest = {}, Outcome of = Outcome::skipped)
      : words(std::string_view(all)), kind(piece_kind), more(rest), outcome(of) {}

  std::string words;
  Kind kind;
  std::string more;
  Outcome outcome;
  std::string to = {};  ///< the id of the place on the page that they lead to
};

[[nodiscard]] inline Piece theirs(std::string_view words) {
  return {words, Piece::Kind::theirs};
}
[[nodiscard]] inline Piece code(std::string_view words) {
  return {words, Piece::Kind::code};
}
[[nodiscard]] inline Piece strong(std::string_view words) {
  return {words, Piece::Kind::strong};
}
/// `words` instead of the outcome's name.
[[nodiscard]] inline Piece badge(Outcome outcome, std::string_view words = {}) {
  return {words.empty() ? name_of(outcome) : words, Piece::Kind::badge, {}, outcome};
}
[[nodiscard]] inline Piece sign(Outcome outcome) {
  return {"", Piece::Kind::sign, {}, outcome};
}
/// A line for a shell that is shown when asked for, so that it makes no table tall.
[[nodiscard]] inline Piece folded_line(std::string_view label, std::string_view line) {
  return {label, Piece::Kind::line, line};
}
[[nodiscard]] inline Piece leading(std::string id, Piece piece) {
  piece.to = std::move(id);
  return piece;
}

/// A line of pieces.
struct Text {
  Text() = default;
  template <std::convertible_to<Piece> Words>
  Text(const Words& words) : pieces{Piece(words)} {}
  Text(std::initializer_list<Text> parts) {
    for (const Text& part : parts) pieces.insert(pieces.end(), part.pieces.begin(), part.pieces.end());
  }

  std::vector<Piece> pieces;
};

/// The program's own words, and what stands between ** is strong.
[[nodiscard]] Text marked(std::string_view words);

/// By what the page's filter hides an element; an empty word is no reason to.
struct Tags {
  std::string kernel = {};  ///< what people may type to find it: a kernel's names and a dtype
  std::string property = {}, verdict = {};
};

struct Heading {
  int level = 2;
  Text text;
};

struct Paragraph {
  Text text;
  std::string_view kind = {};  ///< "note", "warning" or another class of the style sheet
  std::string id = {};
  Tags tags = {};
};

/// A column of a table: what heads it, whether it holds numbers, and what heads it and its neighbours of that group.
struct Column {
  Text name;
  bool number = false;
  std::string_view group = {};
  bool upright = false;  ///< its heading is read from below, so that the column is narrow
  Tags tags = {};
  std::string_view about = {};  ///< the name of what is said of it (column_words.h), where that is not its own
};
/// Those of "kernel|dtype|#cases": a '#' is in front of the names of numbers, and a '¦' in a name reads '|'.
[[nodiscard]] std::vector<Column> columns_of(std::string_view names, std::string_view group = {});
struct TableCell {
  template <std::convertible_to<Text> Words>
  TableCell(const Words& all) : text(all) {}
  TableCell(std::integral auto number) : text(std::to_string(number)) {}
  TableCell(Text all, std::string_view cell_kind, std::string_view note = {})
      : text(std::move(all)), kind(cell_kind), title(note) {}

  Text text;
  std::string_view kind = {};  ///< a class of the style sheet
  std::string title = {};      ///< explains it to who points at it
  std::size_t span = 1;        ///< columns
};
struct TableRow {
  std::vector<TableCell> cells;
  Tags tags = {};
  std::string id = {};
};
/// On the page it scrolls by itself where that is too narrow.
struct Table {
  std::string caption;
  std::vector<Column> columns;  ///< none: the table has no headings
  std::string_view kind = {};   ///< a class of the style sheet
  bool sorts = true;            ///< on the page, by its headings
  std::size_t heading = 0;      ///< of a row's cells the one that heads it; beyond them: none
  std::vector<TableRow> rows = {};
};

/// What there is, and what it is; several texts stand below each other.
struct Fact {
  Text name;
  std::vector<Text> said;
};
struct Facts {
  std::vector<Fact> facts;
};

struct Listing {
  std::vector<Text> items;
};

/// Lines as they are; `shell`: to be typed, so that none is ever cut.
struct CodeLines {
  std::vector<std::string> lines;
  bool shell = true;
};

/// For the page alone: HTML of the program's own, with nothing in it that is not escaped.
struct Drawing {
  std::string html;
  std::string caption = {};
};

struct Block;
/// Blocks that stand or fall together.
struct Group {
  enum class Kind {
    article,  ///< with a heading
    card,     ///< without one
    tables,   ///< beside each other, as there is room
    folded,   ///< below what unfolds it
    kernel,   ///< folded below a heading
  };
  Kind kind = Kind::card;
  Text title = {};
  std::vector<Block> blocks;
  Tags tags = {};
  std::string id = {};
  bool open = false;
};

using AnyBlock = std::variant<Heading, Paragraph, Table, Facts, Listing, CodeLines, Drawing, Group>;
struct Block : AnyBlock {
  using AnyBlock::AnyBlock;
};
using Blocks = std::vector<Block>;

}  // namespace attest
