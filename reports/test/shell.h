// The program in a shell line, as a user runs it.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/support/files.h"
#include "core/test/places.h"
#include "core/test/says.h"
#include "reports/test/fakes.h"

namespace attest {

/// The parts as one line.
inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string line;
  for (const std::string_view part : parts) line += part;
  return line;
}

struct ShellResult {
  int status = -1;     ///< exit status, 128 + signal when killed
  std::string output;  ///< standard output and standard error together
};

/// Runs a shell line in `folder` with $attest as the program.
inline ShellResult shell(const fake::Folder& folder, const std::string& line) {
  const std::string command =
      "cd '" + folder.path().string() + "' && attest='" + program_file() + "' && { " + line + "\n} 2>&1";
  ShellResult result;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// What a shell line writes that ends with this status.
inline std::string output_of(const fake::Folder& folder, const std::string& line, int status = 0) {
  const ShellResult result = shell(folder, line);
  EXPECT_EQ(result.status, status) << line << "\n" << result.output;
  return result.output;
}

inline void expect_status(const fake::Folder& folder, const std::string& line, int status = 0) {
  output_of(folder, line, status);
}

/// summary.json of a run folder in `folder`.
inline nlohmann::json summary_of(const fake::Folder& folder, const std::string& run) {
  return nlohmann::json::parse(read_file(folder / (run + "/summary.json")));
}

}  // namespace attest
