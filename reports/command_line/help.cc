#include "reports/command_line/help.h"

#include <fmt/format.h>

#include <ranges>
#include <string_view>

#include "reports/command_line/parse.h"

namespace attest {
namespace {

std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t width = 100;
  std::string result;
  std::size_t column = indent;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view word(part.begin(), part.end());
    if (column > indent && column + 1 + word.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + '\n';
}

}  // namespace

std::string program_help(std::span<const Command> commands) {
  std::string text =
      "Attest tells whether an attention kernel is right, and how right.\n\nusage: attest COMMAND "
      "[OPTIONS]\n\ncommands:\n";
  for (const Command& command : commands) {
    text += fmt::format("  {:<10}", command.name) + wrapped(command.help, 12);
    text += fmt::format("{:12}example: {}\n", "", command.example);
  }
  text += '\n';
  for (const ShownOption& option : program_options()) text += fmt::format("  {:<18} {}\n", option.usage(), option.help);
  text += "\nexit status:\n";
  for (const ExitStatus& status : exit_statuses()) text += fmt::format("  {:<4} {}\n", status.status, status.means);
  return text;
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("usage: {}\n\n{}\n", command.usage, wrapped(command.help, 0));
  for (const ShownOption& option : command.options.shown()) {
    const std::string name = option.usage();
    text += name.size() < 20 ? fmt::format("  {:<20}", name) : fmt::format("  {}\n{:22}", name, "");
    text += wrapped(option.help, 22);
  }
  return text + fmt::format("  {:<20}this text\n\nexample: {}\n", "-h, --help", command.example);
}

}  // namespace attest
