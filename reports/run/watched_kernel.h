// A kernel whose calls are watched: whether the run is to end before the next, and what is sent to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/measure/bit_classes.h"
#include "reports/run/interrupt.h"

namespace attest {

/// run() throws Abandoned once `stop` says so, before a call or after one that came to
/// nothing: an interrupt cuts a wait short, which is nothing that the kernel did.
class WatchedKernel final : public ForwardingKernel {
 public:
  WatchedKernel(Kernel& kernel, std::function<bool()> stop) : ForwardingKernel(kernel), stop_(std::move(stop)) {}

  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (stop_()) throw Abandoned();
    sent_ |= bit_classes(c.q()) | bit_classes(c.k()) | bit_classes(c.v());
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (reply.status != CallStatus::ok && stop_()) throw Abandoned();
    if (reply.status == CallStatus::ok) ++answered_;
    return reply;
  }

  /// The classes of bits that occurred in q, k and v of the calls since the last call of this.
  [[nodiscard]] BitClasses take_sent() { return std::exchange(sent_, 0); }

  /// Calls that the kernel answered since the last call of this.
  [[nodiscard]] std::int64_t take_answered() { return std::exchange(answered_, 0); }

 private:
  std::function<bool()> stop_;
  BitClasses sent_ = 0;
  std::int64_t answered_ = 0;
};

}  // namespace attest
