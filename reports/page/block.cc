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
    const std::string_view name(part.begin(), part.end());
    const bool number = name.starts_with('#');
    columns.push_back({name.substr(number ? 1 : 0), number, group});
  }
  return columns;
}

}  // namespace attest
