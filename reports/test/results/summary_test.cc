#include "reports/results/summary.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/test/says.h"
#include "reports/formats/html.h"
#include "reports/formats/summary_markdown.h"
#include "reports/formats/table.h"
#include "reports/run_folder/run_folder.h"
#include "reports/test/fakes.h"
#include "reports/test/json.h"

namespace attest {
namespace {

using testing::AllOf;

Tally tally(std::int64_t held, std::int64_t violated, std::int64_t skipped, std::int64_t excused,
            std::int64_t inconclusive) {
  Tally result;
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < held; ++i) result.add(k++, {.utilisation = 0.25});
  for (std::int64_t i = 0; i < violated; ++i)
    result.add(k++, {.outcome = Outcome::violated, .utilisation = std::numeric_limits<double>::infinity()});
  for (std::int64_t i = 0; i < skipped; ++i) result.add(k++, {.outcome = Outcome::skipped, .reason = "has 9 keys"});
  for (std::int64_t i = 0; i < excused; ++i) result.add(k++, {.outcome = Outcome::excused, .reason = "overflows"});
  for (std::int64_t i = 0; i < inconclusive; ++i)
    result.add(k++, {.outcome = Outcome::inconclusive, .reason = "undecided"});
  return result;
}

Journal journal_of(const std::vector<std::pair<Subject, Tally>>& batches) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  for (const auto& [subject, one] : batches) journal.batches.push_back({subject, 0, one.cases(), {}, one});
  return journal;
}

