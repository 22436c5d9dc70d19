// The table of a run's cases: each once, as it was judged, whatever the jobs, an interruption and words in it.
#include "reports/run/case_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "core/support/files.h"
#include "reports/run/engine.h"
#include "reports/test/fakes.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using testing::Each;
using testing::HasSubstr;

using Row = std::map<std::string, std::string>;

/// Fields of RFC 4180, read by its rules alone.
std::vector<std::vector<std::string>> fields_of(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += '"', ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      lines.back().emplace_back();
    } else if (!quoted && c == '\n') {
      lines.push_back({""});
    } else {
      lines.back().back() += c;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(lines.back(), std::vector<std::string>{""}) << "the last line ends";
  lines.pop_back();
  return lines;
}

std::vector<Row> rows_in(const std::filesystem::path& file) {
  const std::vector<std::vector<std::string>> lines = fields_of(read_file(file));
  std::vector<Row> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].size(), lines[0].size()) << "line " << i + 1;
    Row row;
    for (std::size_t j = 0; j < std::min(lines[i].size(), lines[0].size()); ++j) row[lines[0][j]] = lines[i][j];
    rows.push_back(std::move(row));
  }
  return rows;
}

void run_fakes(const std::filesystem::path& folder, CaseTable& table, std::int64_t cases, bool resumes) {
  Plan plan;
  plan.properties = {&fake::first_property, &fake::second_property};
  plan.kernels.push_back(std::make_unique<fake::FakeKernel>("fake:a"));
  plan.kernels.push_back(std::make_unique<fake::FakeKernel>("fake:b"));
  plan.cases = cases, plan.jobs = 3, plan.table = &table;
  const RunFolder run(folder, resumes ? RunFolder::Mode::resume : RunFolder::Mode::overwrite);
  const Journal earlier = resumes ? read_journal(folder) : Journal{};
  JournalWriter writer(run.journal());
  if (!resumes) writer.append(RunRecord{.seed = 1, .case_files = {}});
  fake::CountingObserver observer;
  EXPECT_EQ(Engine(plan, fake::road(), run, writer, earlier, observer).run(), Ending::complete);
}

std::string tally_text(const std::map<std::string, std::int64_t>& counts) {
  std::string text;
  for (const auto& [word, count] : counts) text += fmt::format("{} {}\n", word, count);
  return text;
}

TEST(CaseTable, HasEachCaseOnceWithTheVerdictOfTheJournal) {
  const fake::Folder folder;
  const std::filesystem::path file = folder / "t.csv";
  {
    CaseTable table(file, /*resumes=*/false);
    run_fakes(folder / "run", table, 100, /*resumes=*/false);
  }
  {
    CaseTable table(file, /*resumes=*/true);
    run_fakes(folder / "run", table, 300, /*resumes=*/true);
  }
  const std::vector<Row> rows = rows_in(file);
  std::set<std::string> met;
  std::map<std::string, std::int64_t> outcomes, kept;
  for (const Row& row : rows) {
    EXPECT_TRUE(met.insert(row.at("property") + row.at("kernel") + row.at("dtype") + row.at("k")).second);
    ++outcomes[row.at("outcome")];
  }
  for (const BatchRecord& batch : read_journal(folder / "run").batches) {
    kept["held"] += batch.tally.held, kept["violated"] += batch.tally.violated, kept["skipped"] += batch.tally.skipped;
    kept["excused"] += batch.tally.excused, kept["inconclusive"] += batch.tally.inconclusive;
  }
  std::erase_if(kept, [](const auto& one) { return one.second == 0; });
  EXPECT_EQ(tally_text(outcomes), tally_text(kept));
  EXPECT_GT(rows.size(), 1000U);
}

TEST(CaseTable, SaysWhatIsKnownAndLeavesEmptyWhatIsNot) {
  const fake::Folder folder;
  const std::string command =
      "$attest check --quiet --kernel builtin:flash --kernel fault:scale-of-all-heads --dtype bf16 --property "
      "attention.oracle,multihead.oracle --cases 40 --jobs 1 --out run --table t.csv";
  expect_status(folder, command, 1);
  std::int64_t violated = 0;
  for (const Row& row : rows_in(folder / "t.csv")) {
    EXPECT_EQ(row.at("dtype"), "bf16");
    if (row.at("outcome") == "skipped") {
      EXPECT_EQ(row.at("share"), "");
      EXPECT_NE(row.at("reason"), "");
      continue;
    }
    EXPECT_THAT(row.at("drawn"), HasSubstr(row.at("operation") == "attention" ? "scores:" : "matrices:"));
    if (row.at("outcome") != "held" && row.at("outcome") != "violated") continue;
    const double share = std::stod(row.at("share")), error = std::stod(row.at("error"));
    const double allowed = std::stod(row.at("allowed"));
    EXPECT_EQ(row.at("outcome") == "violated", !(share <= 1)) << row.at("k");
    if (allowed > 0 && share > 0) {
      EXPECT_NEAR(error / allowed / share, 1, 1e-6) << row.at("k");
    }
    violated += row.at("outcome") == "violated" ? 1 : 0;
    EXPECT_GE(std::stoll(row.at("keys")), 1);
    if (!row.at("condition").empty()) {
      EXPECT_GE(std::stod(row.at("condition")), 1);
    }
  }
  EXPECT_GT(violated, 0);
}

TEST(CaseTable, KeepsWordsOfKernelsInTheirField) {
  Walked walked;
  for (const std::string evil : {"a,b", "say \"no\"", "two\nlines", " led", "\x1b[31m", "\xff", "=1+1"}) {
    walked.verdict = {.outcome = Outcome::inconclusive, .reason = evil};
    const std::vector<std::vector<std::string>> lines = fields_of(CaseTable::row({"p", evil, "f32"}, 3, walked));
    ASSERT_EQ(lines.size(), 1U) << evil;
    ASSERT_EQ(lines[0].size(), 31U) << evil;
    EXPECT_EQ(lines[0][3], "3");
    EXPECT_EQ(lines[0].back().find('\x1b'), std::string::npos);
  }
  walked.verdict.reason = "a, \"b\"";
  EXPECT_EQ(fields_of(CaseTable::row({"p", "k", "f32"}, 3, walked))[0].back(), "a, \"b\"");
}

TEST(CaseTable, IsRefusedWhereItCannotBe) {
  const fake::Folder folder;
  EXPECT_THROW(CaseTable(folder / "absent/t.csv", false), UsageError);
  expect_refused("check --table t.parquet", "--table writes CSV");
}

}  // namespace
}  // namespace attest
