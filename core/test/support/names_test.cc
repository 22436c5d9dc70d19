// Globs and nearest names.
#include "core/support/names.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace attest {
namespace {

TEST(GlobMatch, IsTheShells) {
  EXPECT_TRUE(glob_match("builtin:*", "builtin:flash"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("attention.*", "attention.oracle"));
  EXPECT_TRUE(glob_match("*/x.*", "./a/x.so")) << "slashes and leading dots too";
  EXPECT_TRUE(glob_match("f?2", "f32"));
  EXPECT_TRUE(glob_match("[a-c]x", "bx"));
  EXPECT_TRUE(glob_match("a\\*", "a*"));
  EXPECT_FALSE(glob_match("a\\*", "ab"));
  EXPECT_FALSE(glob_match("attention", "attention.oracle")) << "the whole name";
  EXPECT_FALSE(glob_match("", "x"));
  EXPECT_FALSE(glob_match("Flash", "flash"));
}

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("flash", "flahs"), 1U) << "a swap is one";
  EXPECT_EQ(edit_distance("flash", "flas"), 1U);
  EXPECT_EQ(edit_distance("flash", "flaash"), 1U);
  EXPECT_EQ(edit_distance("NaN", "nan"), 0U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U) << "optimal string alignment: no edit inside a swap";
}

TEST(NearestName, OffersOnlySlips) {
  const std::vector<std::string> known{"builtin:flash", "builtin:split-k", "builtin:online"};
  EXPECT_EQ(nearest_name("builtin:flahs", known), "builtin:flash");
  EXPECT_EQ(nearest_name("bultin:splitk", known), "builtin:split-k");
  EXPECT_EQ(nearest_name("zzz", known), std::nullopt);
  EXPECT_EQ(nearest_name("", known), std::nullopt);
  const std::array<std::string_view, 2> twins{"ab", "ac"};
  EXPECT_EQ(nearest_name("ad", twins), "ab") << "the first of equals";
  EXPECT_EQ(nearest_name("x", std::vector<std::string>{}), std::nullopt);
}

TEST(Suggestion, NamesOneOrListsThem) {
  const std::vector<std::string> known{"flash", "online"};
  EXPECT_EQ(suggestion("flsh", known), "; did you mean \"flash\"?");
  EXPECT_EQ(suggestion("zzz", known), "; known: \"flash\", \"online\"");
  EXPECT_EQ(suggestion("zzz", known, 1), "");
  EXPECT_EQ(suggestion("zzz", std::vector<std::string>{}), "");
}

TEST(InQuotes, KeepsToOneLine) {
  EXPECT_EQ(in_quotes("plain"), "\"plain\"");
  EXPECT_EQ(in_quotes("a\nb\x7f"), "\"a\\x0ab\\x7f\"");
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "\"\\x00\"");
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc…\"");
  EXPECT_EQ(in_quotes("abc", 3), "\"abc\"");
}

}  // namespace
}  // namespace attest
