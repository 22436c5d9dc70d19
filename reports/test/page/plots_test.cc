#include "reports/page/plots.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "reports/formats/html.h"
#include "reports/run/embedded_files.h"
#include "reports/test/json.h"

namespace attest {
namespace {

TEST(JsonForScript, CannotEndTheScriptAndStaysTheSameJson) {
  const std::string evil = "</script><!--<script>&\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC\"\\";
  const std::string text = json_for_script(nlohmann::json(evil).dump());
  for (const char* sign : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"})
    EXPECT_EQ(text.find(sign), std::string::npos) << text;
  EXPECT_EQ(parsed_json(text), evil);
}

Journal journal_of(const std::string& kernel) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  BatchRecord batch{{"attention.oracle", kernel, "f32"}, 0, 1, {}, {}};
  auto sample = std::make_shared<ErrorSample>();
  sample->keys = 9, sample->elements = 1, sample->worst_utilisation = sample->worst_normal = 0.5;
  sample->scaled_error = 1, sample->scaled_allowed = 2;
  sample->histogram[0][utilisation_bin(0.5)] = 1;
  sample->score_range = 50, sample->budget = {250, 0, 750};
  Verdict verdict{.utilisation = 0.5};
  verdict.errors = sample;
  batch.tally.add(0, verdict, "scores:</script> values:ones");
  journal.batches.push_back(batch);
  return journal;
}

TEST(Plots, AreThereOnlyWithErrorsAndWithVega) {
  const PagePlots none = page_plots(summarise({}, ""), {}, "n");
  EXPECT_EQ(none.html + none.script, "");
  const Journal journal = journal_of("builtin:flash");
  const PagePlots plots = page_plots(summarise(journal, ""), {}, "n");
  if (embedded_file("vega/vega.min.js.gz").empty()) {
    EXPECT_NE(plots.html.find("built without Vega"), std::string::npos);
    EXPECT_EQ(plots.script, "");
  } else {
    EXPECT_NE(plots.html.find("id=\"plot-5\""), std::string::npos);
    EXPECT_EQ(plots.html.find("id=\"plot-6\""), std::string::npos);
  }
}

/// The specifications with their data, as the script gets them.
nlohmann::json specs_in(const std::string& script) {
  const std::string before = "id=\"plot-data\">";
  const std::size_t begin = script.find(before) + before.size();
  return parsed_json(script.substr(begin, script.find("</script", begin) - begin));
}

TEST(Plots, ShowACampaignsWorstAsItWentOn) {
  if (embedded_file("vega/vega.min.js.gz").empty()) GTEST_SKIP() << "the program was built without Vega";
  std::vector<BatchRecord> batches;
  const auto add = [&](const std::string& kernel, std::int64_t first, std::int64_t last, double worst) {
    batches.push_back({{"attention.oracle", kernel, "f32"}, first, last, {}, {}});
    batches.back().tally.worst_utilisation = worst;
  };
  // Out of order, as threads finish them; the second one is worst.
  add("b", 30, 90, 0.2), add("b", 0, 10, 0.1), add("b", 10, 30, 0.7);
  add("a", 0, 10, INFINITY), add("a", 10, 20, 0.5);
  add("merged", 0, 1000, 0.9);
  const nlohmann::json specs = specs_in(page_plots(summarise({}, ""), batches, "n").script);
  ASSERT_EQ(specs.size(), 1U);
  EXPECT_EQ(specs[0]["data"][0]["values"], parsed_json(R"([
    {"of": "a f32 attention.oracle", "x": 10, "y": 4.0}, {"of": "a f32 attention.oracle", "x": 20, "y": 4.0},
    {"of": "b f32 attention.oracle", "x": 10, "y": 0.1}, {"of": "b f32 attention.oracle", "x": 30, "y": 0.7},
    {"of": "b f32 attention.oracle", "x": 90, "y": 0.7}])"));
}

TEST(Plots, DrawTheSquareRootOfNAndTheWorstLinesOnly) {
  if (embedded_file("vega/vega.min.js.gz").empty()) GTEST_SKIP() << "the program was built without Vega";
  Journal journal;
  for (int i = 0; i < 14; ++i) {
    const Journal one = journal_of(fmt::format("kernel-{:02}", i));
    journal.run = one.run;
    journal.batches.push_back(one.batches.front());
    journal.batches.back().tally.worst_utilisation = i % 7;
  }
  const nlohmann::json specs = specs_in(page_plots(summarise(journal, ""), {}, "n").script);
  std::set<std::string> shown;
  for (const auto& row : specs[0]["data"][0]["values"]) shown.insert(row["of"]);
  EXPECT_EQ(shown.size(), 10U);
  EXPECT_EQ(shown.count("kernel-00 f32"), 0U);
  EXPECT_EQ(shown.count("kernel-13 f32"), 1U);
  EXPECT_NE(specs[0]["description"].get<std::string>().find("Of 14 the 10"), std::string::npos);
  // 9 keys are of the octave from 8.
  EXPECT_EQ(specs[1]["data"][1]["values"], parsed_json(R"([{"x": 8.0, "y": 2.8284271247461903}])"));
}

TEST(Plots, ShowTheRangeOfScoresBesideUnderflowAndWhereBoundsComeFrom) {
  if (embedded_file("vega/vega.min.js.gz").empty()) GTEST_SKIP() << "the program was built without Vega";
  const Journal journal = journal_of("mine");
  const nlohmann::json specs = specs_in(page_plots(summarise(journal, ""), {}, "n").script);
  ASSERT_EQ(specs.size(), 6U);
  EXPECT_EQ(specs[4]["data"][0]["values"], parsed_json(R"([{"of": "mine f32", "x": 32.0, "y": 1.0, "allowed": 2.0}])"));
  const nlohmann::json edges = specs[4]["data"][1]["values"];
  EXPECT_NEAR(edges[0]["x"].get<double>(), 87.3365, 1e-3) << "-ln 2^-126";
  EXPECT_NEAR(edges[1]["x"].get<double>(), 103.279, 1e-3) << "-ln 2^-149";
  EXPECT_NE(specs[4]["description"].get<std::string>().find(": f32 subnormal at 87.3, f32 zero at 103.3."),
            std::string::npos);
  double share = 0;
  for (const auto& bar : specs[5]["data"][0]["values"])
    if (bar["stage"] == "weights") share = bar["to"].get<double>() - bar["from"].get<double>();
  EXPECT_NEAR(share, 0.75, 1e-12);
}

TEST(Plots, TakeNoWordOfAKernelForMarkup) {
  if (embedded_file("vega/vega.min.js.gz").empty()) GTEST_SKIP() << "the program was built without Vega";
  const Journal journal = journal_of("exec:</script><script>alert(1)</script>");
  const std::string page = html_page(summarise(journal, ""), journal, "", conclude(summarise(journal, "")));
  // The page's script, the data, Vega and what unpacks it: four scripts, four ends.
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 4U);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  const std::size_t nonce = page.find("'nonce-");
  ASSERT_NE(nonce, std::string::npos);
  EXPECT_NE(page.find("<script nonce=\"" + page.substr(nonce + 7, 32) + "\">"), std::string::npos);
  EXPECT_NE(html_page(summarise(journal, ""), journal, "", conclude(summarise(journal, ""))).substr(nonce, 40),
            page.substr(nonce, 40));
}

}  // namespace
}  // namespace attest
