#include "plots.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "html.h"
#include "vega_script.h"

namespace attest {
namespace {

TEST(JsonForScript, CannotEndTheScriptAndStaysTheSameJson) {
  const std::string evil = "</script><!--<script>&\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC\"\\";
  const std::string text = json_for_script(nlohmann::json(evil).dump());
  for (const char* sign : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"})
    EXPECT_EQ(text.find(sign), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(text), evil);
}

Journal journal_of(const std::string& kernel) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  BatchRecord batch{{"attention.oracle", kernel, "f32"}, 0, 1, {}, {}};
  auto sample = std::make_shared<ErrorSample>();
  sample->keys = 9, sample->elements = 1, sample->worst_utilisation = 0.5;
  sample->scaled_error = 1, sample->scaled_allowed = 2;
  sample->histogram[0][utilisation_bin(0.5)] = 1;
  Verdict verdict{.utilisation = 0.5};
  verdict.errors = sample;
  batch.tally.add(0, verdict, "scores:</script> values:ones");
  journal.batches.push_back(batch);
  return journal;
}

TEST(Plots, AreThereOnlyWithErrorsAndWithVega) {
  EXPECT_EQ(plots_html(summarise({}, "")), "");
  EXPECT_EQ(plots_script(summarise({}, ""), "n"), "");
  const Journal journal = journal_of("builtin:flash");
  const Summary summary = summarise(journal, "");
  if (vega_script().empty()) {
    EXPECT_NE(plots_html(summary).find("built without Vega"), std::string::npos);
    EXPECT_EQ(plots_script(summary, "n"), "");
  } else {
    EXPECT_NE(plots_html(summary).find("id=\"plot-3\""), std::string::npos);
  }
}

TEST(Plots, TakeNoWordOfAKernelForMarkup) {
  if (vega_script().empty()) GTEST_SKIP() << "the program was built without Vega";
  EXPECT_EQ(vega_script().find("</script"), std::string_view::npos) << "Vega itself would end its script";
  const Journal journal = journal_of("exec:</script><script>alert(1)</script>");
  const std::string page = html_page(summarise(journal, ""), journal, "");
  // The page's script, the data, Vega and what calls it: four scripts, four ends.
  std::size_t ends = 0;
  for (std::size_t at = page.find("</script"); at != std::string::npos; at = page.find("</script", at + 1)) ++ends;
  EXPECT_EQ(ends, 4U);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  const std::size_t nonce = page.find("'nonce-");
  ASSERT_NE(nonce, std::string::npos);
  EXPECT_NE(page.find("<script nonce=\"" + page.substr(nonce + 7, 32) + "\">"), std::string::npos);
  EXPECT_NE(html_page(summarise(journal, ""), journal, "").substr(nonce, 40), page.substr(nonce, 40));
}

}  // namespace
}  // namespace attest
