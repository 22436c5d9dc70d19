#include "reports/command_line/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/support/files.h"
#include "reports/commands/commands.h"
#include "reports/test/fakes.h"

namespace attest {
namespace {

using Words = std::set<std::string>;

/// What bash offers at the end of each line, in a folder with the file "case.safetensors" and the folder "runs".
/// Nothing where bash is not here.
std::map<std::string, Words> offered(const std::vector<std::string>& lines) {
  const fake::Folder folder;
  std::ofstream(folder / "attest.bash") << bash_completion(all_commands());
  std::filesystem::create_directory(folder / "at");
  std::filesystem::create_directory(folder / "at/runs");
  std::ofstream(folder / "at/case.safetensors") << "";
  {
    std::ofstream file(folder / "lines");
    for (const std::string& line : lines) file << line << '\n';
  }
  std::ofstream(folder / "ask.bash") << R"(source ../attest.bash || exit 1
complete -p attest | grep -q -- '-F _attest' || exit 1
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE}
  _attest
  printf '>%s\n' "$COMP_LINE"
  for word in "${COMPREPLY[@]}"; do printf '%s\n' "$word"; done
done < ../lines
)";
  const std::string command = "cd '" + (folder / "at").string() + "' && bash --norc ../ask.bash > ../answers";
  if (std::system(command.c_str()) != 0) return {};
  std::map<std::string, Words> answers;
  std::istringstream text(read_file(folder / "answers"));
  std::string line, word;
  while (std::getline(text, word)) {
    if (word.starts_with('>')) {
      line = word.substr(1);
      answers[line] = {};
    } else {
      answers[line].insert(word);
    }
  }
  return answers;
}

TEST(Completion, OffersEveryOptionOfEveryCommandAndNoOther) {
  std::vector<std::string> lines;
  const std::vector<Command> commands = all_commands();
  for (const Command& command : commands) lines.push_back("attest " + std::string(command.name) + " -");
  const auto answers = offered(lines);
  ASSERT_EQ(answers.size(), lines.size());
  for (const Command& command : commands) {
    Words expected{"-h", "--help"};
    for (const ShownOption& option : command.options.shown())
      if (!option.positional) expected.insert(option.flags.begin(), option.flags.end());
    EXPECT_EQ(answers.at("attest " + std::string(command.name) + " -"), expected) << command.name;
  }
}

TEST(Completion, OffersTheValuesThatHaveNames) {
  std::vector<std::string> lines;
  std::map<std::string, Completions> expected;
  for (const Command& command : all_commands()) {
    for (const ShownOption& option : command.options.shown()) {
      if (option.value.empty() && !option.positional) continue;
      for (const std::string& spelling : option.positional ? std::vector<std::string>{""} : option.spellings) {
        const std::string line = "attest " + std::string(command.name) + " " + spelling + (spelling.empty() ? "" : " ");
        lines.push_back(line);
        expected.emplace(line, option.offer());
      }
    }
  }
  const auto answers = offered(lines);
  ASSERT_EQ(answers.size(), lines.size());
  for (const auto& [line, completions] : expected) {
    Words words(completions.words.begin(), completions.words.end());
    if (completions.files) words.insert({"case.safetensors", "runs"});
    if (completions.folders) words.insert("runs");
    EXPECT_EQ(answers.at(line), words) << line;
  }
}

TEST(Completion, UnderstandsALineAsItIsTyped) {
  const std::map<std::string, Words> expected{
      {"attest re", {"replay", "report"}},
      {"attest --ver", {"--version"}},
      {"./attest check --quiet --cas", {"--case", "--cases"}},
      // bash replaces what stands behind the colon, and behind the equals sign.
      {"attest check --kernel builtin:flash-", {"flash-exp2"}},
      {"attest check --kernel=builtin:flash-", {"flash-exp2"}},
      {"attest check --dtype f32,f", {"f32,f64", "f32,f32", "f32,f16"}},
      {"attest check --property=attention.or", {"attention.oracle"}},
      {"attest fuzz --objective law:attention.or", {"attention.oracle"}},
      {"attest prove --back-end s", {"sign", "symbolic"}},
      {"attest replay ca", {"case.safetensors"}},
      {"attest check --out ", {"runs"}},
      {"attest check --cases ", {}},
      {"attest list a", {}},
      {"attest list '*", {}},
  };
  std::vector<std::string> lines;
  lines.reserve(expected.size());
  for (const auto& [line, words] : expected) lines.push_back(line);
  EXPECT_EQ(offered(lines), expected);
}

// A word of the help that stands for names or files is one for which the shell offers some.
TEST(Completion, KnowsWhatEveryOptionTakes) {
  const Words without_names{"N", "NUMBER", "I/N", "TIME", "SIZE", "M,N,dk,dv,h", "B,H,KV,M,N,DK[,DV]", "CELL"};
  for (const Command& command : all_commands()) {
    for (const ShownOption& option : command.options.shown()) {
      if (option.value.empty() && !option.positional) continue;
      const Completions offered = option.offer();
      EXPECT_EQ(offered.words.empty() && !offered.files && !offered.folders, without_names.contains(option.value))
          << command.name << " " << option.name();
    }
  }
}

}  // namespace
}  // namespace attest
