// The report's page, section by section, from journals made here.
#include "html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/errors.h"
#include "attest/files.h"
#include "audit_html.h"
#include "fakes.h"
#include "html_elements.h"
#include "html_sections.h"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string evil = "</td><script>alert(\"x\")</script>'&";

Tally tally(std::int64_t held, std::int64_t violated = 0, std::int64_t skipped = 0) {
  Tally result;
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < held; ++i) result.add(k++, {.utilisation = 0.25});
  for (std::int64_t i = 0; i < violated; ++i)
    result.add(k++, {.outcome = Outcome::violated, .utilisation = 3, .reason = "off"});
  for (std::int64_t i = 0; i < skipped; ++i) result.add(k++, {.outcome = Outcome::skipped, .reason = "has 9 keys"});
  return result;
}

Journal journal_of(const std::vector<std::pair<Subject, Tally>>& batches) {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"end", {}});
  for (const auto& [subject, one] : batches) journal.batches.push_back({subject, 0, one.cases(), {}, one});
  return journal;
}

std::string page_of(const Journal& journal, const std::string& folder = "") {
  return html_page(summarise(journal, folder), journal, folder);
}

constexpr const char* audit_text =
    R"json({"schema":"attest-audit/1","passed":false,"interrupted":false,"seed":7,"cases_per_fault":500,"catchable":86,
    "caught":85,"control_cases_judged":1200,"control_cases_flagged":3,"not_caught":["fault:</td><script>"]})json";

TEST(Page, HasItsSectionsInOrderAndALinkToEach) {
  Journal journal = journal_of({{{"attention.oracle", "builtin:flash", "f32"}, tally(3)}});
  journal.proofs.push_back({"attention.oracle", "tested", "core:double", ""});
  const std::string page = page_of(journal);
  std::size_t at = 0;
  for (const char* id :
       {"verdicts", "findings", "proofs", "kernels", "worst-cases", "oracle", "environment", "not-covered"}) {
    const std::size_t next = page.find(std::string("<section id=\"") + id + "\">");
    ASSERT_NE(next, std::string::npos) << id;
    EXPECT_GT(next, at) << id;
    at = next;
    EXPECT_THAT(page, HasSubstr(std::string("<a href=\"#") + id + "\">"));
  }
  // What has nothing to say is not there.
  EXPECT_THAT(page, Not(HasSubstr("<section id=\"tolerances\">")));
  EXPECT_THAT(page, Not(HasSubstr("href=\"#search\"")));
}

TEST(Verdicts, CountWhatWasAskedAndTheCasesBehindIt) {
  const Journal journal = journal_of({{{"attention.oracle", "a", "f32"}, tally(30)},
                                      {{"attention.repeatable", "a", "f32"}, tally(5, 2, 1)},
                                      {{"masked.query-deletion", "a", "f32"}, tally(0, 0, 62)}});
  const std::string html = verdicts_html(summarise(journal, ""), "");
  const auto row = [](const char* name, std::initializer_list<const char*> numbers) {
    std::string text = std::string("<th scope=\"row\">") + name + "</th>";
    for (const char* number : numbers) text += number_cell(std::string_view(number));
    return text;
  };
  EXPECT_THAT(html, HasSubstr(row("properties × kernels × dtypes", {"1", "1", "0", "1", "–"})));
  EXPECT_THAT(html, HasSubstr(row("cases", {"35", "2", "0", "63", "0"})));
  EXPECT_THAT(html, HasSubstr("Covered: 3 of the catalogue's"));
  EXPECT_THAT(html, HasSubstr("a case was judged for 2 of 3 properties × kernels × dtypes, and 37.0 % of all cases"));
}

TEST(Verdicts, HaveTheSuitesOwnScoreWhereItWasMeasured) {
  const fake::Folder folder;
  EXPECT_EQ(audit_html(""), "");
  EXPECT_THAT(audit_html(folder.path()), HasSubstr("attest audit --out"));
  write_file_atomically(folder / "audit.json", audit_text);
  const std::string html = verdicts_html({}, folder.path().string());
  EXPECT_THAT(html, HasSubstr("<b>85 of 86</b> planted faults caught within 500 cases each, all but "
                              "fault:&lt;/td&gt;&lt;script&gt;; <b>3 of 1200</b> cases"));
  for (const char* text : {"{}", "[", R"({"schema":"attest-audit/2"})"}) {
    try {
      (void)parse_audit_score(text, "it");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("it: "));
    }
  }
}

TEST(NotCovered, NamesWhatWasNotAskedNotStartedAndNotJudged) {
  Tally drawn = tally(30);
  drawn.drawn = {{"scores:zeros", 30}, {"mask:none", 30}};
  Journal journal = journal_of({{{"attention.oracle", "a", "f32"}, drawn}, {{evil, evil, "f32"}, tally(0, 0, 4)}});
  journal.batches[1].tally.reasons = {{evil, 4}};
  journal.kernels.push_back({"exec:" + evil, "", "no such " + evil});
  const std::string html = uncovered_html(summarise(journal, ""));
  EXPECT_THAT(html,
              HasSubstr("<dt>not started</dt><dd>" + escaped("exec:" + evil) + ": " + escaped("no such " + evil)));
  EXPECT_THAT(html, HasSubstr("masked.query-deletion"));
  EXPECT_THAT(html, Not(HasSubstr("attention.oracle,")));
  EXPECT_THAT(html, HasSubstr("mask:padding"));
  EXPECT_THAT(html, Not(HasSubstr("mask:none")));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">" + escaped(evil) + "</th><td>" + escaped(evil) + " f32</td><td>" +
                              escaped(evil) + " (4 of 4 cases)</td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">" + escaped(evil) + "</th>" + number_cell(4)));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace attest
