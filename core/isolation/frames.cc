#include "core/isolation/frames.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "core/support/names.h"

namespace attest::process {
namespace {

constexpr std::size_t prefix_bytes = 8;
constexpr std::size_t header_length_bytes = 8;

/// So often a call that waits looks whether its turn has come, and so exactly it is known when it did.
constexpr std::chrono::seconds look_again{1};

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

std::array<char, prefix_bytes> prefix_of(std::uint64_t length) {
  std::array<char, prefix_bytes> prefix{};
  for (char& c : prefix) {
    c = static_cast<char>(length & 0xff);
    length >>= 8;
  }
  return prefix;
}

/// Keeps SIGPIPE from this thread while it writes to a program that may be gone, without touching the handling of the
/// program around us: a signal that our write raised is taken off the queue again.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&only_);
    sigaddset(&only_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~NoSigpipe() {
    if (raised_ && !was_pending_) {
      const timespec at_once{};
      while (sigtimedwait(&only_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t only_{}, before_{};
  bool was_pending_ = false;
  bool raised_ = false;
};

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

constexpr std::string_view remedy =
    "standard output carries the replies; keep a copy of descriptor 1 and point 1 at 2 before anything else is "
    "imported, "
    "as attest_adapter.py does";

std::string not_a_frame(std::string_view what, std::string_view bytes) {
  return fmt::format("something printed to standard output: {}; it begins with {}; {}", what, in_quotes(bytes), remedy);
}

}  // namespace

FrameChannel::FrameChannel(Descriptor to_child, Descriptor from_child, int interrupt, Output* output)
    : to_child_(std::move(to_child)), from_child_(std::move(from_child)), interrupt_(interrupt), output_(output) {
  for (const int fd : {to_child_.get(), from_child_.get()}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool FrameChannel::has_been_read() const {
  int unread = 0;
  return ::ioctl(to_child_.get(), FIONREAD, &unread) == 0 && unread == 0;
}

Exchange FrameChannel::exchange(std::string_view body, Clock::time_point until, std::uint64_t most,
                                const std::function<Clock::time_point()>& later) {
  prefix_received_ = 0;
  received_.clear();
  const auto prefix = prefix_of(body.size());
  const std::size_t total = prefix.size() + body.size();
  std::size_t sent = 0;
  for (;;) {
    // poll passes over a descriptor of -1.
    std::array<pollfd, 5> ready{{{from_child_.get(), POLLIN, 0},
                                 {sent < total ? to_child_.get() : -1, POLLOUT, 0},
                                 {interrupt_, POLLIN, 0},
                                 {output_ == nullptr ? -1 : output_->error_source(), POLLIN, 0},
                                 {output_ == nullptr ? -1 : output_->output_source(), POLLIN, 0}}};
    const int left = milliseconds_until(until);
    const int count = ::poll(ready.data(), ready.size(), left);
    if (count < 0 && errno == EINTR) continue;
    if (output_ != nullptr && (ready[3].revents != 0 || ready[4].revents != 0)) output_->drain();
    // One that prints without end is late like any other.
    const bool silent = ready[0].revents == 0 && ready[1].revents == 0;
    if (count <= 0 || ready[2].revents != 0 || (silent && left == 0)) {
      if (later && ready[2].revents == 0 && received() == 0) {
        until = later();
        if (Clock::now() < until) continue;
      }
      if (received() == 0) return {CallStatus::timed_out, {}, ""};
      return {CallStatus::timed_out,
              {},
              fmt::format("only {} bytes of a reply had come, beginning with {}", received(), in_quotes(beginning()))};
    }
    if (ready[0].revents != 0) {
      const Progress progress = read_some(most);
      if (sent == 0) {
        if (received() == 0) return {CallStatus::died, {}, {}};
        return {CallStatus::malformed, {}, not_a_frame("bytes came before anything was asked", beginning())};
      }
      std::string message;
      const Progress state = inspect(message, most);
      if (state == Progress::malformed) return {CallStatus::malformed, {}, std::move(message)};
      if (state == Progress::complete) {
        if (sent < total) {
          return {CallStatus::malformed, {}, "the reply came before the request had been read to its end"};
        }
        return {CallStatus::ok, std::exchange(received_, {}), {}};
      }
      if (progress == Progress::closed) {
        if (received() == 0) return {CallStatus::died, {}, {}};
        return {CallStatus::died,
                {},
                fmt::format("its output ended after {} bytes of a reply, beginning with {}", received(),
                            in_quotes(beginning()))};
      }
    }
    if (ready[1].revents != 0) write_some({prefix.data(), prefix.size()}, body, sent);
  }
}

std::string FrameChannel::beginning() const {
  constexpr std::size_t shown = 200;
  return std::string(prefix_.data(), prefix_received_) + received_.substr(0, shown);
}

/// Takes what has arrived. Room for a body is made once, when its length has come and is one that the call allows: a
/// string that grew with its bytes would take as much again. Memory that nothing is written to costs nothing.
FrameChannel::Progress FrameChannel::read_some(std::uint64_t most) {
  for (;;) {
    const ssize_t got = ::read(from_child_.get(), chunk_.data(), chunk_.size());
    if (got > 0) {
      std::string_view bytes(chunk_.data(), static_cast<std::size_t>(got));
      if (prefix_received_ < prefix_bytes) {
        const std::string_view part = bytes.substr(0, prefix_bytes - prefix_received_);
        std::ranges::copy(part, prefix_.begin() + static_cast<std::ptrdiff_t>(prefix_received_));
        prefix_received_ += part.size();
        bytes.remove_prefix(part.size());
        const std::uint64_t length = little_endian({prefix_.data(), prefix_bytes});
        if (prefix_received_ == prefix_bytes && length <= most) received_.reserve(static_cast<std::size_t>(length));
      }
      received_.append(bytes);
      return Progress::more;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN ? Progress::more : Progress::closed;
  }
}

FrameChannel::Progress FrameChannel::inspect(std::string& message, std::uint64_t most) const {
  if (prefix_received_ < prefix_bytes) return Progress::more;
  const std::uint64_t length = little_endian({prefix_.data(), prefix_bytes});
  const std::string_view body = received_;
  if (length > max_frame) {
    message = not_a_frame(fmt::format("read as a length it is {} bytes, and 1 GiB is the most", length), beginning());
    return Progress::malformed;
  }
  if (length < header_length_bytes + 2) {
    message = not_a_frame(fmt::format("a frame of {} bytes has no room for a header", length), beginning());
    return Progress::malformed;
  }
  if (body.size() >= header_length_bytes) {
    const std::uint64_t header = little_endian(body);
    const bool brace = body.size() == header_length_bytes || body[header_length_bytes] == '{';
    if (header > length - header_length_bytes || !brace) {
      message = not_a_frame("the frame's body does not begin with a safetensors header", beginning());
      return Progress::malformed;
    }
  }
  if (length > most) {
    message =
        fmt::format("a reply of {} bytes, where {} are the most that an answer to this request can take", length, most);
    return Progress::malformed;
  }
  if (body.size() < length) return Progress::more;
  if (body.size() > length) {
    message = not_a_frame(fmt::format("{} bytes follow a reply of {} bytes", body.size() - length, length),
                          body.substr(static_cast<std::size_t>(length)));
    return Progress::malformed;
  }
  return Progress::complete;
}

void FrameChannel::write_some(std::string_view prefix, std::string_view body, std::size_t& sent) {
  NoSigpipe guard;
  while (sent < prefix.size() + body.size()) {
    // Prefix and body in one call: a reader that is woken once answers sooner than one woken twice.
    std::array<iovec, 2> parts{};
    int count = 0;
    const auto add = [&](std::string_view bytes) {
      parts[static_cast<std::size_t>(count++)] = {const_cast<char*>(bytes.data()), bytes.size()};
    };
    if (sent < prefix.size()) add(prefix.substr(sent));
    add(body.substr(sent < prefix.size() ? 0 : sent - prefix.size()));
    const ssize_t put = ::writev(to_child_.get(), parts.data(), count);
    if (put >= 0) {
      sent += static_cast<std::size_t>(put);
    } else if (errno == EPIPE) {
      // The program reads no more. What it still says, or that it ended, is learnt from its output.
      guard.raised();
      sent = prefix.size() + body.size();
    } else if (errno != EINTR) {
      return;
    }
  }
}

Turn::Turn(Turns& turns, const FrameChannel& channel, Clock::time_point until)
    : of_(turns), channel_(channel), limit_(until - start_), until_(until) {
  const std::lock_guard lock(of_.mutex_);
  of_.turns_.push_back(this);
}

Turn::~Turn() {
  const std::lock_guard lock(of_.mutex_);
  std::erase(of_.turns_, this);
  of_.last_end_ = Clock::now();
  of_.given_up_ = !answered_;
}

Clock::time_point Turn::begun_under_lock() const {
  return std::max({start_, seen_waiting_, of_.last_end_});
}

Clock::time_point Turn::begun() {
  const std::lock_guard lock(of_.mutex_);
  return begun_under_lock();
}

Clock::time_point Turn::later() {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(of_.mutex_);
  if (channel_.has_been_read()) {
    // Behind one that was given up nothing tells when it was read.
    if (of_.given_up_ && !seen_read_) seen_waiting_ = now;
    seen_read_ = true;
    return until_ = begun_under_lock() + limit_;
  }
  seen_waiting_ = now;
  Clock::time_point at_work_until = std::max(start_, of_.last_end_);
  for (const Turn* other : of_.turns_)
    if (other != this && other->channel_.has_been_read()) at_work_until = std::max(at_work_until, other->until_);
  never_came_ = now >= at_work_until + Turns::patience;
  return never_came_ ? now : now + look_again;
}

}  // namespace attest::process
