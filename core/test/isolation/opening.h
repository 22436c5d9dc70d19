// How the tests of kernels out of process open one.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/test/places.h"
#include "core/test/refusal.h"
#include "core/test/replies.h"

namespace attest::testing_process {

/// Limits that no healthy call comes near, however loaded the machine is.
inline KernelOptions patient() {
  return {std::chrono::seconds(60), std::chrono::seconds(60), {}, {}};
}

inline std::unique_ptr<Kernel> open_kernel(const std::string& spec, const KernelOptions& options = patient()) {
  return std::move(open_kernels(spec, options).front());
}

/// The one line that a kernel which cannot be loaded costs; "(loaded)" where it can.
inline std::string load_error(const std::string& spec, const KernelOptions& options = patient()) {
  const std::string error = refusal<KernelLoadError>([&] { return open_kernels(spec, options); });
  return error.empty() ? "(loaded)" : error;
}

/// A folder for logs that no other test has.
inline std::filesystem::path log_folder(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("attest-" + name + "-" + std::to_string(::getpid()));
}

/// The text of all logs in a folder, which is removed.
inline std::string taken_logs(const std::filesystem::path& folder) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove_all(folder);
  return text;
}

/// The number behind `word` in a log; 0: it is not there.
inline pid_t process_in(const std::string& log, const std::string& word) {
  const auto at = log.find(word + " ");
  return at == std::string::npos ? 0 : static_cast<pid_t>(std::stol(log.substr(at + word.size() + 1)));
}

/// Whether a process ends within some seconds. Orphans are reaped by the system's first process, which a container may
/// lack: a zombie is gone enough.
inline bool ends(pid_t process) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    const std::string stat((std::istreambuf_iterator<char>(file)), {});
    if (stat.empty() || stat.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// A variant of library_kernel.c.
inline std::string library(const std::string& name) {
  return test_library_folder() + "/library_" + name + ".so";
}

}  // namespace attest::testing_process
