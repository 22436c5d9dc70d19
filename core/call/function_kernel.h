// A kernel over C functions that are not the project's own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/call/guarded_memory.h"
#include "core/kernel/kernel_under_test.h"

namespace attest {

/// A function_kernel whose tensors lie between pages that fault, and whose memory is looked at again when the next call
/// begins: `failed` too where it changed after a call had returned.
class OutsideKernel : public Kernel {
 public:
  /// What changed since the last call returned, as that next call would say it.
  [[nodiscard]] virtual std::optional<std::string> late_change() const = 0;
};
[[nodiscard]] std::unique_ptr<OutsideKernel> outside_kernel(std::string id, Manifest manifest,
                                                            KernelFunctions functions);

/// Where an address lies from the tensors of the outside kernel called last. Async-signal-safe.
[[nodiscard]] std::optional<FaultPlace> place_of_fault(const void* address) noexcept;

}  // namespace attest
