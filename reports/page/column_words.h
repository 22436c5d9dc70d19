// What is said of a column of a table, once for all tables of the page.
#pragma once

#include <span>
#include <string_view>

namespace attest {

struct ColumnWords {
  std::string_view name;     ///< as its heading has it, or as Column::about
  std::string_view words;    ///< what stands in the column, in a sentence
  std::string_view formula;  ///< the id of the row of numbers.md with its formula (formulas.h); empty: it is no number
};

/// One for each heading of the page; a name stands once, for it means one thing.
[[nodiscard]] std::span<const ColumnWords> column_words();
/// Null where there is none.
[[nodiscard]] const ColumnWords* words_of_column(std::string_view name);

}  // namespace attest
