// The documents for people: files, headings, commands, options and presets that they name exist; their length and
// width; and what they must name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/commands/commands.h"
#include "reports/test/json.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

const fs::path top = source_folder();
/// The documents of the project at large, and every page of the guide.
std::vector<std::string> documents() {
  std::vector<std::string> all{
      "README.md",          ".github/CONTRIBUTING.md", ".github/SECURITY.md",        "CHANGELOG.md",
      "reports/numbers.md", "reports/findings.md",     "reports/examples/README.md", "reports/examples/cost.md"};
  for (const auto& page : fs::directory_iterator(top / "reports/guide"))
    all.push_back("reports/guide/" + page.path().filename().string());
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> lines_of(const std::string& document) {
  std::istringstream text(read_file(top / document));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

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

/// The width of a line in characters, without the addresses of its links.
std::size_t width_of(const std::string& line) {
  const std::string text = std::regex_replace(line, std::regex(R"(\]\([^)]*\)|https?://[^ )]*)"), "]");
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// What a link calls a heading: "Ask the kernel: `attest probe`" is ask-the-kernel-attest-probe.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ') anchor += '-';
    if (c == '-' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0)
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& document) {
  std::set<std::string> anchors;
  for (const std::string& heading : matches("\n" + read_file(document), "\n#+ ([^\n]+)"))
    anchors.insert(anchor_of(heading));
  return anchors;
}

TEST(Guides, LinkToWhatIsThere) {
  std::size_t links = 0;
  for (const std::string& document : documents()) {
    const fs::path file = top / document;
    for (const std::string& link : matches(read_file(file), R"(\]\(([^)#]+))")) {
      if (link.starts_with("https://")) continue;
      EXPECT_TRUE(fs::exists(file.parent_path() / link)) << document << " links to " << link;
      ++links;
    }
  }
  EXPECT_GT(links, 80U);
}

TEST(Guides, LinkToHeadingsThatAreThere) {
  std::size_t links = 0;
  for (const std::string& document : documents()) {
    const fs::path file = top / document;
    for (const std::string& link : matches(read_file(file), R"(\]\(([^):]*#[^)]+)\))")) {
      const std::size_t hash = link.find('#');
      const fs::path target = hash == 0 ? file : file.parent_path() / link.substr(0, hash);
      EXPECT_TRUE(anchors_of(target).contains(link.substr(hash + 1))) << document << " links to " << link;
      ++links;
    }
  }
  EXPECT_GE(links, 7U);
}

TEST(Guides, ReadmeIsShort) {
  EXPECT_LE(lines_of("README.md").size(), 150U);
}

// Tables and code are as wide as what they hold.
TEST(Guides, AreNoWiderThan120Characters) {
  EXPECT_EQ(width_of("α [β](../γ/δ.md) https://example.org/ε"), 7U);
  for (const std::string& document : documents()) {
    bool code = false;
    std::size_t number = 0;
    for (const std::string& line : lines_of(document)) {
      ++number;
      if (const std::size_t fence = line.find("```");
          fence != std::string::npos && fence == line.find_first_not_of(' '))
        code = !code;
      if (code || line.starts_with("|")) continue;
      EXPECT_LE(width_of(line), 120U) << document << ":" << number << ": " << line;
    }
    EXPECT_FALSE(code) << document << " has a block of code without an end";
  }
}

TEST(Guides, ReadmeNamesEveryCommandAndEveryPageOfTheGuide) {
  const std::string readme = read_file(top / "README.md");
  for (const Command& command : all_commands())
    EXPECT_NE(readme.find("| `attest " + std::string(command.name) + "` |"), std::string::npos) << command.name;
  for (const auto& page : fs::directory_iterator(top / "reports/guide")) {
    const std::string name = "reports/guide/" + page.path().filename().string();
    EXPECT_NE(readme.find("](" + name), std::string::npos) << name;
  }
}

// The tables of CONTRIBUTING: a floor in the first row, "`core/`", and its folders in the first cells below it.
TEST(Guides, MapEveryFolderOfEveryFloor) {
  std::set<fs::path> mapped;
  std::string floor;
  for (const std::string& line : lines_of(".github/CONTRIBUTING.md")) {
    if (!line.starts_with("| `")) continue;
    for (const std::string& name : matches(line.substr(0, line.find('|', 1)), "`([a-z_/]+)`")) {
      if (name.ends_with("/")) floor = name;
      const fs::path folder = name.ends_with("/") ? fs::path(name) : fs::path(floor) / name;
      EXPECT_TRUE(fs::is_directory(top / folder)) << folder;
      mapped.insert(folder);
    }
  }
  const std::set<std::string> of_every_floor{"test", "bench", "cmake"};
  for (const char* each : {"core", "properties", "fuzz", "reports"}) {
    for (const auto& folder : fs::directory_iterator(top / each)) {
      const std::string name = folder.path().filename().string();
      if (!folder.is_directory() || of_every_floor.contains(name) || name.starts_with("_")) continue;
      EXPECT_TRUE(mapped.contains(fs::path(each) / name)) << each << "/" << name << " is not in the map";
    }
  }
}

TEST(Guides, CiteTheVersionThatIsBuilt) {
  const auto built = matches(read_file(top / "CMakeLists.txt"), R"(project\(attest VERSION ([0-9.]+))");
  const auto cited = matches(read_file(top / "CITATION.cff"), R"(\nversion: ([0-9.]+)\n)");
  ASSERT_EQ(built.size(), 1U);
  EXPECT_EQ(cited, built);
}

TEST(Guides, NameSourcesThatAreThere) {
  std::size_t named = 0;
  for (const std::string& document : documents()) {
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
  const auto json = parsed_json(read_file(top / "CMakePresets.json"));
  for (const char* kind : {"configurePresets", "testPresets", "buildPresets"})
    for (const auto& preset : json[kind]) presets.insert(preset["name"]);
  // What follows test and bench are ctest's and the benchmarks' own.
  std::map<std::string, std::set<std::string>> commands{{"test", {}}};
  for (const Command& command : all_commands()) {
    std::set<std::string>& options = commands[std::string(command.name)];
    for (const ShownOption& option : command.options.shown()) options.insert(option.name());
  }
  std::size_t named = 0;
  for (const std::string& document : documents()) {
    const std::string text = code_of(read_file(top / document));
    for (const std::string& preset : matches(text, "--preset ([a-z]+)"))
      EXPECT_TRUE(presets.contains(preset)) << document << ": " << preset;
    for (const std::string& line : matches(text, "[\n(&] *(?:\\./)?(attest [a-z][^\n]*)")) {
      const std::string command = line.substr(7, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", 7) - 7);
      EXPECT_TRUE(commands.contains(command)) << document << ": " << line;
      ++named;
      const auto known = commands.find(command);
      if (known == commands.end() || known->second.empty()) continue;
      for (const std::string& option : matches(line.substr(0, line.find(" #")), " (--[a-z-]+)"))
        EXPECT_TRUE(known->second.contains(option)) << document << ": " << option << " in " << line;
    }
  }
  EXPECT_GT(named, 30U);
}

}  // namespace
}  // namespace attest
