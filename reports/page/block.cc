#include "reports/page/block.h"

#include <ranges>

namespace attest {

Text marked(std::string_view words) {
  Text text;
  for (const auto part : std::views::split(words, std::string_view("**"))) {
    const bool stands_out = text.pieces.size() % 2 == 1;
    text.pieces.emplace_back(std::string_view(part.begin(), part.end()),
                             stands_out ? Piece::Kind::strong : Piece::Kind::own);
  }
  return text;
}

std::vector<Column> columns_of(std::string_view names, std::string_view group) {
  std::vector<Column> columns;
  for (const auto part : names | std::views::split('|')) {
    const bool number = !part.empty() && part.front() == '#';
    std::string name(part.begin() + (number ? 1 : 0), part.end());
    for (std::size_t at = 0; (at = name.find("¦", at)) != std::string::npos;) name.replace(at, 2, "|");
    columns.push_back({std::move(name), number, group});
  }
  return columns;
}

}  // namespace attest
