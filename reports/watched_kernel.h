// A kernel whose calls are watched: how they ended, and whether the run is to end before the next.
#pragma once

#include <functional>
#include <memory>

#include "attest/kernel_under_test.h"
#include "interrupt.h"

namespace attest {

/// Forwards to another kernel. run() throws Abandoned once `stop` says so.
class WatchedKernel final : public Kernel {
 public:
  WatchedKernel(Kernel& kernel, std::function<bool()> stop) : kernel_(kernel), stop_(std::move(stop)) {}

  [[nodiscard]] const std::string& id() const override { return kernel_.id(); }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_.manifest(); }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    if (stop_()) throw Abandoned();
    Reply reply = kernel_.run(c, output, want_lse);
    if (reply.status != CallStatus::ok) ended_ = reply.status;
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return kernel_.clone(); }

  /// How the last call that was not ok since forget() ended; ok where there was none.
  [[nodiscard]] CallStatus ended() const { return ended_; }
  void forget() { ended_ = CallStatus::ok; }

 private:
  Kernel& kernel_;
  std::function<bool()> stop_;
  CallStatus ended_ = CallStatus::ok;
};

}  // namespace attest