TEST(Summary, FollowsTheContractsRules) {
  EXPECT_EQ(verdict_of(tally(5, 1, 1, 1, 1)), Outcome::violated);
  EXPECT_EQ(verdict_of(tally(5, 0, 1, 1, 1)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of(tally(5, 0, 1, 1, 0)), Outcome::held);
  EXPECT_EQ(verdict_of(tally(0, 0, 1, 1, 0)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of(tally(0, 0, 2, 1, 0)), Outcome::skipped)
      << "of a kernel without masks a row without keys is excused";
  EXPECT_EQ(verdict_of(tally(0, 0, 0, 1, 0)), Outcome::inconclusive);
  EXPECT_EQ(verdict_of(tally(0, 0, 1, 0, 0)), Outcome::skipped);
  EXPECT_EQ(verdict_of(tally(0, 0, 0, 0, 0)), Outcome::inconclusive);
  EXPECT_EQ(worse(Outcome::held, Outcome::skipped), Outcome::held);
  EXPECT_EQ(worse(Outcome::held, Outcome::inconclusive), Outcome::inconclusive);
  EXPECT_EQ(worse(Outcome::violated, Outcome::inconclusive), Outcome::violated);
}

TEST(Summary, WritesTheContractsJson) {
  const fake::Folder folder;
  const Subject subject{"attention.oracle", "exec:python3 mine.py", "f32"};
  std::filesystem::create_directories(folder / "cases");
  const std::string worst = case_file_name(subject, "my flash kernel", "worst");
  const std::string former = case_file_name(subject, subject.kernel, "worst");
  std::ofstream(folder / former) << "a case";
  Journal journal = journal_of(
      {{subject, tally(3, 2, 1, 1, 0)}, {{"attention.oracle", "builtin:flash", "f16"}, tally(4, 0, 0, 0, 0)}});
  journal.kernels = {{"exec:python3 mine.py", R"({"name":"my flash kernel"})", ""}, {"pytorch:*", "", "no torch"}};
  journal.findings.push_back(
      {subject,
       3,
       "cases/x.safetensors",
       {.outcome = Outcome::violated, .violation = Violation::not_finite, .reason = "found nan"}});
  const auto json = parsed_json(to_json(summarise(journal, folder.path())));
  EXPECT_EQ(json["schema"], "attest-summary/1");
  EXPECT_EQ(json["verdict"], "violated");
  ASSERT_EQ(json["kernels"].size(), 2U);
  EXPECT_EQ(json["kernels"][0]["name"], "builtin:flash");
  EXPECT_EQ(json["kernels"][0]["verdict"], "held");
  const auto& mine = json["kernels"][1];
  EXPECT_EQ(mine["name"], "my flash kernel");
  EXPECT_EQ(mine["dtype"], "f32");
  const auto& property = mine["properties"][0];
  EXPECT_EQ(property["name"], "attention.oracle");
  EXPECT_EQ(property["verdict"], "violated");
  EXPECT_EQ(property["cases"], 7);
  EXPECT_EQ(property["excused"], 1);
  EXPECT_EQ(property["worst"]["utilisation"], "inf");
  EXPECT_EQ(property["worst"]["case"], former) << "as earlier versions named it";
  std::ofstream(folder / worst) << "a case";
  const auto again = parsed_json(to_json(summarise(journal, folder.path())));
  EXPECT_EQ(again["kernels"][1]["properties"][0]["worst"]["case"], worst);
  EXPECT_EQ(property["reason"], "found nan");
  EXPECT_EQ(property["findings"][0]["class"], "non-finite");
  EXPECT_EQ(json["not_started"][0]["id"], "pytorch:*");
}

TEST(Summary, SaysWhyNothingWasHeld) {
  const auto reason = [](const Tally& one) {
    return summarise(journal_of({{{"p", "k", "f32"}, one}}), "").kernels[0].properties[0].reason;
  };
  EXPECT_EQ(reason(tally(0, 0, 3, 0, 0)), "skipped: has N keys");
  EXPECT_EQ(reason(tally(9, 0, 3, 0, 1)), "inconclusive: undecided (1 of 13 cases)");
  EXPECT_EQ(reason(tally(0, 0, 0, 0, 0)), "no case was reached");
  EXPECT_EQ(reason(tally(2, 0, 1, 0, 0)), "");
}

TEST(Table, SaysWhatWasFoundInOneRowPerKernelAndDtype) {
  Journal journal = journal_of({{{"p", "builtin:a", "f32"}, tally(3, 0, 1, 1, 0)},
                                {{"p", "exec:evil\x1b[2J\nfake", "bf16"}, tally(1, 1, 0, 0, 0)}});
  journal.kernels = {{"pytorch:*", "", "no torch"}};
  const std::string table = table_of(summarise(journal, ""));
  EXPECT_THAT(table, Says("builtin:a", "violated p by exec:evil [2J fake in bf16 in 1 of 2 judged cases"));
  // Five cases of which one was skipped and one excused.
  EXPECT_THAT(
      table, AllOf(Says("builtin:a           f32    held           3        1        -", "skipped pytorch:*: no torch"),
                   NeverSays("\x1b")));
}

/// A batch of one case that the oracle judged.
std::pair<Subject, Tally> judged_at(const std::string& kernel, const std::string& dtype, const Reach& reach) {
  Tally one;
  one.add(0, {.level = 1, .reach = reach});
  return {{"attention.oracle", kernel, dtype}, one};
}

TEST(Reach, StandsBesideEveryVerdictOfTheTerminalAndTheJson) {
  const Reach far{320, 8192, 256, 64, 8, 2, 1}, near{4, 128, 64, 64, 1, 1, 1};
  const auto text = [](const Journal& journal) { return table_of(summarise(journal, "")); };
  // One line where all are alike, of 80 columns at most.
  const std::string line = "judged against the exact answer up to M 320, N 8192, dk 256, 8 heads\n";
  EXPECT_LE(line.size(), 80U);
  EXPECT_THAT(text(journal_of({judged_at("builtin:a", "f32", far), judged_at("builtin:a", "f16", far)})),
              Says("\n" + line));
  // Of properties of one kernel each extent is the largest by itself.
  Journal both = journal_of({judged_at("builtin:a", "f32", {4, 8192, 64, 64, 1, 1, 1}),
                             judged_at("builtin:a", "f32", {320, 64, 256, 64, 8, 2, 1})});
  both.batches[1].subject.property = "attention.repeatable";
  EXPECT_THAT(text(both), Says("\n" + line));
  const std::string two = text(journal_of({judged_at("builtin:a", "f32", far),
                                           judged_at("builtin:b", "f32", near),
                                           {{"masked.row-shift", "builtin:c", "f32"}, tally(3, 0, 0, 0, 0)}}));
  EXPECT_THAT(two, Says("builtin:a f32: " + line,
                        "builtin:b f32: judged against the exact answer up to M 4, N 128, dk 64, 1 head\n",
                        "builtin:c f32: nothing was judged against the exact answer\n"));
  Journal old = journal_of({judged_at("builtin:a", "f32", far)});
  old.batches[0].tally.reach.reset();
  EXPECT_THAT(text(old), Says("\nhow far it was judged against the exact answer is unknown"));
  std::vector<std::pair<Subject, Tally>> many;
  for (int i = 1; i <= 30; ++i) many.push_back(judged_at(fmt::format("builtin:{}", i), "f32", {i, i, i, i, i, i, i}));
  EXPECT_THAT(text(journal_of(many)), Says("and 10 more lines like these in the report\n"));

  both.batches.push_back({{"masked.row-shift", "builtin:a", "f32"}, 0, 3, {}, tally(3, 0, 0, 0, 0)});
  const auto json = parsed_json(to_json(summarise(both, "")));
  const auto& kernel = json["kernels"][0];
  EXPECT_EQ(kernel["reach"].dump(), R"({"M":320,"N":8192,"batch":1,"dk":256,"dv":64,"heads":8,"kv_heads":2})");
  EXPECT_EQ(kernel["properties"][0]["reach"]["N"], 8192);
  EXPECT_EQ(kernel["properties"][1]["reach"]["N"], 64);
  EXPECT_FALSE(kernel["properties"][2].contains("reach"));
  EXPECT_EQ(parsed_json(to_json(summarise(old, "")))["kernels"][0]["reach"], "unknown");
}

TEST(Table, SaysWhereAShrunkFindingIsWorseThanItsWorst) {
  const Subject subject{"p", "builtin:a", "f32"};
  Tally drawn;
  drawn.add(0, {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 86.3});
  Journal journal = journal_of({{subject, drawn}});
  journal.findings = {{subject, 0, "", {.outcome = Outcome::violated, .utilisation = 226}}};
  const std::string table = table_of(summarise(journal, ""));
  EXPECT_THAT(table,
              Says("\nworst is of the cases as they were drawn; a finding is shrunk, and what is saved may be worse: "
                   "226 where the table has 86.3\n"));
  journal.findings[0].verdict.utilisation = 86.3;
  EXPECT_THAT(table_of(summarise(journal, "")), NeverSays("as they were drawn"));
}

TEST(Table, NamesTheWorstUtilisationOfRoundingAndNotOfADraw) {
  Tally drawn;
  drawn.add(0, {.utilisation = 0.75});
  const Subject oracle{"attention.oracle", "builtin:a", "f32"},
      sampling{"attention.expectation-sampling", "builtin:a", "f32"};
  const Summary both = summarise(journal_of({{oracle, tally(3, 0, 0, 0, 0)}, {sampling, drawn}}), "");
  ASSERT_NE(both.kernels[0].worst(), nullptr);
  EXPECT_EQ(both.kernels[0].worst()->name, "attention.oracle");
  EXPECT_THAT(table_of(both), NeverSays("sampling"));
  const Summary alone = summarise(journal_of({{sampling, drawn}}), "");
  EXPECT_EQ(alone.kernels[0].worst(), nullptr);
  // Its own row keeps the figure.
  EXPECT_EQ(parsed_json(to_json(alone))["kernels"][0]["properties"][0]["worst"]["utilisation"], 0.75);
}

TEST(Table, SaysWhyCasesWereSkipped) {
  Tally some = tally(2, 0, 0, 1, 0), other = tally(1, 0, 0, 0, 1);
  some.skip(40, "unsupported: masks are not\x1b[2J written yet");
  some.skip(30, "has 9 keys");
  other.skip(20, "has 12 keys");
  other.skip(5000, "has no multihead entry");
  other.skip(600, "is about the core, not about other kernels");
  const Journal journal = journal_of({{{"p", "builtin:a", "f32"}, some},
                                      {{"q", "builtin:a", "f32"}, other},
                                      {{"p", "builtin:a", "bf16"}, tally(1, 0, 3, 0, 0)},
                                      {{"p", "builtin:b", "f32"}, tally(1, 0, 0, 2, 0)}});
  EXPECT_EQ(skipped_text(summarise(journal, "")),
            "\nskipped: 90 cases of builtin:a in f32; most often (50): has N keys\n"
            "skipped: 3 cases of builtin:a in bf16; all: has N keys\n");
  EXPECT_EQ(skipped_text(summarise(journal_of({{{"p", "builtin:b", "f32"}, tally(1, 0, 0, 2, 0)}}), "")), "");
  const Journal one = journal_of({{{"p", "builtin:a", "f32"}, some}});
  EXPECT_EQ(skipped_text(summarise(one, "")),
            "\nskipped: 70 cases of builtin:a in f32; most often (40): unsupported: masks are not [N written "
            "yet\n");
}

TEST(Table, NamesThePropertiesThatNoKernelWasJudgedBy) {
  Tally skipped, excused = tally(0, 0, 0, 7, 0);
  skipped.skip(10, "is about the core, not about other kernels");
  const auto summary_with = [&](const Tally& of_b) {
    return summarise(journal_of({{{"p", "builtin:a", "f32"}, skipped},
                                 {{"p", "builtin:b", "f32"}, of_b},
                                 {{"q", "builtin:a", "f32"}, excused},
                                 {{"r", "builtin:a", "f32"}, tally(0, 1, 0, 0, 0)}}),
                     "");
  };
  const Summary none = summary_with(skipped), one = summary_with(tally(1, 0, 0, 0, 0));
  EXPECT_EQ(none.judged_by_none(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(unjudged_text(none), "\njudged on no kernel: p, q\n");
  EXPECT_THAT(to_markdown(none, {}, "run", conclude(none)), Says("- Judged on no kernel: `p`, `q`\n"));
  EXPECT_EQ(parsed_json(to_json(none))["judged_on_no_kernel"], (nlohmann::json{"p", "q"}));
  EXPECT_THAT(html_page(none, {}, "run", conclude(none)), Says("judged on no kernel"));
  EXPECT_EQ(one.judged_by_none(), std::vector<std::string>{"q"});
  const Summary all = summarise(journal_of({{{"r", "builtin:a", "f32"}, tally(1, 0, 0, 0, 0)}}), "");
  EXPECT_EQ(unjudged_text(all), "");
  EXPECT_THAT(to_markdown(all, {}, "run", conclude(all)), NeverSays("Judged on no kernel"));
  EXPECT_THAT(html_page(all, {}, "run", conclude(all)), NeverSays("judged on no kernel"));
  Journal many;
  for (const char* const name : {"a", "b", "c", "d", "e", "f"})
    many.batches.push_back({{name, "builtin:a", "f32"}, 0, 10, {}, skipped});
  EXPECT_EQ(unjudged_text(summarise(many, "")), "\njudged on no kernel: a, b, c, d and 2 more\n");
}

/// `judged` cases of which `hiding` have a mask that hides keys, and `skipped` ones.
Tally masked(std::int64_t hiding, std::int64_t judged, std::int64_t skipped) {
  Tally result;
  for (std::int64_t k = 0; k < judged; ++k)
    result.add(k, {}, k < hiding ? "scores:heavy mask:padding" : "scores:heavy mask:none", set_of(BitClass::zero));
  result.skip(skipped, "has a mask");
  return result;
}

TEST(Warnings, NameWhatAPropertyWantsAndTooFewJudgedCasesHave) {
  const auto lines = [](const Tally& one, const std::string& property = "masked.query-deletion") {
    return warning_lines(summarise(journal_of({{{property, "builtin:a", "f32"}, one}}), "").scarce);
  };
  EXPECT_EQ(lines(masked(9, 100, 400)),
            (std::vector<std::string>{"warning: masked.query-deletion says little about builtin:a in f32: 9 of its 100 "
                                      "judged cases have a mask that hides keys, fewer than 10\n"}));
  EXPECT_TRUE(lines(masked(10, 100, 400)).empty());
  // In a short run one case in fifty will do, and a handful of cases warns of nothing.
  EXPECT_TRUE(lines(masked(2, 100, 0)).empty());
  EXPECT_EQ(lines(masked(1, 100, 0)).size(), 1U);
  EXPECT_TRUE(lines(masked(0, 49, 0)).empty());
  // Nothing was judged: the verdict says so. Nothing is wanted, or nobody knows what.
  EXPECT_TRUE(lines(masked(0, 0, 500)).empty());
  EXPECT_TRUE(lines(masked(0, 500, 0), "attention.repeatable").empty());
  EXPECT_TRUE(lines(masked(0, 500, 0), "of.a-later-version").empty());
}

TEST(Warnings, AreOneLineAPropertyAndChangeNothingElse) {
  const Journal journal = journal_of({{{"masked.query-deletion", "builtin:a", "f32"}, masked(4, 500, 0)},
                                      {{"masked.query-deletion", "builtin:<b>", "f32"}, masked(0, 500, 0)},
                                      {{"masked.query-deletion", "builtin:<b>", "bf16"}, masked(3, 500, 0)},
                                      {{"self.is-attention", "builtin:a", "f32"}, masked(1, 500, 0)}});
  const Summary summary = summarise(journal, "");
  EXPECT_EQ(summary.verdict, Outcome::held);
  EXPECT_EQ(conclude(summary).exit_status, 0);
  EXPECT_EQ(
      warning_text(summary),
      "warning: masked.query-deletion says little about builtin:<b> in f32: 0 of its 500 judged cases have a mask "
      "that hides keys, fewer than 10; the same for 2 more in the report\n"
      "warning: self.is-attention says little about builtin:a in f32: 1 of its 500 judged cases has a mask that "
      "hides keys, fewer than 10\n");
  const auto json = parsed_json(to_json(summary));
  ASSERT_EQ(json["warnings"].size(), 4U);
  EXPECT_EQ(json["warnings"][0]["property"], "masked.query-deletion");
  EXPECT_EQ(json["warnings"][0]["wants"], "a mask that hides keys");
  EXPECT_EQ(json["warnings"][0]["enough"], 10);
  const std::string page = html_page(summary, journal, "run", conclude(summary));
  EXPECT_THAT(page, AllOf(Says("were judged on too few cases", "Too few judged cases"), NeverSays("<b>")));
}

TEST(Warnings, AreOneLineForAKernelWhoseManifestRulesMasksOut) {
  const auto summary_with = [](const std::string& manifest) {
    Journal journal = journal_of({{{"masked.query-deletion", "builtin:a", "f32"}, masked(0, 500, 0)},
                                  {{"masked.query-deletion", "builtin:a", "f64"}, masked(0, 500, 0)},
                                  {{"self.is-attention", "builtin:a", "f32"}, masked(0, 500, 0)},
                                  {{"attention.oracle", "builtin:a", "f32"}, masked(0, 500, 0)}});
    journal.kernels = {{"builtin:a", manifest, ""}};
    return std::pair(summarise(journal, ""), journal);
  };
  const auto [summary, journal] = summary_with(R"({"masks":[],"causal":[]})");
  const std::string text = warning_text(summary);
  EXPECT_THAT(
      text, AllOf(Says("note on builtin:a: its manifest rules masks out; judged without a mask: masked.query-deletion "
                       "and self.is-attention\n"),
                  NeverSays("warning: masked", "warning: self")));
  EXPECT_THAT(text, Says("warning: attention.oracle says little")) << "no manifest rules scores out";
  // What was not covered stands in what is kept all the same.
  const auto json = parsed_json(to_json(summary))["warnings"];
  EXPECT_EQ(std::ranges::count_if(json, [](const auto& one) { return one["ruled_out"] == true; }), 3) << json;
  EXPECT_THAT(html_page(summary, journal, "run", conclude(summary)),
              Says("a mask that hides keys (ruled out by the manifest)"));
  EXPECT_THAT(to_markdown(summary, journal, "run", conclude(summary)),
              Says("with a mask that hides keys; the manifest rules them out"));
  // A causal form is no mask that can be taken away or permuted.
  EXPECT_THAT(warning_text(summary_with(R"({"masks":[],"causal":["top-left"]})").first), Says("rules masks out"));
  // Masks of one kind bring masks; so may a manifest that does not say.
  for (const char* manifest :
       {R"({"masks":["bool"],"causal":[]})", R"({"causal":[]})", R"({"masks":"none","causal":[]})", "[]", ""}) {
    const std::string warned = warning_text(summary_with(manifest).first);
    EXPECT_THAT(warned, AllOf(Says("warning: masked.query-deletion says little"), NeverSays("note on"))) << manifest;
  }
}

/// Of a kernel that lists no causal form nobody is warned that it was given none.
TEST(Drawn, WarnsOfNoCausalFormThatTheManifestDoesNotList) {
  const auto text = [](const std::string& causal) {
    Journal journal = journal_of({{{"multihead.oracle", "builtin:a", "f64"}, masked(500, 500, 0)}});
    journal.kernels = {{"builtin:a", R"({"name": "a", "dtypes": ["f64"], "causal": )" + causal + "}", ""}};
    return warning_text(summarise(journal, ""));
  };
  EXPECT_THAT(text("[]"),
              Says("note on builtin:a: its manifest lists no causal form; judged without one: multihead.oracle\n"));
  EXPECT_THAT(text("[]"), NeverSays("have a causal form"));
  EXPECT_THAT(text(R"(["top-left"])"), NeverSays("lists no causal form"));
}

TEST(Drawn, IsReportedByKindAndByPropertyWithWhatWasNeverDrawn) {
  const Journal journal = journal_of({{{"masked.query-deletion", "builtin:a", "f32"}, masked(40, 100, 3)},
                                      {{"masked.query-deletion", "builtin:b", "f32"}, masked(40, 100, 0)},
                                      {{"masked.query-deletion", "builtin:b", "f64"}, masked(60, 200, 0)}});
  const Summary summary = summarise(journal, "");
  const auto json = parsed_json(to_json(summary));
  const auto& drawn = json["drawn"];
  EXPECT_EQ(drawn["run"]["judged"], 400);
  EXPECT_EQ(drawn["run"]["cases"]["mask"]["padding"], 140);
  EXPECT_EQ(drawn["run"]["cases"]["bits"]["zero"], 400);
  ASSERT_EQ(drawn["properties"].size(), 2U);
  EXPECT_EQ(drawn["properties"][0]["dtype"], "f32");
  EXPECT_EQ(drawn["properties"][0]["judged"], 200);
  EXPECT_EQ(drawn["properties"][0]["cases"]["mask"]["none"], 120);
  EXPECT_TRUE(json["warnings"].empty());
  const std::string page = html_page(summary, journal, "run", conclude(summary));
  const auto row = [](const std::string& name, int cases, const std::string& share) {
    return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                       name, cases, share);
  };
  EXPECT_THAT(page, Says(row("padding", 140, "35.0 %")));
  EXPECT_THAT(page, Says(row("whole-row", 0, "0.0 %"))) << "known to the generators, and never drawn";
  EXPECT_THAT(page, Says("<td class=\"number\">200 (100 %)</td>"));
  EXPECT_THAT(page, NeverSays("matrices")) << "no multihead case was drawn";
  // Files, or a journal of before these counts: not a word.
  const Journal files = journal_of({{{"masked.query-deletion", "builtin:a", "f32"}, tally(100, 0, 0, 0, 0)}});
  EXPECT_THAT(to_json(summarise(files, "")), NeverSays("drawn"));
  EXPECT_THAT(html_page(summarise(files, ""), files, "run", conclude(summarise(files, ""))),
              NeverSays("What was drawn"));
}

TEST(Bits, ThatAgreedWithoutAClaimAreReported) {
  Tally same = tally(3, 0, 0, 0, 0), other = same;
  same.bits_agreed = same.bits_compared = 12;
  other.bits_agreed = 1249999, other.bits_compared = 1250000;
  const Journal journal = journal_of({{{"p", "builtin:a", "f32"}, same},
                                      {{"q", "builtin:a", "f32"}, other},
                                      {{"r", "builtin:a", "f32"}, tally(3, 0, 0, 0, 0)}});
  const Summary summary = summarise(journal, "");
  EXPECT_THAT(table_of(summary), Says("1 of 2"));
  const std::string page = html_page(summary, journal, "run", conclude(summary));
  EXPECT_THAT(page, Says("<td>satisfied bitwise, not claimed</td>"));
  // Rounded down: what differs in one element of a million is not the same.
  EXPECT_THAT(page, Says("<td>not bitwise (99.9 % of elements agree), not claimed</td>"));
  const auto properties = parsed_json(to_json(summary))["kernels"][0]["properties"];
  EXPECT_EQ(properties[0]["bits"]["agreed"], 12);
  EXPECT_EQ(properties[1]["bits"]["compared"], 1250000);
  EXPECT_FALSE(properties[2].contains("bits"));
  const Journal silent = journal_of({{{"r", "builtin:a", "f32"}, tally(3, 0, 0, 0, 0)}});
  EXPECT_THAT(html_page(summarise(silent, ""), silent, "run", conclude(summarise(silent, ""))),
              NeverSays("not claimed"));
}

TEST(Alarm, IsReportedBesideAVerdictThatItDoesNotChange) {
  const fake::Folder folder;
  const Subject loud{"attention.oracle", "builtin:<a>", "f32"}, calm{"attention.oracle", "builtin:b", "f32"};
  Journal journal = journal_of({{loud, tally(3, 0, 0, 0, 0)}, {calm, tally(3, 0, 0, 0, 0)}});
  const auto everything = [&] {
    const Summary summary = summarise(journal, folder.path());
    return table_of(summary) + alarm_text(summary) + to_json(summary) +
           html_page(summary, journal, "run", conclude(summary));
  };
  EXPECT_THAT(everything(), NeverSays("alarm", "Alarm"));

  std::filesystem::create_directories(folder / "cases");
  std::ofstream(folder / case_file_name(loud, loud.kernel, "alarm")) << "a case";
  journal.run->alarm = 1e-9;
  journal.batches[0].tally.alarm = AlarmTally{{.elements = 3000, .beyond = 5, .uncovered = 7, .worst = 1.25}, 2, 1};
  journal.batches[1].tally.alarm = AlarmTally{{.elements = 1000, .beyond = 0, .uncovered = 0, .worst = 0.5}, 0, 0};
  const Summary summary = summarise(journal, folder.path());
  EXPECT_EQ(summary.verdict, Outcome::held);
  EXPECT_EQ(conclude(summary).exit_status, 0);
  EXPECT_EQ(summary.alarms(), (Alarm{4000, 5, 7, 1.25}));
  EXPECT_DOUBLE_EQ(summary.false_alarms_expected(), 4e-6);
  const std::string text = alarm_text(summary);
  EXPECT_THAT(text,
              AllOf(Says("5 of 4000 elements beyond the probabilistic bound (p = 1e-09: at most 4e-06 expected",
                         "alarm attention.oracle by builtin:<a> in f32: 5 of 3000 elements in 2 cases, worst 1.25"),
                    NeverSays("builtin:b")));
  const auto json = parsed_json(to_json(summary));
  EXPECT_EQ(json["verdict"], "held");
  EXPECT_EQ(json["alarm"]["p"], 1e-9);
  EXPECT_EQ(json["alarm"]["elements"], 4000);
  EXPECT_EQ(json["alarm"]["beyond"], 5);
  EXPECT_EQ(json["kernels"][0]["properties"][0]["alarm"]["worst"], 1.25);
  EXPECT_EQ(json["kernels"][0]["properties"][0]["alarm"]["case"], case_file_name(loud, loud.kernel, "alarm"));
  const std::string page = html_page(summary, journal, "run", conclude(summary));
  EXPECT_THAT(page, AllOf(Says("5 of 4000 elements lie beyond", " --alarm</code>"), NeverSays("<a>")));
}

TEST(Html, EscapesEveryForeignStringAndLoadsNothing) {
  const std::string evil = "<script>alert(\"x\")</script>'&";
  Journal journal = journal_of({{{evil, "exec:" + evil, evil}, tally(1, 2, 0, 0, 0)}});
  journal.batches[0].tally.reasons[{Outcome::skipped, evil}] = 2;
  journal.kernels = {{"exec:" + evil, nlohmann::json{{"name", evil}}.dump(), ""}, {evil, "", evil}};
  journal.findings.push_back({journal.batches[0].subject, 1, evil, {.outcome = Outcome::violated, .reason = evil}});
  journal.meta.front().facts[evil] = evil;
  journal.run->case_files = {evil};
  const std::string page = html_page(summarise(journal, ""), journal, evil, conclude(summarise(journal, "")));
  // One script, the page's own.
  EXPECT_EQ(page.find("<script"), page.rfind("<script"));
  EXPECT_EQ(page.find("<script"), page.find("<script nonce=\""));
  EXPECT_THAT(page, AllOf(Says("&lt;script&gt;", "default-src 'none'"), NeverSays("alert(\"x\")")));
  EXPECT_THAT(page, NeverSays("http:", "https:", "src=", "@import", "url("));
}

TEST(Summary, ListsWhatCouldNotBeDecidedBesideWhatIsViolated) {
  const Subject undecided{"p", "k", "f32"}, both{"q", "k", "f32"};
  Journal journal = journal_of({{undecided, tally(3, 0, 0, 0, 1)}, {both, tally(3, 1, 0, 0, 1)}});
  const Verdict open{.outcome = Outcome::inconclusive, .reason = "within rounding"};
  journal.findings = {
      {both, 2, "cases/b.safetensors", {.outcome = Outcome::violated, .violation = Violation::died, .reason = "off"}},
      {both, 1, "cases/c.safetensors", open},
      {undecided, 4, "cases/a.safetensors", open}};
  const Summary summary = summarise(journal, "");
  const auto json = parsed_json(to_json(summary));
  const auto& properties = json["kernels"][0]["properties"];
  EXPECT_EQ(properties[0]["verdict"], "inconclusive");
  EXPECT_EQ(properties[0]["findings"][0]["class"], "inconclusive");
  EXPECT_EQ(properties[0]["findings"][0]["case"], "cases/a.safetensors");
  EXPECT_EQ(properties[1]["verdict"], "violated");
  EXPECT_EQ(properties[1]["reason"], "off");
  EXPECT_EQ(properties[1]["findings"].size(), 2U);
  const std::string page = html_page(summary, journal, "run", conclude(summary));
  EXPECT_THAT(page, Says("is undecided for p", "attest replay run/cases/a.safetensors"));
}

TEST(Html, ShowsFindingsWithTheirReplayLine) {
  Journal journal = journal_of({{{"p", "builtin:a", "f32"}, tally(1, 2, 0, 0, 0)}});
  journal.meta.back().facts["interrupted"] = "yes";
  journal.findings.push_back(
      {journal.batches[0].subject,
       1,
       "cases/c.safetensors",
       {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 3, .reason = "off"}});
  const std::string page = html_page(summarise(journal, ""), journal, "my run", conclude(summarise(journal, "")));
  EXPECT_THAT(page, Says("attest replay &#39;my run/cases/c.safetensors&#39;", "This run was interrupted", "<svg"));
}

}  // namespace
}  // namespace attest
