#include "reports/command_line/manual.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "reports/command_line/help.h"
#include "reports/command_line/parse.h"
#include "reports/commands/commands.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

/// The text from `begin` to the next line that begins as `end`.
std::string section(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find("\n" + begin + "\n");
  if (at == std::string::npos) return {};
  const std::size_t next = text.find("\n" + end, at + begin.size());
  return text.substr(at, next - at);
}

std::string copied(std::string_view text) {
  std::string roff;
  for (const char c : text) roff += c == '-' ? std::string("\\-") : std::string(1, c);
  return roff;
}

TEST(Manual, HasEveryOptionOfEveryCommandInItsSection) {
  const std::vector<Command> commands = all_commands();
  const std::string page = man_page(commands);
  for (const Command& command : commands) {
    const std::string own = section(page, ".SS " + std::string(command.name), ".S");
    ASSERT_FALSE(own.empty()) << command.name;
    std::size_t items = 0, at = 0;
    while ((at = own.find("\n.TP\n", at + 1)) != std::string::npos) ++items;
    std::size_t expected = 1;  // --help
    for (const ShownOption& option : command.options.shown()) {
      ++expected;
      const std::string item = "\n.TP\n.B " + copied(option.usage()) + "\n";
      EXPECT_NE(own.find(item), std::string::npos) << command.name << " " << option.name();
    }
    EXPECT_EQ(items, expected) << command.name;
    EXPECT_NE(own.find("Example:"), std::string::npos) << command.name;
  }
}

TEST(Manual, HelpHasTheSameAndAnExample) {
  const std::vector<Command> commands = all_commands();
  for (const Command& command : commands) {
    const std::string help = command_help(command);
    EXPECT_TRUE(help.ends_with("\nexample: " + std::string(command.example) + "\n")) << help;
    for (const ShownOption& option : command.options.shown())
      EXPECT_NE(help.find("\n  " + option.usage()), std::string::npos) << command.name << " " << option.name();
  }
  for (const ShownOption& option : program_options())
    EXPECT_NE(program_help(commands).find(option.usage()), std::string::npos) << option.name();
}

TEST(Manual, ExamplesAreCommandLinesThatAreTaken) {
  for (const Command& command : all_commands()) {
    // The examples quote whole words only.
    std::vector<std::string> words{""};
    bool quoted = false;
    for (const char c : command.example) {
      if (c == '\'') quoted = !quoted;
      if (c == ' ' && !quoted) words.emplace_back();
      if (c != '\'' && (c != ' ' || quoted)) words.back() += c;
    }
    std::vector<const char*> argv;
    argv.reserve(words.size());
    for (const std::string& word : words) argv.push_back(word.c_str());
    const std::vector<Command> commands = all_commands();
    EXPECT_EQ(parse(commands, argv).command->name, command.name) << command.example;
  }
}

TEST(Manual, FormatsWithoutAWarning) {
  const fake::Folder folder;
  std::ofstream(folder / "attest.1") << man_page(all_commands());
  const std::string file = "'" + (folder / "attest.1").string() + "'";
  const auto there = [](const char* program) {
    return std::system(("command -v " + std::string(program) + " > /dev/null").c_str()) == 0;
  };
  bool formatted = false;
  if (there("mandoc")) {
    EXPECT_EQ(std::system(("mandoc -T lint -W style " + file).c_str()), 0);
    formatted = true;
  }
  if (there("groff")) {
    EXPECT_EQ(std::system(("test -z \"$(groff -man -ww -z -T ascii " + file + " 2>&1 | tee /dev/stderr)\"").c_str()),
              0);
    formatted = true;
  }
  if (!formatted) GTEST_SKIP() << "neither mandoc nor groff is here";
}

}  // namespace
}  // namespace attest
