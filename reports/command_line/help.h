// The help of --help, from the options that commands declare.
#pragma once

#include <span>
#include <string>

#include "reports/command_line/command.h"

namespace attest {

/// Of the program: its commands, each with an example.
[[nodiscard]] std::string program_help(std::span<const Command> commands);
/// Of one command, with an example.
[[nodiscard]] std::string command_help(const Command& command);

}  // namespace attest
