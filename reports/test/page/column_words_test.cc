// The columns' words, and the formulas that they lead to.
#include "reports/page/column_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/page/formulas.h"

namespace attest {
namespace {

TEST(ColumnWords, AreOneForAName) {
  std::set<std::string_view> names;
  for (const ColumnWords& one : column_words()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.words.ends_with('.')) << one.name;
    EXPECT_EQ(words_of_column(one.name), &one);
  }
  EXPECT_EQ(words_of_column("no such column"), nullptr);
}

TEST(ColumnWords, LeadToFormulasThatNumbersMdHas) {
  std::set<std::string> known, led_to;
  for (const Formula& one : formulas()) {
    if (one.id.empty()) continue;
    EXPECT_TRUE(known.insert(one.id).second) << one.id;
  }
  for (const ColumnWords& one : column_words()) {
    if (one.formula.empty()) continue;
    EXPECT_TRUE(known.contains(std::string(one.formula))) << one.name << ": " << one.formula;
    led_to.emplace(one.formula);
  }
  EXPECT_EQ(known, led_to) << "an anchor to which nothing leads";
}

TEST(Formulas, AreEveryRowOfNumbersMd) {
  const std::string text = read_file(source_folder() + "/reports/numbers.md");
  std::size_t rows = 0;
  for (std::size_t at = text.find("\n| "); at != std::string::npos; at = text.find("\n| ", at + 1)) ++rows;
  ASSERT_GT(rows, 30U);
  EXPECT_EQ(formulas().size(), rows - 1) << "all but the heading";
  for (const Formula& one : formulas()) {
    EXPECT_FALSE(one.number.empty() || one.what.empty() || one.where.empty()) << one.number;
    for (const std::string& words : {one.number, one.what, one.where})
      for (const char* markup : {"**", "`", "](", "<a", "\\|"})
        EXPECT_EQ(words.find(markup), std::string::npos) << words;
  }
  const auto error = std::ranges::find(formulas(), "error", &Formula::id);
  ASSERT_NE(error, formulas().end());
  EXPECT_EQ(error->number, "error");
  EXPECT_TRUE(error->what.starts_with("|x − o|, the upper end")) << error->what;
  EXPECT_EQ(error->where, "core/oracle/judge.cc");
}

}  // namespace
}  // namespace attest
