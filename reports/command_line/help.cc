#include "reports/command_line/help.h"

#include <fmt/format.h>

#include <ranges>
#include <string_view>

#include "reports/command_line/option_table.h"

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

std::string help_text(Command command) {
  if (command == Command::none) {
    std::string text =
        "Attest tells whether an attention kernel is right, and how right.\n\nusage: attest COMMAND "
        "[OPTIONS]\n\ncommands:\n";
    for (const CommandRow& row : command_rows()) {
      text += fmt::format("  {:<10}", row.name) + wrapped(row.help, 12);
      text += fmt::format("{:12}example: {}\n", "", row.example);
    }
    text += '\n';
    for (const ProgramFlag& flag : program_flags())
      text += fmt::format("  {:<18} {}\n", comma_separated(flag.flags), flag.help);
    text += "\nexit status:\n";
    for (const ExitStatus& status : exit_statuses()) text += fmt::format("  {:<4} {}\n", status.status, status.means);
    return text;
  }
  const CommandRow& row = row_of(command);
  std::string text = fmt::format("usage: {}\n\n{}\n", row.usage, wrapped(row.help, 0));
  for (const OptionRow& option : option_rows()) {
    if ((option.commands & on(command)) == 0) continue;
    const std::string name = option_usage(option);
    text += name.size() < 20 ? fmt::format("  {:<20}", name) : fmt::format("  {}\n{:22}", name, "");
    text += wrapped(option.help, 22);
  }
  text += fmt::format("  {:<20}this text\n\nexample: {}\n", "-h, --help", row.example);
  return text;
}

}  // namespace attest
