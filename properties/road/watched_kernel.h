// A kernel whose calls are watched: whether the run is to end before the next, what is sent to it, what it answers.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/measure/bit_classes.h"

namespace attest {

/// Thrown out of a kernel's call when the run is to end, so that a long batch or shrink is abandoned between two calls.
class Abandoned : public std::exception {};

/// A call throws Abandoned once `stop` says so, before a call or after one that came to
/// nothing: an interrupt cuts a wait short, which is nothing that the kernel did.
class WatchedKernel final : public ForwardingKernel {
 public:
  /// Told of every call that was answered. Whoever listens hears numbers of a dtype, so these are asked for always.
  using Listener = std::function<void(const Case&, const Tensor& out)>;
  /// Told of every backward pass that was answered, and of what it was given.
  using GradientListener = std::function<void(const Case&, const BackwardCall&, const Reply&)>;
  explicit WatchedKernel(
      Kernel& kernel, std::function<bool()> stop = [] { return false; }, Listener listener = {},
      GradientListener gradient_listener = {})
      : ForwardingKernel(kernel),
        stop_(std::move(stop)),
        listener_(std::move(listener)),
        gradient_listener_(std::move(gradient_listener)) {}

  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (stop_()) throw Abandoned();
    sent_ |= bit_classes(c.q()) | bit_classes(c.k()) | bit_classes(c.v());
    if (listener_) output = output.value_or(c.dtype());
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (reply.status != CallStatus::ok && stop_()) throw Abandoned();
    if (reply.status != CallStatus::ok) return reply;
    ++answered_;
    if (listener_) listener_(c, reply.out);
    return reply;
  }

  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    if (stop_()) throw Abandoned();
    Reply reply = ForwardingKernel::backward(c, call, output);
    if (reply.status != CallStatus::ok && stop_()) throw Abandoned();
    if (reply.status == CallStatus::ok && gradient_listener_) gradient_listener_(c, call, reply);
    return reply;
  }

  /// The run is to end, and the next call would throw.
  [[nodiscard]] bool is_to_end() const { return stop_(); }
  /// The classes of bits that occurred in q, k and v of the calls since the last call of this.
  [[nodiscard]] BitClasses take_sent() { return std::exchange(sent_, 0); }
  /// Calls that the kernel answered since the last call of this.
  [[nodiscard]] std::int64_t take_answered() { return std::exchange(answered_, 0); }

 private:
  std::function<bool()> stop_;
  Listener listener_;
  GradientListener gradient_listener_;
  BitClasses sent_ = 0;
  std::int64_t answered_ = 0;
};

}  // namespace attest
