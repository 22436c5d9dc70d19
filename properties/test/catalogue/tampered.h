// A kernel made wrong on purpose: the real one, asked something else, or its answer changed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/kernel/forwarding_kernel.h"

namespace attest {

/// The registered kernel of that id.
inline std::unique_ptr<Kernel> registered(std::string_view id) {
  for (const auto& entries : {builtin_kernels(), core_kernels()}) {
    for (const KernelEntry& entry : entries) {
      if (entry.id == id) return entry.make();
    }
  }
  throw std::invalid_argument(std::string(id));
}

class Tampered : public ForwardingKernel {
 public:
  using Question = std::function<void(Case&)>;
  using Answer = std::function<void(Reply&)>;
  Tampered(
      std::unique_ptr<Kernel> kernel, Question question, Answer answer = [](Reply&) {})
      : ForwardingKernel(std::move(kernel)),
        manifest_(inner().manifest()),
        question_(std::move(question)),
        answer_(std::move(answer)) {}

  const Manifest& manifest() const override { return manifest_; }
  /// To change what it claims.
  Manifest& manifest() { return manifest_; }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Case asked = c;
    question_(asked);
    Reply reply = ForwardingKernel::run(asked, output, want_lse);
    if (reply.status == CallStatus::ok) answer_(reply);
    return reply;
  }
  std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Tampered>(inner().clone(), question_, answer_);
  }

 private:
  Manifest manifest_;
  Question question_;
  Answer answer_;
};

}  // namespace attest
