// The base of kernels that change one thing of another kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Another kernel in all it does; who derives from this overrides what is to be different. clone() is a clone of the
/// other one alone.
class ForwardingKernel : public Kernel {
 public:
  /// The other one must outlive this.
  explicit ForwardingKernel(Kernel& inner) : inner_(&inner) {}
  explicit ForwardingKernel(std::unique_ptr<Kernel> inner) : owned_(std::move(inner)), inner_(owned_.get()) {}

  using Kernel::run;
  [[nodiscard]] const std::string& id() const override { return inner_->id(); }
  [[nodiscard]] const Manifest& manifest() const override { return inner_->manifest(); }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    return inner_->run(c, output, want_lse);
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    return inner_->backward(c, call, output);
  }
  [[nodiscard]] unsigned digits() const override { return inner_->digits(); }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return inner_->clone(); }
  [[nodiscard]] std::string load_finding() const override { return inner_->load_finding(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return inner_->notes(); }

 protected:
  [[nodiscard]] Kernel& inner() { return *inner_; }
  [[nodiscard]] const Kernel& inner() const { return *inner_; }

 private:
  std::unique_ptr<Kernel> owned_;  ///< null: somebody else's
  Kernel* inner_;
};

}  // namespace attest
