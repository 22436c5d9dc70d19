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

Journal journal_of(const Manifest& m, const DrawnCounts& drawn, const char* property = "attention.oracle") {
  Journal journal = fake::ended_journal();
  journal.kernels = {{"k", to_json(m), ""}};
  Tally tally = fake::tally_of(1000);
  tally.drawn = drawn;
  fake::add_batch(journal, {property, "k", "f32"}, tally);
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

Manifest offering(const std::string& variants, const std::string& more = "") {
  return parse_manifest(R"({"name": "k", "dtypes": ["f32"], "masks": [], "variants": {)" + variants + "}" + more + "}",
                        "mine");
}

TEST(Combinations, PairsAreThoseThatAProblemAndTheManifestLetTogether) {
  const std::string sequences = R"("lengths": {}, "packed": {}, "paged": {}, "append": {})";
  EXPECT_THAT(pairs_offered(offering(sequences)),
              ElementsAre(Pair("append", "lengths"), Pair("append", "paged"), Pair("lengths", "paged")));
  EXPECT_THAT(pairs_offered(offering(R"("sink": {}, "softcap": {})")), ElementsAre(Pair("sink", "softcap")));
  EXPECT_THAT(pairs_offered(offering(R"("sink": {"excludes": ["softcap"]}, "softcap": {})")), IsEmpty());
  EXPECT_THAT(pairs_offered(offering(R"("sink": {}, "softcap": {})", R"(, "excludes": [["sink", "softcap"]])")),
              IsEmpty());
  EXPECT_THAT(pairs_offered(offering(R"("sink": {"requires": ["window"]}, "softcap": {}, "window": {}, "lengths": {})",
                                     R"(, "causal": ["top-left"])")),
              testing::Not(testing::Contains(Pair("sink", "softcap"))))
      << "with the two alone no problem is offered";
}

TEST(Combinations, PairsOfWhichNoCaseHadBothAreTold) {
  const Manifest m = offering(R"("sink": {}, "softcap": {}, "lengths": {})");
  const auto summary_of = [&](const std::string& variants) {
    return summarise(journal_of(m, {{kind_of({variants, Placing::none, false, Masking::none}), 7}}), "");
  };
  EXPECT_EQ(pairs_text(pairs_in(summary_of("lengths+sink+softcap"))), "");
  // Of a variant that no case had at all that alone is told.
  const Summary of_two = summary_of("sink+softcap");
  EXPECT_EQ(pairs_text(pairs_in(of_two)), "");
  EXPECT_EQ(combinations_text(combinations_in(of_two)), "no judged case has lengths");
  const auto expected = parsed_json(R"([["lengths", "sink"], ["lengths", "softcap"]])");
  EXPECT_EQ(parsed_json(to_json(of_two))["coverage"]["never_together"], expected);
  EXPECT_THAT(to_json(summary_of("lengths+sink+softcap")), NeverSays("never_together"));
  const Journal journal = journal_of(m, {{kind_of({"lengths+sink", Placing::none, false, Masking::none}), 7},
                                         {kind_of({"softcap", Placing::none, false, Masking::none}), 1}});
  const Summary summary = summarise(journal, "");
  EXPECT_EQ(pairs_text(pairs_in(summary)),
            "1 of 3 pairs of variants judged together; never lengths with softcap, sink with softcap");
  EXPECT_THAT(html_page(summary, journal, "", conclude(summary)), Says("no case had both", "lengths with softcap"));
  EXPECT_THAT(to_markdown(summary, journal, "", conclude(summary)), Says("1 of 3 pairs of variants judged together"));
}

TEST(Combinations, OfVariantsThatNoAskedPropertyIsAboutNothingIsSaid) {
  const Manifest m = offering(R"("sink": {}, "lengths": {})");
  const auto said = [&](const char* property) {
    const Journal journal = journal_of(m, {{kind_of({"", Placing::none, false, Masking::none}), 7}}, property);
    return combinations_text(combinations_in(summarise(journal, "")));
  };
  EXPECT_EQ(said("attention.oracle"), "no judged case has lengths, sink");
  EXPECT_EQ(said("sink.equals-key"), "no judged case has sink");
  EXPECT_EQ(said("multihead.oracle"), "");
  EXPECT_EQ(said("multihead.promised"), "") << "which holds under any";
}

// That no judged case has a variant is not said of one that was judged beside another alone.
TEST(Combinations, WhatWasJudgedBesideAnotherVariantAloneIsToldSo) {
  const Manifest m = offering(R"("sink": {}, "softcap": {})", R"(, "grouped_query": true)");
  const CombinationCounts counts =
      combinations_in({{kind_of({"sink+softcap", Placing::none, false, Masking::none}), 7}}, m);
  EXPECT_THAT(never_combined(counts), ElementsAre(Pair("sink", ElementsAre("with grouped heads")),
                                                  Pair("softcap", ElementsAre("with grouped heads"))));
  EXPECT_EQ(
      combinations_text(counts),
      "1 of 2 combinations of sink judged; never with grouped heads; 1 of 2 combinations of softcap judged; never "
      "with grouped heads");
}

TEST(Combinations, OfPairsThatWereNeverJudgedTheFirstAreTold) {
  const Manifest m = offering(R"("sink": {}, "softcap": {}, "lengths": {}, "alibi": {}, "descale": {})");
  DrawnCounts drawn;
  for (const char* const one : {"sink", "softcap", "lengths", "alibi"})
    drawn[kind_of({one, Placing::none, false, Masking::none})] = 1;
  EXPECT_EQ(
      pairs_text(pairs_in(summarise(journal_of(m, drawn), ""))),
      "0 of 6 pairs of variants judged together; never alibi with lengths, alibi with sink, alibi with softcap and 3 "
      "more");
}

TEST(Combinations, APairOfWhichThereAreZeroCasesWasNotJudged) {
  const Manifest m = offering(R"("lengths": {}, "paged": {}, "sink": {})");
  const Journal journal = journal_of(m, {{kind_of({"sink", Placing::none, false, Masking::none}), 7}});
  EXPECT_THAT(pairs_in(summarise(journal, "")).never,
              ElementsAre(Pair("lengths", "paged"), Pair("lengths", "sink"), Pair("paged", "sink")));
}

TEST(Combinations, APairThatAnotherKernelWasJudgedOnIsNotTold) {
  const Manifest m = offering(R"("sink": {}, "softcap": {})");
  Journal journal = journal_of(m, {{kind_of({"sink", Placing::none, false, Masking::none}), 7}});
  EXPECT_EQ(pairs_in(summarise(journal, "")).never.size(), 1U);
  journal.kernels.push_back({"other", to_json(m), ""});
  Tally tally = fake::tally_of(1000);
  tally.drawn = {{kind_of({"sink+softcap", Placing::none, false, Masking::none}), 1}};
  fake::add_batch(journal, {"attention.oracle", "other", "f32"}, tally);
  EXPECT_THAT(pairs_in(summarise(journal, "")).never, IsEmpty());
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
