// A kernel under a contract: whatever its own manifest says, the contract's is the law, and a refusal within it is an
// answer that is missing.
#pragma once

#include <memory>

#include "core/kernel/forwarding_kernel.h"
#include "reports/judge/contract.h"

namespace attest {

/// `unsupported` and calls that were not made become `failed` or `timed_out`: within a contract there is nothing that a
/// kernel may leave out. What its own manifest asks for beyond the contract is its load_finding().
class JudgedKernel final : public ForwardingKernel {
 public:
  JudgedKernel(std::unique_ptr<Kernel> kernel, std::shared_ptr<const Contract> contract);

  [[nodiscard]] const Manifest& manifest() const override { return law_; }
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override;
  [[nodiscard]] std::string load_finding() const override;

 private:
  std::shared_ptr<const Contract> contract_;
  Manifest law_;  ///< the contract's under the kernel's own name
};

}  // namespace attest
