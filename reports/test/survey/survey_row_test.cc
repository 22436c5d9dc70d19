// Rows of a survey: the data file, joining, and the page that is made of them.
#include "reports/survey/survey_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/support/errors.h"
#include "core/test/says.h"
#include "reports/page/print.h"
#include "reports/survey/survey_page.h"

namespace attest {
namespace {

SurveyRow row_of(const std::string& version = "2.13", const std::string& dtype = "f32") {
  SurveyRow row;
  row.library = "Lib", row.version = version, row.path = "fast", row.dtype = dtype;
  row.operation = "attention", row.output = "out", row.processor = "P", row.kernel = "exec:{library}/k";
  row.date = "2026-01-02", row.attest = "0.1.0", row.verdict = Outcome::held, row.judged = 100, row.searched = 20;
  row.worst_share = 0.5, row.worst_scaled = 3, row.worst_input = "cases/worst.safetensors";
  row.ordinary_cases = 60, row.ordinary_share = 0.25, row.ordinary_scaled = 2;
  row.by_keys = {{0, {code_of(1), code_of(2)}}, {7, {code_of(3), code_of(4)}}};
  row.declared = R"({"block":1})", row.found = R"({"block":2})", row.claims = {"deterministic"};
  return row;
}

std::string refused(const std::string& text) {
  try {
    (void)parse_survey(text, "s.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SurveyRow, ComesBackFromTheDataFile) {
  SurveyRow wrong = row_of("1.0");
  wrong.verdict = Outcome::violated, wrong.promise = Outcome::violated;
  wrong.worst_share = std::numeric_limits<double>::infinity();
  wrong.by_keys[3] = {infinite_code, code_of(0.0)};
  wrong.by_keys[5] = {code_of(0x1.dp63), code_of(0x1p300)};
  wrong.wrong = {{"it \"adds\"", "in 2 of 3", "M=1", "out = 1", "cases/1.safetensors"}, {}};
  wrong.findings = {"a", "{\"library\":"};
  SurveyRow missing;
  missing.library = "Lib", missing.version = "3", missing.path = "slow", missing.dtype = "f16";
  missing.not_run = "it was not checked";
  const std::vector<SurveyRow> rows{row_of(), wrong, missing};
  EXPECT_EQ(parse_survey(survey_json(rows), "s.json"), rows);
  EXPECT_EQ(parse_survey(survey_json({}), "s.json"), std::vector<SurveyRow>());
}

TEST(SurveyRow, IsRefusedInALineThatSaysWhat) {
  const std::string good = survey_json({row_of()});
  ASSERT_EQ(refused(good), "accepted");
  const auto with = [&](const std::string& was, const std::string& now) {
    std::string text = good;
    return refused(text.replace(text.find(was), was.size(), now));
  };
  EXPECT_THAT(refused("[]"), Says("s.json: this is no survey"));
  EXPECT_THAT(refused("{"), Says("s.json: "));
  EXPECT_THAT(with("survey/1", "survey/9"), Says("s.json: this is no survey"));
  EXPECT_THAT(with("\"judged\":100", "\"judged\":-1"), Says("s.json: rows[0]: \"judged\" must be a whole number"));
  EXPECT_THAT(with("\"judged\":100,", ""), Says("rows[0]: \"judged\" must be there"));
  EXPECT_THAT(with("\"worst_share\":0.5", "\"worst_share\":\"nan\""), Says("\"worst_share\" must be a number"));
  EXPECT_THAT(with("\"held\"", "\"good\""), Says("\"verdict\" must be an outcome"));
  EXPECT_THAT(with("\"keys\":1,", "\"keys\":0,"), Says("\"keys\" must be a number of keys"));
  EXPECT_THAT(with("[\"deterministic\"]", "[1]"), Says("\"claims\" must be an array of texts"));
}

TEST(SurveyRow, IsJoinedByTheLaterDate) {
  SurveyRow old = row_of(), now = row_of();
  old.date = "2025-12-31", now.judged = 7;
  EXPECT_EQ(joined({now, old}), std::vector{now});
  EXPECT_EQ(joined({old, now}), std::vector{now});
  SurveyRow elsewhere = row_of();
  elsewhere.processor = "Q";
  EXPECT_EQ(joined({elsewhere, now}), (std::vector{now, elsewhere})) << "another processor is another row";
  SurveyRow missing;
  missing.library = "Lib", missing.version = "2.13", missing.path = "fast", missing.dtype = "f32";
  missing.not_run = "no";
  EXPECT_EQ(joined({missing, now}), std::vector{now}) << "one of the parts has run it";
  missing.dtype = "f16";
  EXPECT_EQ(joined({missing, now}).size(), 2U);
}

TEST(SurveyPage, SaysOfVersionsWhatAnUpgradeChanged) {
  SurveyRow old = row_of("2.9"), now = row_of("2.13");
  old.verdict = Outcome::violated, old.worst_share = 40;
  EXPECT_TRUE(versions_section({now}).empty());
  SurveyRow elsewhere = now;
  elsewhere.processor = "Q";
  EXPECT_TRUE(versions_section(joined({now, elsewhere})).empty()) << "of one version on two processors";
  const std::string said = markdown_of(versions_section(joined({now, old})));
  EXPECT_THAT(said, Says("| `2.9` | `2.13` | ❌ violated | ✅ held | 40 | 0.5 |"));
}

TEST(SurveyPage, SaysWhatAVerdictIsOfThatIsNotOfEveryProperty) {
  SurveyRow every = row_of(), some = row_of("3"), bred = row_of("4");
  some.properties = {"attention.oracle", "backward.*"};
  bred.judged = 0;
  EXPECT_EQ(alone_words(every), "");
  EXPECT_EQ(alone_words(some), "by attention.oracle, backward.* alone");
  EXPECT_EQ(alone_words(bred), "by the search alone");
  EXPECT_THAT(survey_page({every, some, bred}),
              testing::AllOf(Says("3 held, 2 of what held by some properties or the search alone."),
                             Says("by attention.oracle, backward.* alone"), Says("by the search alone")));
  EXPECT_EQ(survey_page({every}).find(" alone"), std::string::npos);
}

TEST(SurveyPage, HoldsWhateverTheWordsAre) {
  SurveyRow row = row_of();
  const std::string evil = "</script><script>alert(1)</script>";
  row.library = row.version = row.path = row.dtype = row.kernel = row.recipe = row.forced = row.promises = evil;
  row.findings = row.claims = {evil};
  row.verdict = Outcome::violated;
  row.wrong = {{evil, evil, evil, evil, evil}};
  row.worst_input = row.found = row.declared = row.date = row.attest = row.processor = evil;
  SurveyRow missing = row;
  missing.not_run = evil;
  const std::string page = survey_page({row, missing});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_THAT(page, Says("alert(1)"));
}

TEST(SurveyPage, LeadsToNoPlaceThatItDoesNotHave) {
  const std::string page = survey_page({row_of("1"), row_of("2", "bf16")});
  for (std::size_t at = page.find("href=\"#"); at != std::string::npos; at = page.find("href=\"#", at + 1)) {
    const std::string id = page.substr(at + 7, page.find('"', at + 7) - at - 7);
    EXPECT_THAT(page, Says("id=\"" + id + "\"")) << id;
  }
}

}  // namespace
}  // namespace attest
