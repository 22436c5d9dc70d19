// What the processes of one worker print, on its way into the kernel's log.
#pragma once

#include <string>
#include <string_view>

#include "core/isolation/child.h"

namespace attest::process {

/// Two pipes, of which every process that the worker starts is given the writing ends. Pipes, as a process that writes
/// to a file itself is stopped by nobody. Whoever waits for the process polls the sources and drains them, or a process
/// that prints would wait, too. One thread at a time.
class Output {
 public:
  /// Throws UsageError where the system has no descriptors left.
  explicit Output(Log& log);
  /// The writing ends: standard error, and standard output of a process that does not speak over it.
  [[nodiscard]] int error_descriptor() const { return error_.write.get(); }
  [[nodiscard]] int output_descriptor() const { return output_.write.get(); }
  /// Readable, to poll, where something has been written.
  [[nodiscard]] int error_source() const { return error_.read.get(); }
  [[nodiscard]] int output_source() const { return output_.read.get(); }
  /// Takes what there is, and no more than some megabytes of what is being written: it returns.
  void drain();
  /// Whether anything has been written to output_descriptor().
  [[nodiscard]] bool printed();
  /// What is written from here on belongs to the process about to start.
  void mark();
  /// Last non-empty line written since mark(), at most 200 bytes; empty: none.
  [[nodiscard]] std::string last_line();

 private:
  [[nodiscard]] bool drain(int source);

  Log& log_;
  Pair error_, output_;
  bool printed_ = false;
  std::string end_;  ///< the last bytes since mark()
};

}  // namespace attest::process
