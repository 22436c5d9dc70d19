// attest survey as a user meets it: recipes, runs that go on, parts, the table and the page, mistakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/survey/survey_row.h"
#include "reports/test/program_checks.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

using fake::Folder;

void write_list(const Folder& folder, const std::string& text) {
  write_file_atomically(folder / "paths.toml", text);
}
std::string path_of(const std::string& path, const std::string& kernel, const std::string& more = "") {
  return fmt::format(
      "[[path]]\nlibrary = \"Own\"\nversions = [\"1\"]\npath = \"{}\"\nkernel = \"{}\"\ndtypes = [\"f32\"]\n{}\n", path,
      kernel, more);
}
std::vector<SurveyRow> rows_in(const Folder& folder, const std::string& survey) {
  return parse_survey(read_file(folder / (survey + "/survey.json")), survey);
}
const SurveyRow& row_in(const std::vector<SurveyRow>& rows, const std::string& path, const std::string& output) {
  const auto found = std::ranges::find_if(rows, [&](const SurveyRow& row) {
    return row.path == path && row.output == output && row.operation != "multihead";
  });
  if (found == rows.end()) throw std::runtime_error("no row of " + path);
  return *found;
}

TEST(SurveyProgram, MakesATableWithInputsThatReplay) {
  const Folder folder;
  write_list(folder,
             path_of("right", "builtin:flash") + path_of("wrong", "fault:bias-sign", "findings = [\"planted\"]"));
  const std::string said = output_of(folder, "$attest survey paths.toml --out s --cases 20");
  EXPECT_THAT(said,
              testing::AllOf(Says("\nOwn 1: wrong  f32 "), Says("  violated  "), Says("\npage: s/survey.html\n")));
  const std::vector<SurveyRow> rows = rows_in(folder, "s");
  const SurveyRow &right = row_in(rows, "right", "out"), &wrong = row_in(rows, "wrong", "out");
  EXPECT_EQ(right.verdict, Outcome::held);
  EXPECT_GT(right.judged, 100);
  EXPECT_EQ(right.searched, 20);
  EXPECT_GT(right.worst_share, 0.01);
  EXPECT_LE(right.worst_share, 1);
  EXPECT_GT(right.by_keys.size(), 2U);
  EXPECT_THAT(right.found, Says("\"accumulate\":\"f32\""));
  EXPECT_EQ(row_in(rows, "right", "dq").operation, "attention_backward");
  EXPECT_EQ(right.promise, Outcome::held);
  EXPECT_EQ(wrong.verdict, Outcome::violated);
  EXPECT_EQ(wrong.promise, std::nullopt) << "its manifest states none";
  ASSERT_FALSE(wrong.wrong.empty());
  EXPECT_THAT(wrong.wrong[0].what, Says("what the mask adds"));
  // By the kernel that the list names, wherever the table lies.
  expect_status(folder, fmt::format("cd s && $attest replay {}", wrong.wrong[0].input), 1);
  expect_status(folder, fmt::format("cd s && $attest replay {}", right.worst_input));
  EXPECT_THAT(read_file(folder / "s/survey.html"), Says("What is wrong"));
}

TEST(SurveyProgram, RunsNothingTwiceAndGoesOnWhereItWasEnded) {
  const Folder folder;
  write_list(folder, path_of("right", "builtin:two-pass"));
  // Ended in the middle of its check, as soon as that has begun.
  const ShellResult ended = shell(
      folder,
      "$attest survey paths.toml --out s --cases 60 --quiet & until [ -s s/cells/Own-1/right/f32/check/run.jsonl ]; "
      "do sleep 0.05; done; kill -INT $!; wait $!; exit $?");
  EXPECT_EQ(ended.status, 130) << ended.output;
  const std::filesystem::path check = folder / "s/cells/Own-1/right/f32/check/run.jsonl";
  ASSERT_TRUE(std::filesystem::exists(check));
  EXPECT_FALSE(std::filesystem::exists(folder / "s/survey.json"));
  EXPECT_THAT(output_of(folder, "$attest survey paths.toml --out s --cases 60"), Says("Own 1: right in f32: check"));
  const std::string journal = read_file(check), table = read_file(folder / "s/survey.json");
  EXPECT_EQ(output_of(folder, "$attest survey paths.toml --out s --cases 60").find("right in f32: "),
            std::string::npos);
  EXPECT_EQ(read_file(check), journal);
  EXPECT_EQ(read_file(folder / "s/survey.json"), table);
}

