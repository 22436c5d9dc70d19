#include "reports/page/print.h"
#include "reports/text/text.h"

namespace attest {
std::string terminal_text(const Text& text) {
  std::string line;
  for (const Piece& piece : text.pieces)
    line += piece.kind == Piece::Kind::theirs ? one_line(piece.words) : piece.words;
  return line;
}

std::string terminal_text(const Table& table) {
  std::vector<std::vector<std::string>> rows(1);
  std::vector<bool> right;
  for (const Column& column : table.columns) {
    rows.front().push_back(terminal_text(column.name));
    right.push_back(column.number);
  }
  for (const TableRow& row : table.rows) {
    rows.emplace_back();
    for (const TableCell& cell : row.cells) rows.back().push_back(terminal_text(cell.text));
  }
  return columns(rows, right);
}

}  // namespace attest
