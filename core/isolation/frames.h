// Frames over a pair of pipes (kernel-interface.md, section 2): an unsigned 64-bit little-endian length, then that many
// bytes, a complete safetensors file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/isolation/child.h"
#include "core/isolation/output.h"
#include "core/kernel/kernel_under_test.h"

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
  /// Makes both descriptors non-blocking. `interrupt` is KernelOptions'; `output`, drained while a reply is awaited,
  /// may be absent.
  FrameChannel(Descriptor to_child, Descriptor from_child, int interrupt, Output* output = nullptr);
  /// Sends one frame and waits for one until `until`. Reading goes on while writing, so a program that answers before
  /// it has read all of its input blocks nobody. A reply with a body of more than `most` bytes is malformed as soon as
  /// it says so. After anything but ok the stream is out of step: close it, kill the child.
  [[nodiscard]] Exchange exchange(std::string_view body, Clock::time_point until, std::uint64_t most = max_frame);
  /// Closes the program's standard input: it is expected to exit.
  void close_input() { to_child_.close(); }

 private:
  enum class Progress { more, complete, closed, malformed };
  Progress read_some(std::uint64_t most);
  [[nodiscard]] Progress inspect(std::string& message, std::uint64_t most) const;
  /// What of the current reply has come, prefix included: how many bytes, and the first of them.
  [[nodiscard]] std::size_t received() const { return prefix_received_ + received_.size(); }
  [[nodiscard]] std::string beginning() const;
  void write_some(std::string_view prefix, std::string_view body, std::size_t& sent);

  Descriptor to_child_, from_child_;
  int interrupt_;
  Output* output_;
  std::array<char, 8> prefix_{};  // of the current reply
  std::size_t prefix_received_ = 0;
  std::string received_;                                               // bytes of its body
  std::vector<char> chunk_ = std::vector<char>(std::size_t{1} << 16);  // what one read may bring
};

}  // namespace attest::process
