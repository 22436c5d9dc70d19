// Text for a terminal: numbers for reading, words of others made harmless.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/measure/verdict.h"

namespace attest {

/// Three significant digits, whole numbers from a thousand to ten million: "0.41", "1.3e-05", "66432", "inf".
[[nodiscard]] std::string short_number(double value);

/// With a full stop, where it has none.
[[nodiscard]] std::string sentence(std::string_view text);

/// A count for people: "1,996,162".
[[nodiscard]] std::string with_commas(std::int64_t count);
/// "4,096 of 1,048,576 rows judged".
[[nodiscard]] std::string rows_text(const Verdict& verdict);

/// "1 kernel × dtype", "12 kernels × dtypes".
[[nodiscard]] std::string kernels_text(std::size_t count);

/// Every character seen (visible.h), control characters as spaces: what a kernel says cannot move the cursor, fake a
/// line or turn its words around.
[[nodiscard]] std::string one_line(std::string_view text);

/// Every byte that is not UTF-8 as U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// At most `most` bytes, at a character's end, and the ellipsis where something is cut. most >= 3.
[[nodiscard]] std::string cut_short(std::string_view text, std::size_t most, std::string_view ellipsis = "…");

/// "a, b and c", each as one_line; of more than four the first three and how many more there are.
[[nodiscard]] std::string some_of(const std::set<std::string>& names);

/// Rows as aligned columns, two spaces apart; the first row is the heading. Numbers (columns in `right`) flush right.
[[nodiscard]] std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);
/// The same in lines of at most `width` columns: the last column, of words, is broken at spaces within itself, in at
/// least 24 columns, and a word that is longer stands whole.
[[nodiscard]] std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right,
                                  std::size_t width);

}  // namespace attest
