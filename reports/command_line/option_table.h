// The table of commands and options, for what is written from it: the parser (options.h), the help (help.h), the manual
// page (manual.h) and the completion (completion.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/command_line/options.h"

namespace attest {

enum class Takes { nothing, one, several };  ///< several: as many as follow, and the option may be repeated

/// The bit of a command in OptionRow::commands.
constexpr unsigned on(Command command) {
  return 1U << static_cast<unsigned>(command);
}

struct OptionRow {
  unsigned commands;       ///< those that have it
  std::string_view flags;  ///< "-o,--output"; without a dash: the name of the positional arguments
  std::string_view value;  ///< what follows, for the help; one of the words that completion knows
  Takes takes;
  std::string_view help;
  void (*apply)(Options&, const std::string&);
  bool repeats = false;

  [[nodiscard]] bool positional() const { return flags.front() != '-'; }
};

struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view usage;
  std::string_view help;
  std::string_view example;
};

/// What stands before a command, or in its place.
struct ProgramFlag {
  std::string_view flags;
  std::string_view help;
  bool Options::* given;
};

struct ExitStatus {
  int status;
  std::string_view means;
};

[[nodiscard]] std::span<const CommandRow> command_rows();
[[nodiscard]] const CommandRow& row_of(Command command);
[[nodiscard]] std::span<const OptionRow> option_rows();
[[nodiscard]] std::span<const ProgramFlag> program_flags();
[[nodiscard]] std::span<const ExitStatus> exit_statuses();

/// Every way to write the option: its flags, and, where they name what is written, --out for --output, --output for
/// --out, and -o. Help, manual page and completion show its flags alone.
[[nodiscard]] std::vector<std::string_view> spellings_of(const OptionRow& row);
/// Of "-o,--output" the part that is spelt out, "--output"; it is what a mistyped option is compared with.
[[nodiscard]] std::string_view long_flag(std::string_view flags);
/// "-o, --output"
[[nodiscard]] std::string comma_separated(std::string_view flags);
/// The flags with what follows them: "-o, --output FILE", "--case FILE...", "RUN".
[[nodiscard]] std::string option_usage(const OptionRow& row);

}  // namespace attest
