// Badges: the verdict in a few words, and nothing green where the exit status is not 0.
#include "reports/formats/badge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/test/journals.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::HasSubstr;

Journal held_journal() {
  Journal journal = fake::ended_journal();
  fake::add_batch(journal, {"attention.oracle", "builtin:good", "bf16"}, fake::tally_of(300));
  journal.kernels = {{"builtin:good", "{}", ""}};
  return journal;
}

nlohmann::json words_in(const Journal& journal, Expectations expectations = {}) {
  const Summary summary = summarise(journal, "");
  const Conclusion conclusion = conclude(summary, std::move(expectations));
  const nlohmann::json badge = parsed_json(to_badge_json(summary, journal, "", conclusion));
  EXPECT_EQ(badge["schemaVersion"], 1);
  EXPECT_EQ(badge["label"], "attest");
  // The picture says the same.
  EXPECT_THAT(to_badge(summary, journal, "", conclusion),
              HasSubstr(">" + badge["message"].get<std::string>() + "</text>"));
  return badge;
}

TEST(Badge, SaysTheVerdictAndHowMuchItRestsOn) {
  const nlohmann::json held = words_in(held_journal());
  EXPECT_EQ(held["color"], "brightgreen");
  EXPECT_THAT(held["message"].get<std::string>(), testing::MatchesRegex("held: [0-9]+ of [0-9]+ properties judged"));
  const nlohmann::json violated = words_in(fake::mixed_journal());
  EXPECT_EQ(violated["color"], "red");
  EXPECT_THAT(violated["message"].get<std::string>(), testing::MatchesRegex("violated: [0-9]+ of [0-9]+ properties"));
}

TEST(Badge, IsGreenOnlyWhereTheRunPasses) {
  EXPECT_EQ(words_in(fake::ended_journal())["color"], "red") << "what was not tested is no pass";
  EXPECT_EQ(words_in(fake::ended_journal())["message"], std::string(nothing_tested));
  const KnownComparison worse{.source = "", .expected = {}, .problems = {"one is gone"}, .remarks = {}};
  EXPECT_EQ(words_in(held_journal(), {.known = worse})["color"], "red");
}

}  // namespace
}  // namespace attest
