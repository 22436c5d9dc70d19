// A kernel in a process of its own: started, limited in time, killed, started again after a death.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/isolation/child.h"
#include "core/isolation/frames.h"
#include "core/isolation/output.h"
#include "core/isolation/pace.h"
#include "core/kernel/kernel_under_test.h"

namespace attest::process {

/// What a call is for.
struct Wanted {
  /// Of a backward pass: with what, and what the kernel has.
  struct Backward {
    const BackwardCall& call;
    const BackwardTerms& terms;
    [[nodiscard]] bool asks_for(Gradient gradient, const Problem& c) const { return call.asks_for(gradient, terms, c); }
  };
  DType output;
  bool lse = false;
  const Backward* backward = nullptr;  ///< nullptr: a forward pass
};

/// One started process and the way messages reach it: frames over its standard input and output, or shared memory.
/// After a call that ended died or timed_out, or malformed with is_in_step() false, only end() may follow.
class Carrier {
 public:
  virtual ~Carrier() = default;
  /// Asks for the manifest: body holds its JSON when the status is ok, and message what the kernel did wrong as it was
  /// loaded (Kernel::load_finding).
  [[nodiscard]] virtual Exchange manifest(Clock::time_point until) = 0;
  /// Puts one case to the kernel.
  [[nodiscard]] virtual Reply call(const Case& c, const Wanted& wanted, Clock::time_point until) = 0;
  /// When the last call's time began, where that was after its `start`: it may have waited for its turn.
  [[nodiscard]] virtual Clock::time_point begun(Clock::time_point start) const { return start; }
  /// Ends the process: asks it to, waits until `until`, kills its group. How it ended (see Child::end).
  [[nodiscard]] virtual std::string end(Clock::time_point until) = 0;
  /// Of a call that ended malformed: whether the reply was one all the same, whole and readable, and only what it holds
  /// is not what was asked for. The next call may follow then.
  [[nodiscard]] virtual bool is_in_step() const { return false; }
  [[nodiscard]] virtual bool has_ended() const = 0;
  [[nodiscard]] virtual bool is_stopped() const = 0;
};

/// What is worth knowing of a kernel and violates nothing; shared by the kernel and its clones.
class Notes {
 public:
  void add(std::string note);
  /// Sorted; equal ones once.
  [[nodiscard]] std::vector<std::string> all() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> notes_;
};

/// Starts a process that prints into `output`, which outlives it.
using Starter = std::function<std::unique_ptr<Carrier>(Output& output)>;

/// Supervision of one process at a time. The time limits are KernelOptions', or the kernel's own pace.
class Worker {
 public:
  /// Starts nothing yet. `id` is the kernel as the user wrote it; it begins every error line.
  Worker(std::string id, Starter starter, KernelOptions options);
  /// One more like it, which shares its notes and knows its manifest.
  [[nodiscard]] std::unique_ptr<Worker> twin() const;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the process without waiting for it, so that several can start side by side. Throws KernelLoadError, and
  /// UsageError where the system has no descriptors or processes left, or the log cannot be written.
  void launch();
  /// Waits for the manifest of a process just launched (launches it if need be). Throws KernelLoadError: one line with
  /// how it failed and the last line of its standard error.
  [[nodiscard]] std::string first_manifest();
  /// One call. Starts the process if there is none; never throws for what the kernel does. UsageError as launch().
  [[nodiscard]] Reply call(const Case& c, const Wanted& wanted);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& load_finding() const { return load_finding_; }
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  [[nodiscard]] std::optional<Reply> restart();
  [[nodiscard]] Reply timed(const Case& c, const Wanted& wanted);
  void settle(CallStatus& status, std::string& message, std::chrono::milliseconds limit);
  void name_memory_limit(CallStatus status, std::string& message) const;
  void note_what_was_printed() const;

  std::string id_;
  Starter starter_;
  KernelOptions options_;
  std::shared_ptr<Log> log_;  ///< its twins', too
  std::unique_ptr<Output> output_;
  std::unique_ptr<Carrier> carrier_;
  std::string manifest_, load_finding_;
  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
  std::shared_ptr<Pace> pace_;  ///< its twins', too
};

/// The Kernel over a worker. `worker` has delivered its first manifest.
[[nodiscard]] std::unique_ptr<Kernel> worker_kernel(std::unique_ptr<Worker> worker, Manifest manifest);

// Each takes `interrupt`, `memory` and `walls` of the options.
/// exec:COMMAND, run by /bin/sh -c.
[[nodiscard]] Starter exec_starter(std::string command, const KernelOptions& options);
/// PROGRAM ARGUMENTS… without a shell, over frames.
[[nodiscard]] Starter program_starter(std::vector<std::string> argv, const KernelOptions& options);
/// A shared library, served by options.worker_program, and behind walls by kernel_host().
[[nodiscard]] Starter library_starter(std::filesystem::path library, const KernelOptions& options);

}  // namespace attest::process
