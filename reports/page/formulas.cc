#include "reports/page/formulas.h"

#include <ranges>
#include <string_view>

#include "reports/run/embedded_files.h"

namespace attest {
namespace {

constexpr std::string_view anchor_begin = "<a id=\"", anchor_end = "\"></a>";

/// Cells of a row of a table in Markdown; a '|' behind a backslash is none's end.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '|')
      cells.emplace_back();
    else if (line[i] == '\\' && i + 1 < line.size())
      cells.back() += line[++i];
    else
      cells.back() += line[i];
  }
  // Behind the last one.
  cells.pop_back();
  return cells;
}

/// Without stars and backquotes, and of a link its words.
std::string bare(std::string_view text) {
  std::string words;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`' || text.substr(i, 2) == "**" || text[i] == '[') {
      i += text[i] == '*' ? 1 : 0;
    } else if (text.substr(i, 2) == "](") {
      i = text.find(')', i);
    } else {
      words += text[i];
    }
  }
  const std::size_t begin = words.find_first_not_of(' '), end = words.find_last_not_of(' ');
  return begin == std::string::npos ? std::string() : words.substr(begin, end - begin + 1);
}

std::vector<Formula> read_formulas(std::string_view document) {
  std::vector<Formula> all;
  for (const auto part : document | std::views::split('\n')) {
    const std::string_view line(part.begin(), part.end());
    if (!line.starts_with("| ") || line.starts_with("| number ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != 3) continue;
    Formula& one = all.emplace_back();
    std::string_view number = cells[0];
    if (const std::size_t at = number.find(anchor_begin); at != std::string_view::npos) {
      const std::size_t begin = at + anchor_begin.size(), end = number.find(anchor_end, begin);
      one.id = number.substr(begin, end - begin);
      number.remove_prefix(end + anchor_end.size());
    }
    one.number = bare(number), one.what = bare(cells[1]), one.where = bare(cells[2]);
  }
  return all;
}

}  // namespace

const std::vector<Formula>& formulas() {
  static const std::vector<Formula> all = read_formulas(embedded_file("numbers.md"));
  return all;
}

}  // namespace attest
