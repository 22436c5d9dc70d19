#include "reports/results/combinations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test/says.h"
#include "properties/road/offered.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/html.h"
#include "reports/formats/summary_markdown.h"
#include "reports/results/summary.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::ElementsAre, testing::IsEmpty, testing::Pair;

constexpr const char* window =
    R"({"name": "k", "dtypes": ["f32"], "variants": {"window": {}}, "causal": ["top-left"]})";

Manifest manifest_with(const std::string& more) {
  return parse_manifest(R"({"name": "k", "dtypes": ["f32"], "variants": {"window": {}}, )" + more + "}", "mine");
}

Combination one_of(Placing placing, bool grouped, Masking masking) {
  return {"window", placing, grouped, masking};
}

/// Judged cases of every combination that the manifest offers, ten each.
DrawnCounts ten_of_each(const Manifest& m) {
  DrawnCounts drawn{{"window_left:given", 100}};
  for (const auto& [one, cases] : combinations_in({}, m)) drawn[kind_of(one)] = 10;
  return drawn;
}

Journal journal_of(const Manifest& m, const DrawnCounts& drawn) {
  Journal journal = fake::ended_journal();
  journal.kernels = {{"k", to_json(m), ""}};
  Tally tally = fake::tally_of(1000);
  tally.drawn = drawn;
  fake::add_batch(journal, {"attention.oracle", "k", "f32"}, tally);
  return journal;
}

TEST(Combinations, AreThoseThatTheManifestOffers) {
  EXPECT_THAT(combinations_in({}, parse_manifest(R"({"name": "k", "dtypes": ["f32"]})", "mine")), IsEmpty());
  // Three masks; without a causal form aligned as the causal form is, or causal.
  EXPECT_EQ(combinations_in({}, parse_manifest(window, "mine")).size(), 6U);
  EXPECT_EQ(combinations_in({}, manifest_with(R"("grouped_query": true)")).size(), 12U) << "two alignments, no form";
  EXPECT_EQ(combinations_in({}, manifest_with(R"("masks": [])")).size(), 2U);
  const auto offered = [](const std::string& more, const Combination& one) { return offers(manifest_with(more), one); };
  const Combination plain = one_of(Placing::aligned_top_left, false, Masking::none);
  EXPECT_TRUE(offered(R"("grouped_query": true)", plain));
  EXPECT_FALSE(offered(R"("grouped_query": true, "limits": {"group_sizes": [2]})", plain));
  EXPECT_FALSE(offered(R"("causal": ["top-left"], "requires": ["causal"])", plain));
  EXPECT_FALSE(offered(R"("excludes": [["window"]])", plain));
  const Combination masked = one_of(Placing::causal_bottom_right, true, Masking::additive);
  const std::string all = R"("causal": ["bottom-right"], "grouped_query": true)";
  EXPECT_TRUE(offered(all, masked));
  EXPECT_FALSE(offered(all + R"(, "excludes": [["mask", "causal", "grouped-query"]])", masked));
  EXPECT_TRUE(offered(all + R"(, "excludes": [["mask", "top-left"], ["mask", "fewer-keys"]])", masked));
  const auto of_window = [&](const std::string& terms) {
    const std::string whole =
        R"({"name": "k", "dtypes": ["f32"], "causal": ["bottom-right"], "grouped_query": true, "variants": {"window": )";
    return offers(parse_manifest(whole + terms + "}}", "mine"), masked);
  };
  EXPECT_TRUE(of_window("{}"));
  EXPECT_FALSE(of_window(R"({"excludes": ["additive-mask"]})"));
  EXPECT_FALSE(of_window(R"({"requires": ["bool-mask"]})"));
}

TEST(Combinations, OfWhichNoCaseWasAreSaidInFewWords) {
  const Manifest m = manifest_with(R"("causal": ["top-left", "bottom-right"], "grouped_query": true)");
  DrawnCounts drawn = ten_of_each(m);
  EXPECT_THAT(never_combined(combinations_in(drawn, m)), IsEmpty());
  EXPECT_EQ(combinations_text(combinations_in(drawn, m)), "");
  drawn.erase(kind_of(one_of(Placing::causal_bottom_right, true, Masking::boolean)));
  EXPECT_THAT(never_combined(combinations_in(drawn, m)),
              ElementsAre(Pair("window", ElementsAre("causal bottom-right with grouped heads with a bool mask"))));
  for (std::size_t placing = 0; placing < Words<Placing>::names.size(); ++placing)
    for (const bool grouped : {false, true})
      drawn.erase(kind_of(one_of(static_cast<Placing>(placing), grouped, Masking::additive)));
  EXPECT_EQ(
      combinations_text(combinations_in(drawn, m)),
      "15 of 24 combinations of window judged; never with an additive mask, causal bottom-right with grouped heads "
      "with a bool mask");
  EXPECT_THAT(never_combined(combinations_in({}, m)), ElementsAre(Pair("window", ElementsAre("at all"))));
  EXPECT_THAT(combinations_in({{"window_left:given", 9}}, m), IsEmpty()) << "of before they were counted";
}

