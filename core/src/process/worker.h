// A kernel in a process of its own: started, limited in time, killed, started again after a death.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "attest/kernel_under_test.h"
#include "process/child.h"
#include "process/frames.h"

namespace attest::process {

/// One started process and the way messages reach it: frames over its standard input and output, or shared memory.
/// After a call that ended died, timed_out or malformed only end() may follow.
class Carrier {
 public:
  virtual ~Carrier() = default;
  /// Asks for the manifest: body holds its JSON when the status is ok.
  [[nodiscard]] virtual Exchange manifest(Clock::time_point until) = 0;
  /// Puts one case to the kernel.
  [[nodiscard]] virtual Reply call(const Case& c, DType output, bool want_lse, Clock::time_point until) = 0;
  /// Ends the process: asks it to, waits until `until`, kills its group. How it ended (see Child::end).
  [[nodiscard]] virtual std::string end(Clock::time_point until) = 0;
  [[nodiscard]] virtual bool has_ended() const = 0;
};

/// Starts a process whose standard error is `log`.
using Starter = std::function<std::unique_ptr<Carrier>(const Log& log)>;

/// Supervision of one process at a time. The time limits are KernelOptions'.
class Worker {
 public:
  /// Starts nothing yet. `id` is the kernel as the user wrote it; it begins every error line.
  Worker(std::string id, Starter starter, KernelOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the process without waiting for it, so that several can start side by side. Throws KernelLoadError.
  void launch();
  /// Waits for the manifest of a process just launched (launches it if need be). Throws KernelLoadError: one line with
  /// how it failed and the last line of its standard error.
  [[nodiscard]] std::string first_manifest();
  /// A worker that has never been asked for a manifest must know which one to expect.
  void expect_manifest(std::string json) { manifest_ = std::move(json); }
  /// One call. Starts the process if there is none; never throws for what the kernel does.
  [[nodiscard]] Reply call(const Case& c, DType output, bool want_lse);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const Starter& starter() const { return starter_; }
  [[nodiscard]] const KernelOptions& options() const { return options_; }
  [[nodiscard]] const std::string& manifest_json() const { return manifest_; }

 private:
  [[nodiscard]] std::optional<Reply> restart();
  void settle(CallStatus& status, std::string& message, std::chrono::milliseconds limit);

  std::string id_;
  Starter starter_;
  KernelOptions options_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Carrier> carrier_;
  std::string manifest_;
};

/// The Kernel over a worker. `worker` has delivered its first manifest.
[[nodiscard]] std::unique_ptr<Kernel> worker_kernel(std::unique_ptr<Worker> worker, Manifest manifest);

// `interrupt` is KernelOptions'.
/// exec:COMMAND, run by /bin/sh -c.
[[nodiscard]] Starter exec_starter(std::string command, int interrupt);
/// PROGRAM ARGUMENTS… without a shell, over frames.
[[nodiscard]] Starter program_starter(std::vector<std::string> argv, int interrupt);
/// A shared library, served by `program worker LIBRARY`.
[[nodiscard]] Starter library_starter(std::filesystem::path program, std::filesystem::path library, int interrupt);

}  // namespace attest::process
