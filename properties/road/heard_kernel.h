// A kernel whose answers are heard by another as well.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "core/kernel/forwarding_kernel.h"

namespace attest {

/// Tells of every call that was answered. Whoever listens hears numbers of a dtype, so these are asked for always.
class HeardKernel final : public ForwardingKernel {
 public:
  using Listener = std::function<void(const Case&, const Tensor& out)>;
  HeardKernel(Kernel& kernel, Listener listener) : ForwardingKernel(kernel), listener_(std::move(listener)) {}
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output.value_or(c.dtype()), want_lse);
    if (reply.status == CallStatus::ok) listener_(c, reply.out);
    return reply;
  }

 private:
  Listener listener_;
};

}  // namespace attest
