// The list of a survey: what it may say, and how a mistake in it is answered.
#include "reports/survey/library_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/test/says.h"
#include "core/test/temporary_folder.h"

namespace attest {
namespace {

using testing::ElementsAre;

constexpr const char* whole = R"([[path]]
library = "Lib"
versions = ["1.2", "2.0"]
path = "fast"
kernel = "exec:{library}/bin/python {list}/k.py fast"
recipe = "recipe.sh"
dtypes = ["f32", "bf16"]
forced = "by its name"
promises = "sums in f32"
findings = ["one", "two"]
properties = ["attention.oracle", "backward.*"]
timeout = "2m"
[[path]]
library = "Own"
versions = ["1"]
path = "flash"
kernel = "builtin:flash"
dtypes = ["f64"]
)";

TEST(LibraryPaths, AreReadAsTheListHasThem) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "recipe.sh", "");
  write_file_atomically(folder / "paths.toml", whole);
  const std::vector<LibraryPath> paths = read_library_paths(folder / "paths.toml");
  ASSERT_EQ(paths.size(), 3U);
  EXPECT_EQ(paths[0], (LibraryPath{.library = "Lib",
                                   .version = "1.2",
                                   .path = "fast",
                                   .kernel = "exec:{library}/bin/python {list}/k.py fast",
                                   .recipe = folder / "recipe.sh",
                                   .dtypes = {DType::f32, DType::bf16},
                                   .forced = "by its name",
                                   .promises = "sums in f32",
                                   .properties = {"attention.oracle", "backward.*"},
                                   .timeout = "2m",
                                   .findings = {"one", "two"}}));
  LibraryPath later = paths[0];
  later.version = "2.0";
  EXPECT_EQ(paths[1], later);
  EXPECT_EQ(paths[2].name(), "Own 1: flash");
  EXPECT_TRUE(paths[2].recipe.empty());
}

TEST(LibraryPaths, RefuseMistakesInALineThatNamesTheirs) {
  const std::string entry =
      "[[path]]\nlibrary = \"L\"\nversions = [\"1\"]\npath = \"p\"\nkernel = \"builtin:flash\"\ndtypes = [\"f32\"]\n";
  const auto refused = [](const std::string& text) {
    try {
      (void)parse_library_paths(text, "paths.toml");
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(entry), "accepted");
  EXPECT_THAT(refused("x ="), Says("paths.toml, line 1: this is not TOML"));
  EXPECT_THAT(refused("[[paths]]\n"), Says("line 1: unknown key \"paths\"; did you mean \"path\"?; every entry"));
  EXPECT_THAT(refused("path = 1\n"), Says("line 1: a path begins with [[path]]"));
  EXPECT_THAT(refused("path = [1]\n"), Says("a path must be a table"));
  EXPECT_THAT(refused("[[path]]\nlibary = \"x\"\n"), Says("line 2: unknown key \"libary\"; did you mean \"library\"?"));
  EXPECT_THAT(refused("[[path]]\nlibrary = \"L\"\n"),
              Says("line 1: the path has no path; it needs library, versions, path, kernel and dtypes"));
  EXPECT_THAT(refused("[[path]]\nlibrary = 3\n"), Says("line 2: library must be a text that is not empty"));
  const auto with = [&](const std::string& was, const std::string& now) {
    std::string text = entry;
    return refused(text.replace(text.find(was), was.size(), now));
  };
  EXPECT_THAT(with("[\"f32\"]", "[\"f33\"]"), Says("line 6: unknown dtype \"f33\""));
  EXPECT_THAT(with("[\"f32\"]", "[\"i32\"]"), Says("line 6: unknown dtype \"i32\""));
  EXPECT_THAT(with("[\"f32\"]", "[]"), Says("line 6: dtypes must name one at least"));
  EXPECT_THAT(with("[\"1\"]", "\"1\""), Says("line 3: versions must be an array of texts"));
  EXPECT_THAT(with("[\"1\"]", "[\"\"]"), Says("line 3: versions must be a text that is not empty"));
  EXPECT_THAT(with("builtin:flash", "exec:{library}/k"), Says("line 5: {library} is the folder that a recipe fills"));
  EXPECT_THAT(refused(entry + "recipe = \"none.sh\"\n"), Says("line 7: there is no file \"none.sh\""));
  EXPECT_THAT(refused(entry + "properties = [\"atention.*\"]\n"), Says("line 7: no property of attest list"));
  EXPECT_THAT(refused(entry + "timeout = \"soon\"\n"), Says("line 7: timeout is \"soon\""));
  EXPECT_THAT(refused(entry + entry), Says("line 7: \"L 1: p\" stands above already"));
}

TEST(LibraryPaths, HaveNamesOfFilesThatAreDistinct) {
  EXPECT_EQ(file_name_of("PyTorch-2.13.0"), "PyTorch-2.13.0");
  std::set<std::string> names;
  for (const char* text : {"a b", "a-b", "a/b", "../a", "..", ".a", "", "a  b", "ä"}) {
    const std::string name = file_name_of(text);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_FALSE(name.empty() || name == "." || name == "..") << text;
  }
}

}  // namespace
}  // namespace attest
