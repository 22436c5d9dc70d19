// A kernel under another manifest, or under a type of one's own.
#pragma once

#include <utility>

#include "core/kernel/forwarding_kernel.h"

namespace attest {

/// Another kernel, which does all the work, under a manifest of its own.
class RedeclaredKernel : public ForwardingKernel {
 public:
  RedeclaredKernel(Kernel& kernel, Manifest manifest) : ForwardingKernel(kernel), manifest_(std::move(manifest)) {}
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }

 private:
  Manifest manifest_;
};

}  // namespace attest
