#include "reports/command_line/manual.h"

#include <fmt/format.h>

#include <ranges>

#include "reports/command_line/parse.h"
#include "reports/run_folder/version.h"

namespace attest {
namespace {

/// Text as roff reads it literally. A hyphen becomes the minus of the keyboard where a reader would copy it.
std::string escaped(std::string_view text, bool to_copy = false) {
  std::string result;
  // A line that begins with one of these is a request.
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += to_copy ? "\\-" : "-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// Running text in lines that are no wider than roff's sources are to be. What begins with a hyphen is to be copied.
std::string paragraph(std::string_view text) {
  constexpr std::size_t width = 79;
  std::string result;
  std::size_t column = 0;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view plain(part.begin(), part.end());
    const std::string word = escaped(plain, plain.starts_with('-'));
    const bool fits = column > 0 && column + 1 + word.size() <= width;
    if (column > 0) result += fits ? ' ' : '\n';
    column = fits ? column + 1 + word.size() : word.size();
    result += word;
  }
  return result + '\n';
}

/// A line of its own to copy.
std::string example(std::string_view line) {
  return fmt::format(".PP\n.nf\n.RS\n{}\n.RE\n.fi\n", escaped(line, /*to_copy=*/true));
}

std::string item(std::string_view name, std::string_view text) {
  return fmt::format(".TP\n.B {}\n{}", escaped(name, /*to_copy=*/true), paragraph(text));
}

std::string section_of(const Command& command) {
  std::string text = fmt::format(".SS {}\n.B {}\n.PP\n{}", command.name, escaped(command.usage, /*to_copy=*/true),
                                 paragraph(command.help));
  for (const ShownOption& option : command.options.shown()) text += item(option.usage(), option.help);
  text += item("-h, --help", "the same in short");
  return text + ".PP\nExample:\n" + example(command.example);
}

}  // namespace

std::string man_page(std::span<const Command> commands) {
  std::string text = fmt::format(
      ".\\\" Written by attest --man-page from its options.\n"
      ".TH ATTEST 1 {} \"attest {}\" \"User Commands\"\n"
      // No hyphenation: what was broken would be copied with the hyphen.
      ".nh\n"
      ".SH NAME\nattest \\- tell whether an attention kernel is right, and how right\n"
      ".SH SYNOPSIS\n.B attest\n.I COMMAND\n.RI [ OPTIONS ]\n",
      version_date(), version());
  text += ".SH DESCRIPTION\n" + paragraph(
                                    "Attest holds an attention kernel to the properties that it must have and to a "
                                    "certified exact answer, with a "
                                    "proved tolerance.");
  text += paragraph("What is violated is shrunk, saved as a case and printed with the line that replays it.");
  for (const ShownOption& option : program_options()) text += item(option.usage(), option.help);
  text += ".SH COMMANDS\n";
  for (const Command& command : commands) text += section_of(command);
  text += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : exit_statuses()) text += item(std::to_string(status.status), status.means);
  text += ".SH ENVIRONMENT\n";
  text += item("ATTEST_ADAPTERS",
               "the folder of the adapters in Python and JavaScript, instead of the one beside the program");
  text += item("ATTEST_COMMAND", "the name under which lines to copy call the program (default: attest)");
  text += ".SH FILES\n";
  text += item("attest-run-NNN/",
               "a run: report.html, summary.json, summary.md, the journal run.jsonl, and cases/*.safetensors");
  return text;
}

}  // namespace attest
