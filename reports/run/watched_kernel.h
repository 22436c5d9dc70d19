// A kernel whose calls are watched: whether the run is to end before the next, and what is sent to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/kernel/wide.h"
#include "core/measure/bit_classes.h"
#include "reports/run/interrupt.h"

namespace attest {

/// Forwards to another kernel. run() throws Abandoned once `stop` says so, before a call or after one that came to
/// nothing: an interrupt cuts a wait short, which is nothing that the kernel did.
class WatchedKernel final : public Kernel {
 public:
  WatchedKernel(Kernel& kernel, std::function<bool()> stop) : kernel_(kernel), stop_(std::move(stop)) {}

  [[nodiscard]] const std::string& id() const override { return kernel_.id(); }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_.manifest(); }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    if (stop_()) throw Abandoned();
    note(c);
    Reply reply = kernel_.run(c, output, want_lse);
    if (reply.status != CallStatus::ok && stop_()) throw Abandoned();
    if (reply.status == CallStatus::ok) ++answered_;
    return reply;
  }
  [[nodiscard]] bool is_wide() const override { return kernel_.is_wide(); }
  [[nodiscard]] WideReply run_wide(const Case& c) override {
    if (stop_()) throw Abandoned();
    note(c);
    WideReply reply = kernel_.run_wide(c);
    if (reply.status == CallStatus::ok) ++answered_;
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return kernel_.clone(); }

  /// The classes of bits that occurred in q, k and v of the calls since the last call of this.
  [[nodiscard]] BitClasses take_sent() { return std::exchange(sent_, 0); }

  /// Calls that the kernel answered since the last call of this.
  [[nodiscard]] std::int64_t take_answered() { return std::exchange(answered_, 0); }

 private:
  void note(const Case& c) { sent_ |= bit_classes(c.q()) | bit_classes(c.k()) | bit_classes(c.v()); }

  Kernel& kernel_;
  std::function<bool()> stop_;
  BitClasses sent_ = 0;
  std::int64_t answered_ = 0;
};

}  // namespace attest
