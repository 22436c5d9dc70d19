#include "reports/command_line/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>
#include <string_view>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/command_line/option_rules.h"
#include "reports/command_line/option_table.h"
#include "reports/run/interrupt.h"

namespace attest {
namespace {

void refuse_leftovers(const CommandRow& command, const std::vector<std::string>& leftovers) {
  if (leftovers.empty()) return;
  const std::string word = leftovers.front().substr(0, leftovers.front().find('='));
  std::vector<std::string_view> known{"--help"};
  for (const OptionRow& row : option_rows()) {
    if ((row.commands & on(command.command)) != 0 && row.flags.front() == '-') known.push_back(long_flag(row.flags));
  }
  if (word.starts_with("-")) {
    throw UsageError(fmt::format("unknown option {} of attest {}{}", in_quotes(word), command.name,
                                 suggestion(word, known, /*list_up_to=*/6)));
  }
  throw UsageError(fmt::format("unexpected argument {} of attest {}; see attest {} --help", in_quotes(word),
                               command.name, command.name));
}

/// The option of a command that is written so; null where there is none.
const OptionRow* option_written(const CommandRow& command, std::string_view word) {
  const auto is_it = [&](const OptionRow& row) {
    return (row.commands & on(command.command)) != 0 && std::ranges::count(spellings_of(row), word) > 0;
  };
  const auto row = std::ranges::find_if(option_rows(), is_it);
  return row == option_rows().end() ? nullptr : &*row;
}

/// An option without the value that it takes, at the end of the line or before another option, which the parser would
/// take for the value; and a value for one that takes none.
void refuse_missing_values(std::span<const char* const> words) {
  const auto is_command = [](std::string_view word) {
    return std::ranges::count(command_rows(), word, &CommandRow::name) > 0;
  };
  const auto first = std::ranges::find_if(words, is_command);
  if (first == words.end()) return;
  const CommandRow& command = *std::ranges::find(command_rows(), std::string_view(*first), &CommandRow::name);
  const auto name_in = [](std::string_view word) { return word.substr(0, word.find('=')); };
  const auto is_option = [&](std::string_view word) {
    return word == "-h" || word == "--help" || option_written(command, name_in(word)) != nullptr;
  };
  for (auto at = first + 1; at != words.end() && command.command != Command::bench; ++at) {
    const std::string_view word = *at, name = name_in(word);
    const OptionRow* const row = option_written(command, name);
    if (row == nullptr || row->positional()) continue;
    const bool attached = word.size() > name.size();
    if (row->takes == Takes::nothing) {
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
                                   row->value, command.name));
    }
    if (!attached) ++at;
  }
}

void add_options(CLI::App& app, const CommandRow& command, Options& options) {
  app.set_help_flag();
  app.add_flag_function("-h,--help", [&options](std::int64_t) { options.help = true; });
  if (command.command == Command::bench) {
    app.prefix_command();
    return;
  }
  app.allow_extras();
  for (const OptionRow& row : option_rows()) {
    if ((row.commands & on(command.command)) == 0) continue;
    const std::string flags = fmt::format("{}", fmt::join(spellings_of(row), ","));
    if (row.takes == Takes::nothing) {
      app.add_flag_function(flags, [&options, &row](std::int64_t) { row.apply(options, ""); });
      continue;
    }
    auto* option = app.add_option_function<std::vector<std::string>>(
        flags, [&options, &row](const std::vector<std::string>& values) {
          if (row.takes == Takes::one && !row.repeats && values.size() > 1) {
            throw UsageError(fmt::format("{} is given {} times; give it once", long_flag(row.flags), values.size()));
          }
          for (const std::string& value : values) row.apply(options, value);
        });
    option->take_all();
    if (row.takes == Takes::one) option->expected(1)->allow_extra_args(false);
  }
}

}  // namespace

KernelOptions Options::kernel_options() const {
  KernelOptions options;
  options.reply = timeout;
  options.first_reply = std::max(options.first_reply, timeout);
  options.interrupt = interrupt_descriptor();
  options.memory = memory;
  options.in_process = in_process;
  return options;
}

Options parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("", "attest");
  app.set_help_flag();
  for (const ProgramFlag& flag : program_flags()) {
    app.add_flag_function(std::string(flag.flags), [&options, &flag](std::int64_t) { options.*flag.given = true; });
  }
  app.allow_extras();
  std::vector<std::pair<const CommandRow*, CLI::App*>> subcommands;
  for (const CommandRow& command : command_rows()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name));
    add_options(*sub, command, options);
    subcommands.emplace_back(&command, sub);
  }
  if (argc > 0) refuse_missing_values(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const auto& [command, sub] : subcommands) {
    if (!sub->parsed()) continue;
    if (options.command != Command::none) {
      throw UsageError(
          fmt::format("attest runs one command, not {} and {}; a folder or file of that name is written ./{}",
                      row_of(options.command).name, command->name, command->name));
    }
    options.command = command->command;
    if (options.command == Command::bench) {
      options.passed_on = sub->remaining();
    } else {
      refuse_leftovers(*command, sub->remaining());
    }
  }
  if (const std::vector<std::string> leftovers = app.remaining(); !leftovers.empty()) {
    std::vector<std::string_view> names;
    for (const CommandRow& command : command_rows()) names.push_back(command.name);
    const std::string& word = leftovers.front();
    if (word.starts_with("-")) {
      std::vector<std::string_view> known;
      for (const ProgramFlag& flag : program_flags()) known.push_back(long_flag(flag.flags));
      throw UsageError(fmt::format("unknown option {}{}", in_quotes(word), suggestion(word, known)));
    }
    throw UsageError(fmt::format("unknown command {}{}", in_quotes(word), suggestion(word, names)));
  }
  if (options.help || options.version || options.man_page || options.bash_completion) return options;
  if (options.command == Command::none)
    throw UsageError(
        "no command given; attest check checks PyTorch's and the built-in kernels, attest --help lists the rest");
  refuse_contradictions(options);
  refuse_missing(options);
  return options;
}

}  // namespace attest
