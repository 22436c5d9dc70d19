// Nothing is called held that was hardly tested: by property, by kernel and dtype, and in every format alike.
#include "reports/results/coverage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/enough.h"
#include "core/test/says.h"
#include "properties/road/offered.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/html.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"
#include "reports/formats/summary_markdown.h"
#include "reports/formats/table.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::StartsWith;

constexpr const char *refusal = "unsupported: M must be a multiple of 64",
                     *no_mask = "has a mask; the manifest's masks",
                     *misses = "has 1 keys; the theorem needs at least 2", *no_multihead = "has no multihead entry";

Extents shape_of(std::int64_t queries, std::int64_t keys = 8) {
  return {.batch = 1, .heads = 2, .kv_heads = 2, .queries = queries, .keys = keys, .dk = 4, .dv = 4};
}

/// `held` cases with 64 queries, and `unjudged` with 3 that were not judged for that reason.
Tally tally_of(std::int64_t held, std::int64_t unjudged = 0, const std::string& reason = refusal,
               Outcome outcome = Outcome::skipped) {
  Tally tally;
  const Extents right = shape_of(64), other = shape_of(3);
  for (std::int64_t k = 0; k < held; ++k) tally.add(k, {.utilisation = 0.25}, "", 0, &right);
  const Verdict verdict{.outcome = outcome, .reason = reason};
  for (std::int64_t k = 0; k < unjudged; ++k)
    tally.add(held + k, verdict, "", 0, was_offered({outcome, reason}) ? &other : nullptr);
  return tally;
}

Journal journal_of(const std::vector<std::pair<std::string, Tally>>& properties, const std::string& manifest = "{}") {
  Journal journal = fake::ended_journal();
  journal.kernels = {{"k", manifest, ""}};
  for (const auto& [property, tally] : properties) fake::add_batch(journal, {property, "k", "f32"}, tally);
  return journal;
}

Outcome verdict_of_one(const Tally& tally) {
  return summarise(journal_of({{"p", tally}}), "").kernels[0].properties[0].verdict;
}

