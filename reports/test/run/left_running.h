// Processes that a program leaves running: found by a variable in their environment, which a process has from the one
// that started it, whatever group or session it moved to.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace attest {

class LeftRunning {
 public:
  LeftRunning() : variable_(fmt::format("ATTEST_TEST_TOKEN={}-{}", ::getpid(), serial_++)) {}

  /// "NAME=VALUE", to be put before a command of a shell line.
  [[nodiscard]] const std::string& variable() const { return variable_; }

  /// Command lines of what is running still; what is told to end is given two seconds. They are killed.
  [[nodiscard]] std::vector<std::string> after_a_moment() const {
    for (int i = 0; i < 40 && !running().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<std::string> commands;
    for (const auto& [pid, command] : running()) {
      commands.push_back(command);
      ::kill(pid, SIGKILL);
    }
    return commands;
  }

 private:
  static std::string text_of(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  [[nodiscard]] std::vector<std::pair<pid_t, std::string>> running() const {
    std::vector<std::pair<pid_t, std::string>> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      // The whole entry: one token may begin with another.
      const std::string environment = '\0' + text_of(entry.path() / "environ");
      if (environment.find('\0' + variable_ + '\0') == std::string::npos) continue;
      std::string line = text_of(entry.path() / "cmdline");
      for (char& c : line) {
        if (c == '\0') c = ' ';
      }
      found.emplace_back(static_cast<pid_t>(std::stol(name)), line);
    }
    return found;
  }

  static inline std::atomic<int> serial_ = 0;
  std::string variable_;
};

}  // namespace attest
