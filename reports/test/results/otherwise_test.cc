// What a violated kernel does right, and why properties were not judged.
#include "reports/results/otherwise.h"

#include <gtest/gtest.h>

#include "reports/test/journals.h"

namespace attest {
namespace {

Journal journal_of(const std::vector<std::pair<std::string, Tally>>& properties) {
  Journal journal = fake::ended_journal();
  journal.kernels = {{"k", "{}", ""}};
  for (const auto& [property, tally] : properties) fake::add_batch(journal, {property, "k", "f32"}, tally);
  return journal;
}

Tally judged(std::int64_t held, double utilisation, std::int64_t violated = 0) {
  Tally tally;
  for (std::int64_t k = 0; k < held; ++k) tally.add(k, {.utilisation = utilisation});
  for (std::int64_t k = 0; k < violated; ++k)
    tally.add(held + k, {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 100});
  return tally;
}

Tally skipped(std::int64_t cases, const std::string& reason) {
  Tally tally;
  tally.skip(cases, reason);
  return tally;
}

TEST(OtherwiseRight, CountsHeldCasesAndTheirShareOfTheBound) {
  Tally wrong = judged(400, 0.25, 40);
  const OtherwiseRight right = otherwise_right(summarise(journal_of({{"p", wrong}, {"q", judged(100, 0.4)}}), ""));
  EXPECT_EQ(right.cases, 500);
  EXPECT_GE(right.share, 0.4);
  EXPECT_LE(right.share, 0.4 * 1.19);
  EXPECT_EQ(otherwise_right(summarise(journal_of({{"q", judged(100, 0.4)}}), "")).cases, 0) << "nothing is wrong";
}

TEST(OtherwiseRight, LeavesOutOneCaseInAHundred) {
  Tally wrong = judged(100, 0.1, 1);
  wrong.add(200, {.utilisation = 0.9});
  EXPECT_LE(otherwise_right(summarise(journal_of({{"p", wrong}}), "")).share, 0.12);
  wrong.add(201, {.utilisation = 0.9});
  EXPECT_GE(otherwise_right(summarise(journal_of({{"p", wrong}}), "")).share, 0.9);
}

TEST(PropertiesText, SaysWhatTheOthersNeed) {
  const Summary summary =
      summarise(journal_of({{"a", judged(400, 0.25, 40)},
                            {"b", judged(400, 0.25)},
                            {"c", skipped(300, "has an additive mask; the manifest's masks do not list additive")},
                            {"d", skipped(300, "has a bool mask; the manifest's masks do not list bool")},
                            {"e", skipped(300, "is causal top-left; the manifest's causal lists none")},
                            {"f", skipped(300, "has no multihead entry")},
                            {"g", skipped(300, "is about the core, not about other kernels")}}),
                "");
  EXPECT_EQ(properties_text(summary), "2 of 5 properties (2 need a mask, 1 a causal form)");
  EXPECT_EQ(needs_text(summary), "of other properties 2 need a mask, 1 a causal form");
}

TEST(PropertiesText, IsShortWhereAllWereJudged) {
  const Summary all = summarise(journal_of({{"a", judged(400, 0.25)}}), "");
  EXPECT_EQ(properties_text(all), "1 of 1 property");
  EXPECT_EQ(needs_text(all), "");
  EXPECT_EQ(properties_text(summarise(journal_of({{"a", skipped(9, "has no multihead entry")}}), "")), "");
}

}  // namespace
}  // namespace attest
