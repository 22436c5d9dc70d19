// Lines of a terminal's width.
#include "reports/text/wrap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/text/text.h"

namespace attest {
namespace {

TEST(Wrap, BreaksAtSpacesAndIndentsWhatFollows) {
  EXPECT_EQ(labelled("what", "one two three four", 8, 18), "  what  one two\n        three four\n");
  EXPECT_EQ(labelled("", "one", 8, 18), "        one\n");
  EXPECT_EQ(labelled("a-long-label", "one", 8, 18), "  a-long-labelone\n") << "whoever gives it has room for it";
}

TEST(Wrap, CountsCharactersAndNotBytes) {
  EXPECT_EQ(columns_of_text("▁▂·é"), 4U);
  EXPECT_EQ(labelled("x", "éé éé éé", 4, 9), "  x éé éé\n    éé\n");
}

TEST(Wrap, LeavesLongWordsWhole) {
  EXPECT_EQ(labelled("x", "a very-long-word-indeed b", 4, 10), "  x a\n    very-long-word-indeed\n    b\n");
}

TEST(Wrap, EndsWhatIsTooLongWithinTheWidth) {
  const std::string text = labelled("x", "one two three four five six", 4, 14, /*most=*/2);
  EXPECT_EQ(text, "  x one two\n    three …\n");
  EXPECT_EQ(labelled("x", "one two three", 4, 14, /*most=*/2), "  x one two\n    three\n");
}

TEST(Wrapped, BreaksLongLinesAndKeepsTheOthers) {
  EXPECT_EQ(wrapped("one  two\n\nthree four five six seven\n", 12),
            "one  two\n\nthree four\n    five six\n    seven\n");
  EXPECT_EQ(wrapped("  ab  cd  ef gh ij", 10), "  ab  cd\n      ef\n      gh\n      ij\n") << "columns stay columns";
  EXPECT_EQ(wrapped("éé éé éé\n", 8), "éé éé éé\n");
  EXPECT_EQ(wrapped("", 8), "");
}

TEST(Wrapped, LeavesWholeWhatIsTypedAndLongWords) {
  EXPECT_EQ(wrapped("  replay: attest replay some/where\n", 12), "  replay: attest replay some/where\n");
  EXPECT_EQ(wrapped("a very-long-word-indeed b\n", 10), "a\n    very-long-word-indeed\n    b\n");
}

TEST(Columns, BreakTheLastOneWithinItself) {
  const std::vector<std::vector<std::string>> rows{{"a", "found"}, {"long-word", "one two three four five six seven"}};
  EXPECT_EQ(columns(rows, {false, false}, 36),
            "a          found\nlong-word  one two three four five\n           six seven\n");
  EXPECT_EQ(columns(rows, {false, false}, 10), columns(rows, {false, false}, 35)) << "24 columns at least";
  EXPECT_EQ(columns(rows, {false, false}, 80), columns(rows, {false, false}));
}

}  // namespace
}  // namespace attest
