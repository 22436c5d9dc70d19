// A kernel whose answers are heard by another as well.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/kernel/wide.h"

namespace attest {

/// Forwards to a kernel and tells of every call that was answered.
class HeardKernel final : public Kernel {
 public:
  using Listener = std::function<void(const Case&, const Tensor& out)>;
  HeardKernel(Kernel& kernel, Listener listener) : kernel_(kernel), listener_(std::move(listener)) {}
  [[nodiscard]] const std::string& id() const override { return kernel_.id(); }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_.manifest(); }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    Reply reply = kernel_.run(c, output, want_lse);
    if (reply.status == CallStatus::ok) listener_(c, reply.out);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return kernel_.clone(); }

 private:
  Kernel& kernel_;
  Listener listener_;
};

}  // namespace attest
