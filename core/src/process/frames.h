// Frames over a pair of pipes (kernel-interface.md, section 2): an unsigned 64-bit little-endian length, then that many
// bytes, a complete safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attest/kernel_under_test.h"
#include "process/child.h"

namespace attest::process {

/// Longest body of a frame, in bytes: 1 GiB.
inline constexpr std::uint64_t max_frame = std::uint64_t{1} << 30;

/// How an exchange went. The status is ok (body holds the reply's bytes), died (the program closed its output: ask the
/// child how it ended), timed_out or malformed (message says what arrived instead).
struct Exchange {
  CallStatus status = CallStatus::ok;
  std::string body;
  std::string message;
};

/// Our ends of a program's standard input and output. One thread at a time.
class FrameChannel {
 public:
  /// Makes both descriptors non-blocking. `interrupt` is KernelOptions'.
  FrameChannel(Descriptor to_child, Descriptor from_child, int interrupt);
  /// Sends one frame and waits for one until `until`. Reading goes on while writing, so a program that answers before
  /// it has read all of its input blocks nobody. After anything but ok the stream is out of step: close it, kill the
  /// child.
  [[nodiscard]] Exchange exchange(std::string_view body, Clock::time_point until);
  /// Closes the program's standard input: it is expected to exit.
  void close_input() { to_child_.close(); }

 private:
  enum class Progress { more, complete, closed, malformed };
  Progress read_some();
  [[nodiscard]] Progress inspect(std::string& message) const;
  void write_some(std::string_view prefix, std::string_view body, std::size_t& sent);

  Descriptor to_child_, from_child_;
  int interrupt_;
  std::string received_;                                               // bytes of the current reply, prefix included
  std::vector<char> chunk_ = std::vector<char>(std::size_t{1} << 16);  // what one read may bring
};

}  // namespace attest::process
