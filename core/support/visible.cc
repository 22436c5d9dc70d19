#include "core/support/visible.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace attest {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Range {
  char32_t first, last;
};
/// Default_Ignorable_Code_Point of Unicode 15, interlinear annotations, and U+FFFE and U+FFFF; sorted.
constexpr std::array<Range, 19> unseen{{{0x00AD, 0x00AD},
                                        {0x034F, 0x034F},
                                        {0x061C, 0x061C},
                                        {0x115F, 0x1160},
                                        {0x17B4, 0x17B5},
                                        {0x180B, 0x180F},
                                        {0x200B, 0x200F},
                                        {0x202A, 0x202E},
                                        {0x2060, 0x206F},
                                        {0x3164, 0x3164},
                                        {0xFE00, 0xFE0F},
                                        {0xFEFF, 0xFEFF},
                                        {0xFFA0, 0xFFA0},
                                        {0xFFF0, 0xFFF8},
                                        {0xFFF9, 0xFFFB},
                                        {0xFFFE, 0xFFFF},
                                        {0x1BCA0, 0x1BCA3},
                                        {0x1D173, 0x1D17A},
                                        {0xE0000, 0xE0FFF}}};

/// A character at the start of a text, and the bytes that it takes; of what is no UTF-8 the first byte.
struct Decoded {
  char32_t character = 0;
  std::size_t bytes = 1;
  bool valid = false;
};
Decoded first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // 0xC0, 0xC1 and 0xF5 to 0xFF begin nothing; 0x80 to 0xBF go on.
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t character = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    character = (character << 6U) | (byte(i) & 0x3FU);
  }
  // Longer than it need be, half of a pair of UTF-16, beyond Unicode.
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (character < least[bytes] || (character >= 0xD800 && character <= 0xDFFF) || character > 0x10FFFF) return {};
  return {character, bytes, true};
}

}  // namespace

bool is_control(char32_t character) {
  return character < 0x20 || (character >= 0x7F && character <= 0x9F) || character == 0x2028 || character == 0x2029;
}

bool is_hidden(char32_t character) {
  if (is_control(character)) return true;
  const auto* const range = std::ranges::lower_bound(unseen, character, {}, &Range::last);
  return range != unseen.end() && character >= range->first;
}

std::string with_hidden(std::string_view text, const std::function<std::string(char32_t)>& instead) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Decoded first = first_of(text);
    if (!first.valid)
      result += replacement;
    else if (is_hidden(first.character))
      result += instead(first.character);
    else
      result += text.substr(0, first.bytes);
    text.remove_prefix(first.bytes);
  }
  return result;
}

std::string visible(std::string_view text, std::string_view control, std::string_view kept) {
  return with_hidden(text, [&](char32_t character) {
    if (character < 0x80 && kept.find(static_cast<char>(character)) != std::string_view::npos)
      return std::string(1, static_cast<char>(character));
    return std::string(is_control(character) ? control : replacement);
  });
}

std::string visible_json(std::string_view json) {
  // Almost every text is ASCII, in which JSON has escaped all but DEL already.
  const auto plain = [](char c) { return static_cast<unsigned char>(c) < 0x7F; };
  if (std::ranges::all_of(json, plain)) return std::string(json);
  return with_hidden(json, [](char32_t character) {
    // Between the values of a text there are line breaks.
    if (character < 0x20) return std::string(1, static_cast<char>(character));
    const auto code = static_cast<std::uint32_t>(character);
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0U + (code >> 10U), 0xDC00U + (code & 0x3FFU));
  });
}

}  // namespace attest
