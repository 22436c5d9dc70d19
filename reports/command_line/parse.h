// The command line of the program: what stands before a command or in its place, and how all of it is parsed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "reports/command_line/command.h"

namespace attest {

/// What a command line asks for.
struct CommandLine {
  bool help = false;  ///< of the command, or of the program
  bool version = false;
  bool man_page = false;
  bool bash_completion = false;
  const Command* command = nullptr;  ///< null: none is named
};

/// Parses a line; each command's options are then what it says of them. `commands` are parsed into once. Throws
/// UsageError: one line with the value, the rule, and the nearest name where one is mistyped.
[[nodiscard]] CommandLine parse(std::span<const Command> commands, Arguments line);

/// The options that are no command's.
[[nodiscard]] std::vector<ShownOption> program_options();

struct ExitStatus {
  int status;
  std::string_view means;
};
[[nodiscard]] std::span<const ExitStatus> exit_statuses();

}  // namespace attest
