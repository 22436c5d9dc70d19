#include "reports/command_line/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

OptionList program_flags(CommandLine& line) {
  OptionList list;
  list.flag("-h,--help", line.help, "this text; attest COMMAND --help for its options");
  list.flag("--version", line.version, "the version");
  list.flag("--man-page", line.man_page, "the manual page of every command: attest --man-page | man -l -");
  list.flag("--bash-completion", line.bash_completion, "completion for bash: source <(attest --bash-completion)");
  return list;
}

constexpr ExitStatus statuses[] = {
    {0, "held (fuzz: no finding; replay: not reproduced)"},
    {1, "violated (replay: reproduced)"},
    {2, "wrong command or input"},
    {3, "a kernel could not be loaded, or nothing could be checked"},
    {4, "inconclusive, or a --kernel or --property that was judged in no case"},
    {130, "interrupted"},
};

void refuse_leftovers(const Command& command, const std::vector<std::string>& leftovers) {
  if (leftovers.empty()) return;
  const std::string word = leftovers.front().substr(0, leftovers.front().find('='));
  if (word.starts_with("-")) {
    std::vector<std::string> known{"--help"};
    for (const ShownOption& option : command.options.shown())
      if (!option.positional) known.push_back(option.name());
    throw UsageError(fmt::format("unknown option {} of attest {}{}", in_quotes(word), command.name,
                                 suggestion(word, known, /*list_up_to=*/6)));
  }
  throw UsageError(fmt::format("unexpected argument {} of attest {}; see attest {} --help", in_quotes(word),
                               command.name, command.name));
}

[[noreturn]] void refuse_unknown(const std::string& word, std::span<const Command> commands) {
  if (word.starts_with("-")) {
    std::vector<std::string> known;
    for (const ShownOption& option : program_options()) known.push_back(option.name());
    throw UsageError(fmt::format("unknown option {}{}", in_quotes(word), suggestion(word, known)));
  }
  std::vector<std::string_view> names;
  for (const Command& command : commands) names.push_back(command.name);
  throw UsageError(fmt::format("unknown command {}{}", in_quotes(word), suggestion(word, names)));
}

/// An option without the value that it takes, at the end of the line or before another option, which the parser would
/// take for the value; and a value for one that takes none.
void refuse_missing_values(std::span<const Command> commands, Arguments words) {
  const auto named = [&](std::string_view word) { return std::ranges::find(commands, word, &Command::name); };
  const auto first = std::ranges::find_if(words, [&](std::string_view word) { return named(word) != commands.end(); });
  if (first == words.end()) return;
  const Command& command = *named(*first);
  const std::vector<ShownOption> options = command.options.shown();
  const auto name_in = [](std::string_view word) { return word.substr(0, word.find('=')); };
  const auto written = [&](std::string_view word) {
    return std::ranges::find_if(options, [&](const ShownOption& option) {
      return std::ranges::find(option.spellings, word) != option.spellings.end();
    });
  };
  const auto is_option = [&](std::string_view word) {
    return word == "-h" || word == "--help" || written(name_in(word)) != options.end();
  };
  for (auto at = first + 1; at != words.end(); ++at) {
    const std::string_view word = *at, name = name_in(word);
    const auto option = written(name);
    if (option == options.end()) continue;
    const bool attached = word.size() > name.size();
    if (option->value.empty()) {
      if (attached)
        throw UsageError(fmt::format("{} has a value, {}; it takes none: write {}", name,
                                     in_quotes(word.substr(name.size() + 1)), name));
      continue;
    }
    const bool last = at + 1 == words.end();
    const bool missing = attached ? word.size() == name.size() + 1 : last || is_option(at[1]);
    if (missing) {
      throw UsageError(fmt::format("{} has no value{}; it takes one: write {} {} (see attest {} --help)", name,
                                   attached || last ? "" : fmt::format(", {} follows it", in_quotes(at[1])), name,
                                   option->value, command.name));
    }
    if (!attached) ++at;
  }
}

}  // namespace

CommandLine parse(std::span<const Command> commands, Arguments words) {
  CommandLine line;
  const OptionList program = program_flags(line);
  CLI::App& app = *program.app();
  app.name("attest");
  for (const Command& command : commands) {
    CLI::App& own = *app.add_subcommand(command.options.app());
    own.name(std::string(command.name));
    own.add_flag_function("-h,--help", [&line](std::int64_t) { line.help = true; })->group("");
  }
  if (!words.empty()) refuse_missing_values(commands, words.subspan(1));
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const Command& command : commands) {
    const CLI::App& own = *command.options.app();
    if (!own.parsed()) continue;
    if (line.command != nullptr) {
      throw UsageError(
          fmt::format("attest runs one command, not {} and {}; a folder or file of that name is written ./{}",
                      line.command->name, command.name, command.name));
    }
    line.command = &command;
    if (command.options.passed_on() != nullptr) {
      *command.options.passed_on() = own.remaining();
    } else {
      refuse_leftovers(command, own.remaining());
    }
  }
  if (const std::vector<std::string> leftovers = app.remaining(); !leftovers.empty())
    refuse_unknown(leftovers.front(), commands);
  if (line.help || line.version || line.man_page || line.bash_completion) return line;
  if (line.command != nullptr) line.command->refuse();
  return line;
}

std::vector<ShownOption> program_options() {
  CommandLine line;
  return program_flags(line).shown();
}

std::span<const ExitStatus> exit_statuses() {
  return statuses;
}

}  // namespace attest
