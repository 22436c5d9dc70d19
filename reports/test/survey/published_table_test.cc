// The table that the project publishes: its list, its data and its inputs.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "core/problem/case.h"
#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/survey/library_paths.h"
#include "reports/survey/survey_row.h"

namespace attest {
namespace {

std::string table_folder() {
  return source_folder() + "/reports/table/";
}
std::vector<SurveyRow> published() {
  return parse_survey(read_file(table_folder() + "survey.json"), "survey.json");
}

TEST(PublishedTable, HasFifteenCodePathsOfNineLibrariesWithInputs) {
  std::set<std::string> libraries, paths;
  for (const SurveyRow& row : published()) {
    if (!row.not_run.empty()) continue;
    libraries.insert(row.library), paths.insert(row.library + ": " + row.path);
    EXPECT_GT(row.judged + row.searched, 0) << path_words(row);
    if (!row.worst_input.empty()) {
      const Case c = decode_case(read_file(table_folder() + row.worst_input), row.worst_input);
      EXPECT_EQ(c.provenance.kernel, row.kernel) << row.worst_input;
    }
    // What is wrong has an input, and is told where its cause is told.
    if (row.verdict == Outcome::violated && !row.wrong.empty()) {
      EXPECT_FALSE(row.wrong.front().input.empty()) << path_words(row);
    }
    for (const WrongPath& wrong : row.wrong)
      if (!wrong.input.empty()) (void)decode_case(read_file(table_folder() + wrong.input), wrong.input);
  }
  EXPECT_GE(libraries.size(), 9U);
  EXPECT_GE(paths.size(), 15U);
}

TEST(PublishedTable, IsOfTheListThatStandsBesideIt) {
  std::set<std::string> listed, told;
  for (const LibraryPath& path : read_library_paths(table_folder() + "paths.toml")) listed.insert(path.name());
  for (const SurveyRow& row : published()) told.insert(path_words(row));
  EXPECT_EQ(told, listed);
  EXPECT_EQ(joined(published()), published());
}

TEST(PublishedTable, HasNoFilesThatItDoesNotName) {
  const std::string data = read_file(table_folder() + "survey.json");
  for (const auto& file : std::filesystem::directory_iterator(table_folder() + "cases")) {
    const std::string name = "cases/" + file.path().filename().string();
    EXPECT_NE(data.find(name), std::string::npos) << name;
  }
  EXPECT_NE(read_file(table_folder() + "survey.html").find("Accuracy of attention kernels"), std::string::npos);
}

}  // namespace
}  // namespace attest