TEST(Combinations, ThatWereJudgedBesideAnotherVariantWereJudged) {
  const Manifest m = parse_manifest(
      R"({"name": "k", "dtypes": ["f32"], "masks": [], "variants": {"lengths": {}, "paged": {}}})", "mine");
  const Combination both{"lengths+paged", Placing::none, false, Masking::none};
  EXPECT_THAT(never_combined(combinations_in({{kind_of(both), 3}}, m)), IsEmpty());
  const Combination lengths{"lengths", Placing::none, false, Masking::none};
  EXPECT_THAT(never_combined(combinations_in({{kind_of(lengths), 3}}, m)),
              ElementsAre(Pair("lengths+paged", ElementsAre("at all"))));
}

TEST(Combinations, AreCountedOfJudgedCasesWithAVariant) {
  Walked walked;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) walked.problem[slot] = Tensor(DType::f32, {1, 1, 2, 2});
  walked.verdict.outcome = Outcome::held;
  Tally tally;
  count_combination(tally, walked);
  EXPECT_THAT(tally.drawn, IsEmpty()) << "as of every kernel that lists no variant";
  walked.problem.window_left = 0;
  walked.problem.alignment = Causal::top_left;
  count_combination(tally, walked);
  walked.verdict.outcome = Outcome::violated;
  count_combination(tally, walked);
  for (const Outcome outcome : {Outcome::skipped, Outcome::excused, Outcome::inconclusive}) {
    walked.verdict.outcome = outcome;
    count_combination(tally, walked);
  }
  EXPECT_THAT(tally.drawn, ElementsAre(Pair("combination:window/aligned-top-left/not-grouped/no-mask", 2)));
}

TEST(Combinations, StandInTheReport) {
  const Manifest m = manifest_with(R"("causal": ["top-left", "bottom-right"], "grouped_query": true)");
  DrawnCounts drawn = ten_of_each(m);
  drawn[kind_of(one_of(Placing::causal_bottom_right, true, Masking::none))] = 900;
  drawn.erase(kind_of(one_of(Placing::causal_bottom_right, true, Masking::additive)));
  const Journal journal = journal_of(m, drawn);
  const Summary summary = summarise(journal, "");
  const auto json = parsed_json(to_json(summary));
  const auto& all = json["kernels"][0]["combinations"];
  ASSERT_EQ(all.size(), 24U);
  const auto expected = parsed_json(
      R"({"variants": "window", "placing": "causal-bottom-right", "grouped": true, "mask": "no-mask", "judged": 900})");
  EXPECT_EQ(all[21], expected);
  EXPECT_EQ(all[23]["judged"], 0);
  const Conclusion conclusion = conclude(summary);
  const std::string page = html_page(summary, journal, "", conclusion);
  EXPECT_THAT(page, Says("causal bottom-right</td><td>grouped", ">900<", ">never<",
                         "window causal bottom-right with grouped heads with an additive mask"));
  EXPECT_THAT(page, NeverSays("combination:", "window/causal"));
  EXPECT_THAT(to_markdown(summary, journal, "", conclusion), Says("23 of 24 combinations of window judged"));
}

TEST(Combinations, OfAKernelWithoutAVariantAreNotSpokenOf) {
  const Journal journal = journal_of(parse_manifest(R"({"name": "k", "dtypes": ["f32"]})", "mine"), {{"mask:none", 5}});
  const Summary summary = summarise(journal, "");
  EXPECT_THAT(to_json(summary), NeverSays("combinations"));
  EXPECT_THAT(html_page(summary, journal, "", conclude(summary)),
              NeverSays("judged together", "Judged cases of variants"));
}

}  // namespace
}  // namespace attest