TEST(SurveyProgram, InstallsByARecipeAndAgainByAnotherOne) {
  const Folder folder;
  const std::string kernel = python_kernel(folder, "k", "1");
  if (kernel.empty()) GTEST_SKIP() << "Python lacks numpy";
  const auto write_recipe = [&](const std::string& text) { write_file_atomically(folder / "recipe.sh", text); };
  // A folder whose name a shell would take apart.
  write_recipe("set -eu\necho fetching\ncp k.py \"$1/kernel of $2.py\"\n");
  write_list(folder,
             "[[path]]\nlibrary = \"Own\"\nversions = [\"1\"]\npath = \"py\"\nrecipe = \"recipe.sh\"\n"
             "kernel = \"exec:/usr/bin/python3 {library}/'kernel of 1.py'\"\ndtypes = [\"f64\"]\n");
  const std::string run = "$attest survey paths.toml --out 'a survey' --cases 10";
  EXPECT_THAT(output_of(folder, run), Says("Own 1: recipe.sh"));
  const SurveyRow row = row_in(rows_in(folder, "a survey"), "py", "out");
  EXPECT_NE(row.verdict, Outcome::violated);
  EXPECT_GT(row.judged, 0);
  EXPECT_EQ(row.recipe, "recipe.sh");
  EXPECT_EQ(row.kernel, "exec:/usr/bin/python3 {library}/'kernel of 1.py'");
  EXPECT_EQ(output_of(folder, run).find("recipe.sh"), std::string::npos) << "once";
  // One that fails leaves the path out, and says why.
  write_recipe("echo no network >&2; exit 1\n");
  std::filesystem::remove_all(folder / "a survey/cells");
  EXPECT_THAT(output_of(folder, run, 3), Says("it could not be installed: no network"));
}

TEST(SurveyProgram, InstallsOnceForPartsThatShareAFolder) {
  const Folder folder;
  write_file_atomically(folder / "recipe.sh", "set -eu\necho once >> made\nsleep 1\ntouch \"$1/done\"\n");
  std::string list;
  for (const char* const path : {"a", "b", "c", "d"}) list += path_of(path, "builtin:flash", "recipe = \"recipe.sh\"");
  write_list(folder, list);
  expect_status(folder,
                "for i in 0 1 2 3; do $attest survey paths.toml --out s --cases 1 --shard $i/4 --quiet & done; wait");
  EXPECT_EQ(read_file(folder / "made"), "once\n");
  const std::string table = output_of(folder, "$attest survey paths.toml --out s --no-runs");
  for (const char* const path : {"a", "b", "c", "d"}) EXPECT_THAT(table, Says(fmt::format("Own 1: {} ", path)));
  EXPECT_EQ(table.find("not run"), std::string::npos) << table;
}

TEST(SurveyProgram, JoinsPartsByTheirTables) {
  const Folder folder;
  write_list(folder, path_of("a", "builtin:flash") + path_of("b", "fault:bias-sign") + path_of("c", "exec:./none"));
  for (const char* part : {"0", "1"})
    expect_status(folder,
                  fmt::format("$attest survey paths.toml --out part-{0} --shard {0}/2 --cases 10 --quiet", part));
  EXPECT_THAT(read_file(folder / "part-1/survey.json"), Says("it was not checked"));
  expect_status(folder, "$attest survey part-0 part-1/survey.json --out whole --quiet");
  const std::vector<SurveyRow> rows = rows_in(folder, "whole");
  expect_status(folder, "$attest replay whole/" + row_in(rows, "a", "out").worst_input);
  expect_status(folder, "$attest replay whole/" + row_in(rows, "b", "out").wrong.at(0).input, 1);
  EXPECT_TRUE(std::ranges::any_of(rows, [](const SurveyRow& row) { return row.path == "c" && !row.not_run.empty(); }));
  // A table of others names no file outside of its folder.
  std::string table = read_file(folder / "whole/survey.json");
  const std::string input = row_in(rows, "a", "out").worst_input;
  table.replace(table.find(input), input.size(), "cases/../../paths.toml");
  write_file_atomically(folder / "evil.json", table);
  EXPECT_THAT(output_of(folder, "$attest survey evil.json part-0 --out joined", 2), Says("is no file of its cases/"));
}

TEST(SurveyProgram, RefusesMistakesInOneLine) {
  expect_refused("survey --out s", "attest survey needs LIST");
  expect_refused("survey paths.toml", "attest survey needs --out DIR");
  expect_refused("survey a.toml b.toml --out s", "attest survey takes one LIST, not 2");
  expect_refused("survey a.json b.toml --out s", "a list and tables cannot be joined");
  expect_refused("survey a.toml --out s --time 1s --cases 3", "--time and --cases exclude each other");
  expect_refused("survey none.toml --out s", "none.toml");
  const Folder folder;
  write_list(folder, path_of("a", "builtin:flash"));
  EXPECT_THAT(one_line_of(folder, "$attest survey paths.toml --out s --only 'x*'", 2), Says("matches no cell"));
}

}  // namespace
}  // namespace attest
