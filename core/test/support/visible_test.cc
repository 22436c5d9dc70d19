// Words of others, made safe to show.
#include "core/support/visible.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace attest {
namespace {

TEST(Visible, ShowsWhatIsSeenAsItIs) {
  for (const char* text :
       {"", "plain ASCII ~", "Größe, größer als ½", "ядро", "内核", "kernel 🚀", "−0 ± 2⁻⁵³", "a\u00A0b"})
    EXPECT_EQ(visible(text), text);
}

TEST(Visible, ShowsControlsAsSpaces) {
  EXPECT_EQ(visible("a\nb\x1b[2J\x7f"), "a b [2J ");
  EXPECT_EQ(visible(std::string_view("\0", 1)), " ");
  // C1 as UTF-8: CSI, NEL, OSC, and both ends; line and paragraph separator.
  EXPECT_EQ(visible("\u009B2J\u0085\u009D\u0080\u009F"), " 2J    ");
  EXPECT_EQ(visible("a\u2028b\u2029c"), "a b c");
  EXPECT_EQ(visible("a\nb\tc\u0085", "\uFFFD", "\n\t"), "a\nb\tc\uFFFD");
}

TEST(Visible, ShowsWhatIsNotSeenAsReplaced) {
  for (const char* hidden :
       {"\u061C", "\u200E", "\u200F", "\u202A", "\u202B",     "\u202C",     "\u202D",    "\u202E", "\u2066",
        "\u2067", "\u2068", "\u2069", "\u200B", "\u200C",     "\u200D",     "\u2060",    "\uFEFF", "\u00AD",
        "\u3164", "\uFE0F", "\uFFFE", "\uFFFF", "\U000E0041", "\U000E01EF", "\U0001D173"})
    EXPECT_EQ(visible("a" + std::string(hidden) + "b"), "a\uFFFDb") << testing::PrintToString(std::string(hidden));
  // Their neighbours are seen.
  for (const char* seen :
       {"\u061B", "\u061D", "\u200A", "\u2010", "\u2027", "\u2030", "\u205F", "\u2070", "\uFE10", "\uFDFF"})
    EXPECT_EQ(visible(seen), seen) << testing::PrintToString(std::string(seen));
}

TEST(Visible, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(visible("a\xff\xfe"), "a\uFFFD\uFFFD");
  EXPECT_EQ(visible("\x9b"
                    "2J"),
            "\uFFFD2J")
      << "C1 as a byte";
  EXPECT_EQ(visible("\xC0\x80"), "\uFFFD\uFFFD") << "NUL, written too long";
  EXPECT_EQ(visible("\xE0\x9F\xBF"), "\uFFFD\uFFFD\uFFFD") << "U+07FF, written too long";
  EXPECT_EQ(visible("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "half a pair";
  EXPECT_EQ(visible("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "beyond U+10FFFF";
  EXPECT_EQ(visible("\xE2\x82"), "\uFFFD\uFFFD") << "cut";
  EXPECT_EQ(visible("\xE2\x82"
                    "a"),
            "\uFFFD\uFFFD"
            "a");
}

TEST(VisibleJson, IsTheSameToWhoReadsIt) {
  const nlohmann::json value = {{"a\u202Eb\x7f", "\u009B\U000E0041 ü 🚀"}};
  const std::string seen = visible_json(value.dump(1));
  EXPECT_EQ(nlohmann::json::parse(seen), value);
  EXPECT_EQ(seen, "{\n \"a\\u202eb\\u007f\": \"\\u009b\\udb40\\udc41 ü 🚀\"\n}");
  EXPECT_EQ(visible_json("{\"a\":1}\n"), "{\"a\":1}\n");
}

}  // namespace
}  // namespace attest
