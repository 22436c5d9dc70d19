// Frames over a pair of pipes (kernel-interface.md, section 2): an unsigned 64-bit little-endian length, then that many
// bytes, a complete safetensors file.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
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
  /// Where the time is over and nothing has come, `later` is asked until when to wait instead; what is not in the
  /// future ends it. Empty: it is over then.
  [[nodiscard]] Exchange exchange(std::string_view body, Clock::time_point until, std::uint64_t most = max_frame,
                                  const std::function<Clock::time_point()>& later = {});
  /// Whether the program has read all that was sent. Any thread.
  [[nodiscard]] bool has_been_read() const;
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

class Turn;

/// Several processes of a kernel may all hand over to one other, as those of attest.check do: a call waits there until
/// those before it are answered, and its time begins when its turn has come. Of one kernel, its clones included. Any
/// thread.
class Turns {
 public:
  /// So long a call waits for its turn while no other one is at work: what answers may still be busy with one that was
  /// given up.
  static constexpr std::chrono::seconds patience{60};

  /// Whether the kernel said that its calls take them.
  std::atomic<bool> are_taken = false;

 private:
  friend class Turn;
  std::mutex mutex_;              ///< guards what follows
  std::vector<Turn*> turns_;      ///< of the calls that are being made
  Clock::time_point last_end_{};  ///< of those before
  bool given_up_ = false;         ///< the last of those, so that what answers may be busy with it still
};

/// One call's, from its request to its end; `channel` outlives it.
class Turn {
 public:
  /// `until`: when the time of the call is over, if its turn comes at once.
  Turn(Turns& turns, const FrameChannel& channel, Clock::time_point until);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Where that time is over: when to look again, or now or before, where it is over indeed. A call whose request
  /// nobody has begun to read waits for its turn.
  [[nodiscard]] Clock::time_point later();
  /// Its reply has come.
  void answered() { answered_ = true; }
  /// When its turn came, as far as that is known.
  [[nodiscard]] Clock::time_point begun();
  /// Whether it was given up before its turn came.
  [[nodiscard]] bool never_came() const { return never_came_; }

 private:
  [[nodiscard]] Clock::time_point begun_under_lock() const;

  Turns& of_;
  const FrameChannel& channel_;
  const Clock::time_point start_ = Clock::now();
  const Clock::duration limit_;
  Clock::time_point until_, seen_waiting_ = start_;
  bool never_came_ = false, seen_read_ = false, answered_ = false;
};

}  // namespace attest::process
