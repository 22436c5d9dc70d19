// What the guides for people name: files that are there, commands, options and presets that exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "attest/files.h"
#include "option_table.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

const fs::path top = ATTEST_SOURCE_DIR;
constexpr const char* documents[] = {
    "README.md",          ".github/CONTRIBUTING.md", ".github/SECURITY.md",        "CHANGELOG.md",
    "reports/numbers.md", "reports/findings.md",     "reports/examples/README.md", "reports/examples/cost.md"};

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(at); end != std::string::npos; end = text.find(at, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + at.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// What stands in blocks and spans of code, each on a line of its own.
std::string code_of(const std::string& markdown) {
  std::string code;
  const std::vector<std::string> blocks = split(markdown, "```");
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 2 != 0) code += blocks[i] + "\n";
    if (i % 2 != 0) continue;
    const std::vector<std::string> spans = split(blocks[i], "`");
    for (std::size_t j = 1; j < spans.size(); j += 2) code += spans[j] + "\n";
  }
  return "\n" + code;
}

TEST(Guides, LinkToWhatIsThere) {
  std::size_t links = 0;
  for (const char* document : documents) {
    const fs::path file = top / document;
    for (const std::string& link : matches(read_file(file), R"(\]\(([^)#]+))")) {
      if (link.starts_with("https://")) continue;
      EXPECT_TRUE(fs::exists(file.parent_path() / link)) << document << " links to " << link;
      ++links;
    }
  }
  EXPECT_GT(links, 40U);
}

TEST(Guides, NameSourcesThatAreThere) {
  std::size_t named = 0;
  for (const char* document : {"reports/numbers.md", ".github/CONTRIBUTING.md", "README.md"}) {
    for (const std::string& path :
         matches(read_file(top / document), "`((?:core|fuzz|properties|reports)/[A-Za-z0-9_./-]*)`")) {
      EXPECT_TRUE(fs::exists(top / path)) << document << " names " << path;
      ++named;
    }
  }
  EXPECT_GT(named, 20U);
}

TEST(Guides, NameCommandsOptionsAndPresetsThatExist) {
  std::set<std::string> presets;
  const auto json = nlohmann::json::parse(read_file(top / "CMakePresets.json"));
  for (const char* kind : {"configurePresets", "testPresets", "buildPresets"})
    for (const auto& preset : json[kind]) presets.insert(preset["name"]);
  std::set<std::string> commands{"test"};
  for (const CommandRow& row : command_rows()) commands.insert(std::string(row.name));
  std::size_t named = 0;
  for (const char* document : documents) {
    const std::string text = code_of(read_file(top / document));
    for (const std::string& preset : matches(text, "--preset ([a-z]+)"))
      EXPECT_TRUE(presets.contains(preset)) << document << ": " << preset;
    for (const std::string& line : matches(text, "[\n(&] *(?:\\./)?(attest [a-z][^\n]*)")) {
      const std::string command = line.substr(7, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", 7) - 7);
      EXPECT_TRUE(commands.contains(command)) << document << ": " << line;
      ++named;
      // What follows test and bench are ctest's and the benchmarks' own.
      const auto row = std::ranges::find(command_rows(), std::string_view(command), &CommandRow::name);
      if (command == "test" || command == "bench" || row == command_rows().end()) continue;
      for (const std::string& option : matches(line.substr(0, line.find(" #")), " (--[a-z-]+)")) {
        const auto has = [&](const OptionRow& one) {
          return (one.commands & on(row->command)) != 0 && long_flag(one.flags) == option;
        };
        EXPECT_TRUE(std::ranges::any_of(option_rows(), has)) << document << ": " << option << " in " << line;
      }
    }
  }
  EXPECT_GT(named, 30U);
}

}  // namespace
}  // namespace attest
