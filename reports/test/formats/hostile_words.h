// Words that move what is around them, and what counts those that are shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/support/visible.h"

namespace attest {

/// C1 as UTF-8 and as bytes, a direction, a line separator, a zero-width space, a tag, what is no UTF-8.
inline const std::vector<std::string> hostile{"\u009B2J",       "\u0085",          std::string("\x9b") + "2J",
                                              "\u202Egnp",      "\u2066x\u2069",   "\u061C\u200F",
                                              "a\u2028\u2029b", "in\u200Bvisible", "\uFEFF",
                                              "\U000E0041",     "\xff\xfe",        "\xC0\x80"};

/// Characters that are not seen, and bytes that are no UTF-8: 0 of a text that is safe to show.
inline std::ptrdiff_t unseen_in(const std::string& text) {
  std::ptrdiff_t count = 0;
  const std::string rest = with_hidden(text, [&](char32_t character) {
    count += character == U'\n' || character == U'\t' ? 0 : 1;
    return std::string();
  });
  const auto replaced = [](const std::string& words) {
    std::ptrdiff_t found = 0;
    for (std::size_t at = words.find("\uFFFD"); at != std::string::npos; at = words.find("\uFFFD", at + 3)) ++found;
    return found;
  };
  return count + replaced(rest) - replaced(text);
}

}  // namespace attest
