// The program in a shell line, as a user runs it.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/support/files.h"
#include "core/test/places.h"
#include "core/test/says.h"
#include "core/test/temporary_folder.h"

namespace attest {

namespace fake {
using Folder = test::TemporaryFolder;
}

/// The parts as one line.
[[nodiscard]] std::string joined(std::initializer_list<std::string_view> parts);

struct ShellResult {
  int status = -1;     ///< exit status, 128 + signal when killed
  std::string output;  ///< standard output and standard error together
};

/// Runs a shell line in `folder` with $attest as the program.
ShellResult shell(const fake::Folder& folder, const std::string& line);

/// What a shell line writes that ends with this status.
std::string output_of(const fake::Folder& folder, const std::string& line, int status = 0);

void expect_status(const fake::Folder& folder, const std::string& line, int status = 0);

/// summary.json of a run folder in `folder`.
[[nodiscard]] nlohmann::json summary_of(const fake::Folder& folder, const std::string& run);

}  // namespace attest
