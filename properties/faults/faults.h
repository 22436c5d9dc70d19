// Planted faults and controls: kernels that are wrong on purpose, each by one small mistake that attention kernels
// really had, and kernels that are right, each computed another way. What tells the ones from the others is worth
// something.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "properties/faults/make.h"

namespace attest {

/// A correct kernel with one mistake.
struct PlantedFault {
  std::string_view name;         ///< without "fault:"
  std::string_view classes;      ///< letters of the classes of known bugs it stands for, "" for the three gross ones
  std::string_view wrong;        ///< what is wrong, one line
  std::string_view stands_for;   ///< the bugs, repository#number, "; " between them; "" for the gross ones
  std::string_view caught_by;    ///< properties expected to catch it, a space between them; "" where `unseen` says why
  Make make;                     ///< how it computes otherwise
  std::vector<DType> dtypes{};   ///< empty: f64, f32, f16 and bf16
  bool lse = true;               ///< it offers the log-sum-exp
  std::string_view unseen = {};  ///< why outputs cannot show it; "" for all others

  [[nodiscard]] Slip slip() const { return Slip::named(name); }
};
[[nodiscard]] std::span<const PlantedFault> planted_faults();

/// A correct kernel.
struct ControlKernel {
  std::string_view name;     ///< without "control:"
  std::string_view summary;  ///< one line
  Make make;
};
[[nodiscard]] std::span<const ControlKernel> controls();

/// "fault:NAME" for all of planted_faults() and "control:NAME" for all of controls(), with complete manifests. No run
/// takes them unless it is told to.
[[nodiscard]] std::vector<KernelEntry> fault_kernels();
[[nodiscard]] std::vector<KernelEntry> control_kernels();

/// The kernel of the fault.
[[nodiscard]] std::unique_ptr<Kernel> with_fault(const PlantedFault& fault);
/// The kernel of the fault without its mistake, everything else alike: what a rule rejects of it is a false alarm.
[[nodiscard]] std::unique_ptr<Kernel> without_fault(const PlantedFault& fault);

}  // namespace attest