TEST(Enough, IsOneInTenAndThirtyAtMost) {
  EXPECT_EQ(least_judged(0), 0);
  EXPECT_EQ(least_judged(9), 0);
  EXPECT_EQ(least_judged(20), 2);
  EXPECT_EQ(least_judged(299), 29);
  EXPECT_EQ(least_judged(quick_look_ends), 30);
  EXPECT_EQ(least_judged(216'000), 30);
}

TEST(Offered, IsWhatTheKernelWasAskedAndNotWhatItsManifestRulesOut) {
  EXPECT_TRUE(was_offered({Outcome::skipped, refusal}));
  EXPECT_TRUE(was_offered({Outcome::skipped, "unsupported"}));
  EXPECT_TRUE(was_offered({Outcome::skipped, "too slow: N flops were not asked for"}));
  EXPECT_TRUE(was_offered({Outcome::excused, "overflows"}));
  EXPECT_TRUE(was_offered({Outcome::inconclusive, "undecided"}));
  for (const char* reason : {no_mask, misses, no_multihead, "the manifest's lse is false", "is about the core, not",
                             "the kernel rejects a case without keys, as it may"})
    EXPECT_FALSE(was_offered({Outcome::skipped, reason})) << reason;
}

TEST(Offered, HasAShapeOfAQueryAndAKey) {
  Walked walked;
  const auto with = [&](std::int64_t queries, std::int64_t keys, Outcome outcome, const char* reason) {
    for (const Slot slot : {Slot::q, Slot::k, Slot::v})
      walked.problem[slot] = Tensor(DType::f32, {1, 1, slot == Slot::q ? queries : keys, 2});
    walked.verdict = {.outcome = outcome, .reason = reason};
    return offered_shape(walked).has_value();
  };
  EXPECT_TRUE(with(3, 4, Outcome::held, ""));
  EXPECT_TRUE(with(3, 0, Outcome::held, ""));
  EXPECT_TRUE(with(3, 4, Outcome::skipped, refusal));
  EXPECT_FALSE(with(3, 4, Outcome::skipped, no_mask));
  EXPECT_FALSE(with(3, 0, Outcome::excused, "no row sees a key"));
  EXPECT_FALSE(with(0, 4, Outcome::skipped, refusal));
  walked.problem.provenance.over_budget = "would take";
  EXPECT_FALSE(with(3, 4, Outcome::skipped, refusal)) << "as it was drawn";
  EXPECT_FALSE(offered_shape({}).has_value());
}

TEST(HardlyTested, BelowThirtyOrATenthOfTheCases) {
  EXPECT_EQ(verdict_of_one(tally_of(36, 8000)), Outcome::held);
  EXPECT_EQ(verdict_of_one(tally_of(30, 8000)), Outcome::held);
  EXPECT_EQ(verdict_of_one(tally_of(29, 8000)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of_one(tally_of(0, 8000)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of_one(tally_of(2, 18)), Outcome::held) << "20 cases on purpose";
  EXPECT_EQ(verdict_of_one(tally_of(1, 19)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of_one(tally_of(1, 500, "vacuous bound", Outcome::excused)), Outcome::inconclusive);
}

TEST(HardlyTested, LeavesTheRemedyToAReasonThatHasOne) {
  for (const auto& [outcome, status] :
       {std::pair{Outcome::skipped, CallStatus::too_slow}, {Outcome::inconclusive, CallStatus::late}}) {
    const std::string reason = std::string(name_of(status)) + ": for 9 flops; give more time with --timeout SECONDS";
    EXPECT_TRUE(hardly_tested(tally_of(3, 497, reason, outcome)).ends_with("give more time with --timeout SECONDS"));
  }
}

TEST(HardlyTested, IsNotWhatTheManifestRulesOut) {
  for (const char* reason : {no_mask, misses, no_multihead})
    EXPECT_EQ(verdict_of_one(tally_of(0, 500, reason)), Outcome::skipped) << reason;
  Tally few = tally_of(0, 480, no_mask);
  few.merge(tally_of(0, 20));
  EXPECT_EQ(verdict_of_one(few), Outcome::skipped) << "as good as ruled out";
  // A tenth was excused, which nobody can help; refused it is another matter.
  Tally excused = tally_of(0, 9, misses), refused = excused;
  excused.merge(tally_of(0, 1, "every row sees the last key", Outcome::excused));
  refused.merge(tally_of(0, 1));
  EXPECT_EQ(verdict_of_one(excused), Outcome::skipped);
  EXPECT_EQ(verdict_of_one(refused), Outcome::inconclusive);
  // That few held is no more, and one that is violated is what it is.
  EXPECT_EQ(verdict_of_one(tally_of(3, 497, no_mask)), Outcome::skipped);
  EXPECT_EQ(
      hardly_offered(tally_of(3, 497, no_mask)),
      "hardly offered: 3 of 500 cases, where 30 are the least for held; most often (497) skipped: has a mask; the "
      "manifest's masks");
  EXPECT_EQ(hardly_offered(tally_of(30, 470, no_mask)), "");
  Tally violated = tally_of(2, 497, no_mask);
  violated.add(499, {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 3});
  EXPECT_EQ(verdict_of_one(violated), Outcome::violated);
}

TEST(HardlyTested, SaysWhatWasNotJudgedAndWhatToDo) {
  EXPECT_EQ(hardly_tested(tally_of(36, 8000)), "");
  EXPECT_EQ(hardly_tested(tally_of(29, 471)),
            "hardly tested: judged in 29 of 500 cases that the manifest offers, where 30 are the least for held; most "
            "often (471) skipped: unsupported: M must be a multiple of N; state that limit in the manifest, or take "
            "these cases");
  EXPECT_THAT(hardly_tested(tally_of(0, 500, "vacuous bound", Outcome::excused)),
              Says("judged in none of 500 cases", "excused: vacuous bound; ask for more cases (--cases)"));
}

TEST(HardlyTested, IsSaidOfWholeRunsAlone) {
  const Tally hardly = tally_of(3, 497);
  const auto verdict = [](const Journal& journal) { return summarise(journal, "").verdict; };
  Journal journal = journal_of({{"p", hardly}});
  EXPECT_EQ(verdict(journal), Outcome::inconclusive);
  // A shard does not know what others judge.
  journal.batches[0].shard = {0, 2};
  EXPECT_EQ(verdict(journal), Outcome::held);
  // Captured cases and a campaign were not asked for in such numbers.
  journal = journal_of({{"p", hardly}});
  journal.run->case_files = {"a"};
  EXPECT_EQ(verdict(journal), Outcome::held);
  journal = journal_of({{"p", hardly}});
  journal.run->fuzz = true;
  EXPECT_EQ(verdict(journal), Outcome::held);
}

TEST(HardlyTested, StandsInEveryFormatAndInTheExitStatus) {
  const Journal journal = journal_of({{"attention.finite", tally_of(500)}, {"attention.oracle", tally_of(7, 493)}});
  const Summary summary = summarise(journal, "");
  const Conclusion conclusion = conclude(summary);
  EXPECT_EQ(conclusion.exit_status, 4);
  EXPECT_EQ(conclusion.headline, "inconclusive");
  constexpr const char* words = "judged in 7 of 500 cases that the manifest offers";
  EXPECT_THAT(table_of(summary), Says("inconclusive attention.oracle by k in f32: hardly tested: ", words));
  EXPECT_THAT(to_json(summary), Says(words));
  EXPECT_THAT(to_markdown(summary, journal, "", conclusion), Says(words));
  EXPECT_THAT(html_page(summary, journal, "", conclusion), Says(words));
  EXPECT_THAT(to_junit(summary, journal, "", conclusion), Says("<error message=\"undecided: hardly tested: ", words));
  EXPECT_THAT(to_sarif(summary, journal, "", conclusion), Says("k is undecided for attention.oracle in f32: ", words));
  EXPECT_THAT(closing_line(conclusion, Ending::complete, 1),
              StartsWith("inconclusive: 1 of 2 properties that concern this kernel judged; 507 cases; never judged: "
                         "M > 64, N > 8, dk > 4, H > 2; 1 s"));
  // On purpose it counts as held, and of no format is there an error then.
  const Conclusion held = conclude(summary, {.inconclusive_held = true});
  EXPECT_EQ(held.exit_status, 0);
  EXPECT_THAT(to_junit(summary, journal, "", held), NeverSays("<error"));
}

TEST(HardlyTested, IsNothingCheckedWhereEveryCaseWasRefused) {
  EXPECT_EQ(conclude(summarise(journal_of({{"p", tally_of(0, 500)}}), "")).exit_status, 3);
}

TEST(ShapesLeftOut, MakeAKernelInconclusive) {
  // Every property is judged often enough; of cases with 3 queries none is.
  const Journal journal = journal_of({{"attention.finite", tally_of(400, 100)}, {"attention.oracle", tally_of(500)}});
  const Summary summary = summarise(journal, "");
  EXPECT_EQ(summary.kernels[0].properties[0].verdict, Outcome::held);
  EXPECT_EQ(summary.kernels[0].verdict, Outcome::inconclusive);
  const Conclusion conclusion = conclude(summary);
  EXPECT_EQ(conclusion.exit_status, 4);
  constexpr const char* words =
      "hardly judged on shapes that the manifest offers: M 2..16, N 2..16: none of 100 cases, tiles "
      "of 16 (queries: within one, keys: within one): none of 100 cases; most often (100) skipped: "
      "unsupported: M must be a multiple of N; state that limit in the manifest, or take these cases";
  EXPECT_EQ(summary.kernels[0].left_out, words);
  EXPECT_THAT(table_of(summary), Says(fmt::format("inconclusive k in f32: {}\n", words)));
  EXPECT_THAT(to_json(summary), Says(words));
  EXPECT_THAT(to_markdown(summary, journal, "", conclusion), Says("M 2..16, N 2..16: none of 100 cases"));
  EXPECT_THAT(html_page(summary, journal, "", conclusion), Says("M 2..16, N 2..16: none of 100 cases"));
  EXPECT_THAT(to_junit(summary, journal, "", conclusion),
              Says("name=\"shapes\"", "undecided: hardly judged on shapes"));
  EXPECT_THAT(to_sarif(summary, journal, "", conclusion), Says("k is undecided for shapes in f32: hardly judged"));
  EXPECT_EQ(conclude(summary, {.inconclusive_held = true}).exit_status, 0);
}

TEST(ShapesLeftOut, AreNotThoseOfFewCases) {
  ShapeCounts shapes;
  for (int i = 0; i < 100; ++i) shapes.add(shape_of(64), true), shapes.add(shape_of(2), true);
  for (int i = 0; i < 9; ++i) shapes.add(shape_of(1), false);
  EXPECT_EQ(shapes_left_out(shapes, {}), "");
  shapes.add(shape_of(1), false);
  EXPECT_THAT(shapes_left_out(shapes, {}), Says("M 1, N 2..16: none of 10 cases"));
}

TEST(FormsLeftOut, AreThoseThatAManifestListsAndHardlyACaseHas) {
  const Manifest m = parse_manifest(
      R"({"name": "k", "dtypes": ["f32", "bf16"], "kv_dtypes": {"f32": ["f16", ["f16", "bf16"]]}, "causal": ["top-left"]})",
      "mine");
  const auto left_out = [&](const DrawnCounts& drawn, std::int64_t refused, DType dtype = DType::f32) {
    return forms_left_out(m, dtype, drawn,
                          {{{Outcome::skipped, refusal}, refused}, {{Outcome::skipped, no_mask}, 500}});
  };
  const DrawnCounts all{{"kv-dtypes:f16-and-f16", 40}, {"kv-dtypes:f16-and-bf16", 30}, {"causal:top-left", 30}};
  EXPECT_EQ(left_out(all, 4000), "");
  DrawnCounts some = all;
  some.erase("kv-dtypes:f16-and-bf16");
  EXPECT_EQ(left_out(some, 300),
            "hardly judged in forms that the manifest lists: k in f16 and v in bf16: no case judged; most often (300) "
            "skipped: unsupported: M must be a multiple of 64; state that limit in the manifest, or take these cases");
  EXPECT_EQ(left_out(some, 9), "") << "a handful of refusals may be of anything";
  EXPECT_EQ(left_out(some, 0), "");
  EXPECT_EQ(left_out(all, 300, DType::bf16), "") << "which has its own formats alone";
  some = all;
  some["causal:top-left"] = 29;
  EXPECT_THAT(left_out(some, 300), Says("causal top-left: 29 judged"));
  EXPECT_THAT(left_out(some, 300), NeverSays("k in"));
}

TEST(FormsLeftOut, AreTheEndsOfWindowsThatAManifestLists) {
  const auto left_out = [](std::string_view window, const DrawnCounts& drawn) {
    const Manifest m = parse_manifest(
        fmt::format(R"({{"name": "k", "dtypes": ["f32"], "variants": {{"window": {}}}}})", window), "mine");
    return forms_left_out(m, DType::f32, drawn, {{{Outcome::skipped, refusal}, 300}});
  };
  const DrawnCounts left{{"window_left:given", 40}};
  EXPECT_THAT(left_out("{}", left), Says("windows with a right end: no case judged"));
  EXPECT_EQ(left_out(R"({"right": false})", left), "");
  EXPECT_THAT(left_out(R"({"right": false})", {}), Says("windows with a left end: no case judged"));
}

TEST(FormsLeftOut, AreTheChunksThatAManifestLists) {
  const auto left_out = [](std::string_view variants, const DrawnCounts& drawn) {
    const Manifest m =
        parse_manifest(fmt::format(R"({{"name": "k", "dtypes": ["f32"], "variants": {{{}}}}})", variants), "mine");
    return forms_left_out(m, DType::f32, drawn, {{{Outcome::skipped, refusal}, 300}});
  };
  EXPECT_THAT(left_out(R"("chunk": {})", {}), Says("chunks of keys: no case judged"));
  EXPECT_EQ(left_out(R"("chunk": {})", {{"attention_chunk:given", 40}}), "");
  EXPECT_EQ(left_out("", {}), "");
}

TEST(FormsLeftOut, KeepAKernelFromBeingCalledHeld) {
  const char* const manifest = R"({"name": "k", "dtypes": ["f32"], "causal": ["bottom-right"]})";
  const Summary summary = summarise(journal_of({{"p", tally_of(200, 300)}}, manifest), "");
  EXPECT_THAT(summary.kernels[0].left_out, Says("causal bottom-right: no case judged"));
  EXPECT_EQ(summary.verdict, Outcome::inconclusive);
  EXPECT_EQ(conclude(summary, {}).exit_status, 4);
}

TEST(NeverJudged, IsWhatLiesBeyondAndIsOffered) {
  const auto never = [](const std::string& limits) {
    const std::string whole = R"({"name": "mine", "dtypes": ["f32"], "limits": )" + limits + "}";
    return never_judged(summarise(journal_of({{"p", tally_of(50)}}, whole), ""));
  };
  EXPECT_EQ(never("{}"), "M > 64, N > 8, dk > 4, H > 2");
  EXPECT_EQ(never(R"({"max_queries": 64, "max_keys": 4096, "max_heads": 2})"), "N > 8, dk > 4");
  EXPECT_EQ(never(R"({"head_dims": [2, 4]})"), "M > 64, N > 8, H > 2");
  EXPECT_EQ(never_judged(summarise(journal_of({{"p", tally_of(50)}}, "{}"), "")), "M > 64, N > 8, dk > 4, H > 2")
      << "a manifest that cannot be read limits nothing";
  EXPECT_EQ(never_judged(summarise(journal_of({{"p", fake::tally_of(50)}}), "")), "") << "not recorded";
}

// The largest of each by itself says nothing of a case that has both.
TEST(NeverJudged, IsOfBothLengthsTogether) {
  const auto of_lengths = [](std::int64_t queries, std::int64_t keys) {
    Tally tally = tally_of(50);
    tally.shapes.largest = Reach{.queries = 8000, .keys = 9000, .dk = 128, .dv = 128, .heads = 2};
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{8000, 1}, {1, 9000}, {queries, keys}})
      tally.shapes.add({.batch = 1, .heads = 1, .kv_heads = 1, .queries = m, .keys = n, .dk = 8, .dv = 8},
                       /*judged=*/true);
    return tally;
  };
  const auto summary_of = [&](const std::string& property, const Tally& tally, const std::string& limits = "{}") {
    const std::string manifest = R"({"name": "mine", "dtypes": ["f32"], "limits": )" + limits + "}";
    return summarise(journal_of({{property, tally}}, manifest), "");
  };
  const Summary short_of_both = summary_of("backward.oracle-dq", of_lengths(300, 200));
  EXPECT_EQ(never_judged(short_of_both), "gradients of M > 8000, N > 9000, both > 512, dk > 128, H > 2");
  EXPECT_EQ(both_judged(short_of_both), 512);
  EXPECT_EQ(never_judged(summary_of("attention.oracle", of_lengths(8000, 9000))),
            "M > 8000, N > 9000, dk > 128, H > 2");
  EXPECT_EQ(never_judged(summary_of("attention.oracle", of_lengths(300, 200), R"({"max_queries": 512})")),
            "N > 9000, dk > 128, H > 2")
      << "the kernel takes no more";
}

TEST(NeverJudged, IsOfEachOperationByItself) {
  const std::string manifest = R"({"name": "mine", "dtypes": ["f32"], "limits": {"max_heads": 2}})";
  Tally long_one = tally_of(50), short_one = tally_of(50);
  long_one.shapes.facets = short_one.shapes.facets = {};
  long_one.shapes.largest = Reach{.queries = 300, .keys = 9000, .dk = 128, .dv = 128, .heads = 2};
  short_one.shapes.largest = Reach{.queries = 70, .keys = 130, .dk = 16, .dv = 8, .heads = 2};
  const auto never = [&](const std::string& first, const std::string& second) {
    return never_judged(summarise(journal_of({{first, long_one}, {second, short_one}}, manifest), ""));
  };
  EXPECT_EQ(never("attention.oracle", "backward.oracle-dq"),
            "M > 300, N > 9000, dk > 128; gradients of M > 70, N > 130, dk > 16");
  EXPECT_EQ(never("attention.oracle", "multihead.oracle"),
            "M > 300, N > 9000, dk > 128; multi-head attention of M > 70, N > 130, dk > 16");
  EXPECT_EQ(never("attention.oracle", "p"), "M > 300, N > 9000, dk > 128");
  EXPECT_EQ(never("multihead.oracle", "backward.oracle-dk"),
            "gradients of M > 70, N > 130, dk > 16; multi-head attention of M > 300, N > 9000, dk > 128");
}

TEST(Applies, NotWhatTheManifestRulesOutThoughNoCaseWasReached) {
  const Summary summary = summarise(journal_of({{"attention.oracle", tally_of(50)}, {"multihead.oracle", {}}},
                                               R"({"name": "mine", "dtypes": ["f32"], "operations": ["attention"]})"),
                                    "");
  EXPECT_EQ(summary.kernels[0].properties[1].reason, "has no multihead entry");
  EXPECT_EQ(applies_text(applies_in(summary)), "Applies: 1 of 2 properties");
}

TEST(QuickLook, SaysWhatFewCasesAre) {
  const auto said = [](std::int64_t cases, const char* end = nullptr) {
    Journal journal = journal_of({{"p", tally_of(cases)}});
    if (end != nullptr) journal.meta.back().facts[end] = "yes";
    return quick_look(summarise(journal, ""));
  };
  EXPECT_EQ(said(20),
            "20 cases a property: a quick look, in which 2 judged ones are enough for a verdict; from 300 cases on it "
            "takes 30");
  EXPECT_THAT(said(40, "time_over"), StartsWith("40 cases a property when the time was over: a quick look"));
  EXPECT_THAT(said(40, "interrupted"), StartsWith("40 cases a property when it was interrupted: a quick look"));
  EXPECT_EQ(said(300), "");
  const Summary summary = summarise(journal_of({{"p", tally_of(20)}}), "");
  EXPECT_THAT(closing_line(conclude(summary), Ending::complete, 1), Says("\n20 cases a property: a quick look"));
}

TEST(Coverage, DoesNotCountWhatTheManifestRulesOut) {
  const Journal journal =
      journal_of({{"attention.finite", tally_of(500)}, {"multihead.oracle", tally_of(0, 1'237'497, no_multihead)}});
  const Summary summary = summarise(journal, "");
  EXPECT_THAT(coverage_text(summary), StartsWith("1 of 1 property that concerns this kernel judged; 500 cases"));
  const Conclusion conclusion = conclude(summary);
  EXPECT_EQ(conclusion.exit_status, 0);
  EXPECT_THAT(closing_line(conclusion, Ending::complete, 1), NeverSays("1237"));
  EXPECT_THAT(to_markdown(summary, journal, "", conclusion), Says("500 of 500 cases judged"));
}

TEST(Coverage, OfOlderJournalsIsNotRecorded) {
  const Journal journal = journal_of({{"attention.finite", fake::tally_of(500)}});
  const Summary summary = summarise(journal, "");
  EXPECT_EQ(summary.kernels[0].verdict, Outcome::held);
  EXPECT_THAT(html_page(summary, journal, "", conclude(summary)),
              Says("Not recorded: the journal is of an older version"));
  EXPECT_THAT(to_json(summary), NeverSays("\"shapes\""));
}

TEST(Coverage, ByShapeStandsInTheReport) {
  const Journal journal = journal_of({{"attention.finite", tally_of(500)}});
  const Summary summary = summarise(journal, "");
  const auto json = parsed_json(to_json(summary));
  EXPECT_EQ(json["kernels"][0]["shapes"]["M x N"]["M 17..64, N 2..16"]["judged"], 500);
  EXPECT_EQ(json["kernels"][0]["shapes"]["largest"]["M"], 64);
  EXPECT_EQ(json["coverage"]["properties"], 1);
  EXPECT_THAT(html_page(summary, journal, "", conclude(summary)), Says("Judged cases by M (down) and N (across)"));
  EXPECT_THAT(to_markdown(summary, journal, "", conclude(summary)), Says("### Shapes", "queries: whole ones, keys: "));
}

}  // namespace
}  // namespace attest
