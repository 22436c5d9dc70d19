// A kernel made wrong on purpose: the real one, asked something else, or its answer changed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "properties/faults/faults.h"

namespace attest {

/// The kernel of that id: built-in, of the core, a planted fault or a control.
inline std::unique_ptr<Kernel> registered(std::string_view id) {
  for (const auto& entries : {builtin_kernels(), core_kernels(), fault_kernels(), control_kernels()}) {
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

/// A right kernel that is asked something else.
[[nodiscard]] inline Tampered asked_otherwise(const Tampered::Question& question,
                                              std::string_view id = "builtin:two-pass") {
  return Tampered(registered(id), question);
}
/// A right kernel whose answer is changed.
[[nodiscard]] inline Tampered answered_otherwise(Tampered::Answer answer, std::string_view id = "builtin:two-pass") {
  return Tampered(registered(id), [](Case&) {}, std::move(answer));
}
/// Changes every element of the output, and of the log-sum-exp: change(old).
template <class Change>
[[nodiscard]] Tampered::Answer each_out(Change change) {
  return [change](Reply& reply) {
    for (std::int64_t e = 0; e < reply.out.elements(); ++e) reply.out.set(e, change(reply.out[e]));
  };
}
template <class Change>
[[nodiscard]] Tampered::Answer each_lse(Change change) {
  return [change](Reply& reply) {
    for (std::int64_t e = 0; e < reply.lse.elements(); ++e) reply.lse.set(e, change(reply.lse[e]));
  };
}

}  // namespace attest
