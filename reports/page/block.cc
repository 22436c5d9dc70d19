#include "reports/page/block.h"

#include <ranges>

namespace attest {

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
