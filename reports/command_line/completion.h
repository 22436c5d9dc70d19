// Completion of command lines for bash, from the table of options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/command_line/option_table.h"

namespace attest {

/// What may stand for the value of an option.
struct Completions {
  std::vector<std::string> words;
  bool files = false;
  bool folders = false;  ///< without files
  bool listed = false;   ///< several with commas
};

/// For an option that takes a value, or for positional arguments. Throws std::logic_error for a value word that the
/// table of completions lacks.
[[nodiscard]] Completions completions_of(const OptionRow& row);

/// A script to be sourced, which needs nothing but bash 4.4 itself: commands, options, and the values that have names
/// (kernels, properties, number formats, …) or are files. Kernels and properties are those of this program.
[[nodiscard]] std::string bash_completion();

}  // namespace attest
