// A kernel under another manifest, or under a type of one's own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "core/kernel/wide.h"

namespace attest {

/// Another kernel, which does all the work, under a manifest of its own. The other one must outlive it; clone() gives
/// a clone of the other one.
class RedeclaredKernel : public Kernel {
 public:
  RedeclaredKernel(Kernel& kernel, Manifest manifest) : kernel_(kernel), manifest_(std::move(manifest)) {}
  [[nodiscard]] const std::string& id() const override { return kernel_.id(); }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    return kernel_.run(c, output, want_lse);
  }
  [[nodiscard]] bool is_wide() const override { return kernel_.is_wide(); }
  [[nodiscard]] WideReply run_wide(const Case& c) override { return kernel_.run_wide(c); }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return kernel_.clone(); }

 private:
  Kernel& kernel_;
  Manifest manifest_;
};

}  // namespace attest
