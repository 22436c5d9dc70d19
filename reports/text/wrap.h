// Lines of a terminal's width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attest {

/// Columns that valid UTF-8 takes on a terminal, a character each.
[[nodiscard]] std::size_t columns_of_text(std::string_view text);

/// "  label    text …", the text from column `at` on, broken at spaces into lines of at most `width` columns; a word
/// that is longer than a line stands on one of its own, whole. At most `most` lines, of which the last then ends with
/// an ellipsis. Ends with a newline.
[[nodiscard]] std::string labelled(std::string_view label, std::string_view text, std::size_t at, std::size_t width,
                                   std::size_t most = 100);

/// A text of whole lines, those that are longer than `width` broken at spaces, what follows four columns further in.
/// What one types, behind "replay: ", stands on one line however long, and so does a word.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width);

/// Columns of the terminal that standard output is, at most 120; 80 where it is none.
[[nodiscard]] std::size_t terminal_columns();

}  // namespace attest
