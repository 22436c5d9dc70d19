// The manual page, attest(1), from the options that commands declare.
#pragma once

#include <span>
#include <string>

#include "reports/command_line/command.h"

namespace attest {

/// The page in the man(7) macros, in ASCII, which groff and mandoc take without a warning.
[[nodiscard]] std::string man_page(std::span<const Command> commands);

}  // namespace attest
