// Words of kernels, manifests and journals that move what is around them, in every format that a report has.
#include "reports/test/formats/hostile_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reports/causes/causes.h"
#include "reports/conclusion/compare.h"
#include "reports/formats/answer.h"
#include "reports/formats/formats.h"
#include "reports/formats/html.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"
#include "reports/formats/summary_markdown.h"
#include "reports/formats/table.h"
#include "reports/page/print.h"
#include "reports/results/summary.h"
#include "reports/results/tolerance.h"
#include "reports/run/progress.h"
#include "reports/run_folder/run_folder.h"
#include "reports/sections/sections.h"
#include "reports/test/fakes.h"
#include "reports/test/journals.h"
#include "reports/test/json.h"
#include "reports/test/shell.h"
#include "reports/text/text.h"

namespace attest {
namespace {

using ::testing::HasSubstr;

/// The journal with an error that was measured, so that there are tolerances.
Journal hostile_journal(const std::string& evil) {
  Journal journal = fake::hostile_journal(evil);
  ErrorSample sample;
  sample.keys = 20, sample.elements = 10, sample.worst_error = 0x1p-20,
  sample.worst_utilisation = sample.worst_normal = 0.5;
  sample.atol.fill(0x1p-20);
  Verdict verdict{.utilisation = 0.5};
  verdict.errors = std::make_shared<ErrorSample>(sample);
  journal.batches[0].tally.add(0, verdict, "scores:gaussian values:gaussian scale:inverse-root");
  journal.kernels[0].manifest =
      nlohmann::json{{"name", evil}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return journal;
}

/// The same with a cause of its finding, which is told in place of the finding.
Journal with_cause(Journal journal, const std::string& evil) {
  const FindingRecord& finding = journal.findings.at(0);
  journal.meta.push_back(record_of(Cause{.kernel = finding.subject.kernel,
                                         .dtypes = {finding.subject.dtype},
                                         .properties = {finding.subject.property},
                                         .misreadings = {evil},
                                         .condition = evil,
                                         .cases = 3,
                                         .violated = 2,
                                         .others = 5,
                                         .others_violated = 0,
                                         .example = finding.subject,
                                         .example_k = finding.k}));
  return journal;
}

struct Format {
  std::string name;
  std::function<std::string(const Summary&, const Journal&)> text;
};
const std::vector<Format> formats = [] {
  std::vector<Format> all{
      {"answer", [](const Summary& s,
                    const Journal& j) { return answer_of(s, j, conclude(s), Ending::complete, 1, {.folder = "run"}); }},
      {"table", [](const Summary& s, const Journal&) { return table_of(s) + skipped_text(s) + note_text(s); }},
      {"finding", [](const Summary&, const Journal& j) { return describe(j.findings.at(0), "run"); }},
      {"warnings", [](const Summary& s, const Journal&) { return warning_text(s) + alarm_text(s); }},
      {"Markdown", [](const Summary& s, const Journal& j) { return to_markdown(s, j, "run", conclude(s)); }},
      {"TOML", [](const Summary& s, const Journal& j) { return tolerances_toml(tolerance_rows(s, j), s); }},
      {"CSV", [](const Summary& s, const Journal& j) { return tolerances_csv(tolerance_rows(s, j), s); }},
      {"JSON of tolerances",
       [](const Summary& s, const Journal& j) { return tolerances_json(tolerance_rows(s, j), s, j); }},
      {"JSON", [](const Summary& s, const Journal&) { return to_json(s); }},
      {"journal", [](const Summary&, const Journal& j) { return to_text(j); }},
      {"page", [](const Summary& s, const Journal& j) { return html_page(s, j, "run", conclude(s)); }},
  };
  for (const ReportFormat& one : report_formats) {
    all.push_back({std::string(one.option),
                   [&one](const Summary& s, const Journal& j) { return one.text(s, j, "run", conclude(s)); }});
  }
  return all;
}();

TEST(HostileWords, MoveNothingInAnyFormat) {
  const Journal calm = hostile_journal("calm");
  for (const Format& format : formats) {
    const std::string known = format.text(summarise(calm, ""), calm);
    EXPECT_FALSE(known.empty() && format.name != "warnings") << format.name;
    // The page carries a library of others, which may name such characters.
    const std::ptrdiff_t own = unseen_in(known);
    if (format.name != "page") {
      EXPECT_EQ(own, 0) << format.name;
    }
    for (const std::string& evil : hostile) {
      const Journal found = hostile_journal(evil);
      for (const Journal& journal : {found, with_cause(found, evil)}) {
        EXPECT_EQ(unseen_in(format.text(summarise(journal, ""), journal)), own)
            << format.name << " of " << testing::PrintToString(evil);
      }
    }
  }
}

// Or the above would be about nothing.
TEST(HostileWords, StandInTheAnswerAsFarAsTheyCanBeSeen) {
  for (const bool cause : {false, true}) {
    const Journal found = hostile_journal("a\u202Eb");
    const Journal journal = cause ? with_cause(found, "a\u202Eb") : found;
    const Summary summary = summarise(journal, "");
    const std::string answer = answer_of(summary, journal, conclude(summary), Ending::complete, 1, {.folder = "run"});
    EXPECT_THAT(answer, HasSubstr("a\uFFFDb"));
    EXPECT_EQ(answer.find("when ") != std::string::npos, cause) << answer;
  }
}

TEST(HostileWords, MoveNothingInWhatAReaderOfSarifShows) {
  for (const std::string& evil : hostile) {
    const Journal journal = hostile_journal(evil);
    const nlohmann::json log =
        parsed_json(to_sarif(summarise(journal, ""), journal, "run", conclude(summarise(journal, ""))));
    const std::function<void(const nlohmann::json&)> look = [&](const nlohmann::json& value) {
      if (value.is_object() && value.contains("text")) {
        EXPECT_EQ(unseen_in(value["text"].get<std::string>()), 0) << value;
      }
      if (value.is_structured()) std::ranges::for_each(value, look);
    };
    look(log);
  }
}

TEST(HostileWords, MoveNothingInAComparison) {
  for (const std::string& evil : hostile) {
    Comparison comparison;
    comparison.differences.push_back({Direction::worse, "verdict", "exec:" + evil, evil, "p" + evil, "was " + evil});
    for (const std::string& text : {changes_text(comparison), changes_json(comparison),
                                    html_of(changes_page({{}, {}, "", conclude({}, {.changes = comparison})}))})
      EXPECT_EQ(unseen_in(text), 0) << text;
  }
}

TEST(HostileWords, AreTheSameNamesToWhoReadsTheData) {
  const std::string evil = "a\u202Eb\u009Bc\U000E0041";
  const Journal journal = hostile_journal(evil);
  const Summary summary = summarise(journal, "");
  bool named = false;
  std::istringstream lines(to_text(journal));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json record = parsed_json(line);
    named = named || (record["kind"] == "batch" && record["kernel"] == "exec:" + evil);
  }
  EXPECT_TRUE(named) << to_text(journal);
  EXPECT_EQ(parsed_json(to_json(summary))["kernels"][0]["id"], "exec:" + evil);
  EXPECT_THAT(tolerances_toml(tolerance_rows(summary, journal), summary),
              HasSubstr("[\"a\\u202Eb\\u009Bc\\U000E0041\"."));
}

TEST(HostileWords, AreWordsOfAShellAllTheSame) {
  const fake::Folder folder;
  if (shell(folder, "command -v bash").status != 0) GTEST_SKIP() << "bash is not here";
  for (const std::string& evil : hostile) {
    const std::string quoted = shell_quoted("run '" + evil + "\\");
    EXPECT_EQ(unseen_in(quoted), 0) << quoted;
    std::ofstream(folder / "line.sh") << "printf %s " << quoted;
    EXPECT_EQ(shell(folder, "bash line.sh").output, "run '" + evil + "\\");
  }
  EXPECT_EQ(shell_quoted("größer 🚀"), "'größer 🚀'") << "what is seen stays readable";
}

TEST(HostileWords, AreOneLine) {
  EXPECT_EQ(one_line("a\u0085b\u2028c\nd"), "a b c d");
  EXPECT_EQ(one_line("\u202Eb\x9b"), "\uFFFDb\uFFFD");
  EXPECT_EQ(escaped("<\u202E\n\u0085>"), "&lt;\uFFFD\n\uFFFD&gt;");
  EXPECT_EQ(xml_escaped("<\u202E\n\u0085>"), "&lt;\uFFFD\n\uFFFD&gt;");
  EXPECT_EQ(code_span("a\u202Eb\u0085"), "`a\uFFFDb `");
}

}  // namespace
}  // namespace attest
