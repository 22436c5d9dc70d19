// The help of --help, from the table of options.
#pragma once

#include <string>

#include "reports/command_line/options.h"

namespace attest {

/// Help of the program (Command::none) or of one command, with an example.
[[nodiscard]] std::string help_text(Command command);

}  // namespace attest
