// Lines of a terminal's width.
#include "reports/text/wrap.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace attest
