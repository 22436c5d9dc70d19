// Completion of command lines for bash, from the options that commands declare.
#pragma once

#include <span>
#include <string>

#include "reports/command_line/command.h"

namespace attest {

/// A script to be sourced, which needs nothing but bash 4.4 itself: commands, options, and the values that have names
/// (kernels, properties, number formats, …) or are files. Kernels and properties are those of this program.
[[nodiscard]] std::string bash_completion(std::span<const Command> commands);

}  // namespace attest
