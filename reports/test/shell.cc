#include "reports/test/shell.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "reports/test/json.h"

namespace attest {

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string line;
  for (const std::string_view part : parts) line += part;
  return line;
}

ShellResult shell(const fake::Folder& folder, const std::string& line) {
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

std::string output_of(const fake::Folder& folder, const std::string& line, int status) {
  const ShellResult result = shell(folder, line);
  EXPECT_EQ(result.status, status) << line << "\n" << result.output;
  return result.output;
}

void expect_status(const fake::Folder& folder, const std::string& line, int status) {
  output_of(folder, line, status);
}

nlohmann::json summary_of(const fake::Folder& folder, const std::string& run) {
  return parsed_json(read_file(folder / (run + "/summary.json")));
}

}  // namespace attest
